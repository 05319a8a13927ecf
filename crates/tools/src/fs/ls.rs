//! `ls`: shows what is in a directory, two levels deep.
//!
//! Invariant: one entry a line, as a path that the other tools take as it is; a directory ends in `/`.

use std::sync::Arc;

use hart_kernel::{Effect, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{Entry, EntryKind, Listing, SandboxError, WORKSPACE};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cut;
use crate::lenient::Purpose;
use crate::sandboxed::{Sandboxed, explain, failed};

pub(crate) struct Ls(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct LsArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// The absolute path of the directory, for example /mnt/user-data/workspace.
    #[schemars(required)]
    path: Option<String>,
}

const DEPTH: usize = 2;

#[async_trait]
impl TypedTool for Ls {
    const NAME: &'static str = "ls";
    const DESCRIPTION: &'static str = "\
List a directory and the directories directly in it, as absolute paths, one a line; directories end in `/`.

Use it to get to know a place. To find files by name anywhere below it use glob, by content grep. Folders \
of machine-made files (.git, node_modules, __pycache__ and the like) are left out. An empty directory gives \
`(empty)`.";
    const EFFECT: Effect = Effect::Pure;
    type Args = LsArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: LsArgs) -> Result<ToolOutput, ToolError> {
        let sandbox = self.0.acquire(cx).await?;
        let path = sandbox.path(args.path.as_deref().unwrap_or(WORKSPACE)).map_err(explain)?;
        let listing = sandbox.list(&path, DEPTH).await.map_err(|error| match error {
            SandboxError::NotADirectory(path) => failed(format!(
                "`{path}` is not a directory; use read_file to read a file, or ls on its parent"
            )),
            other => explain(other),
        })?;
        Ok(render(&listing, self.0.limits.ls_chars).into())
    }
}

fn render(listing: &Listing, limit: usize) -> String {
    if listing.entries.is_empty() {
        return "(empty)".to_owned();
    }
    let lines: Vec<String> = listing.entries.iter().map(line).collect();
    let text = lines.join("\n");
    let fits = limit == 0 || text.chars().count() <= limit;
    if fits && !listing.truncated {
        return text;
    }
    let total = lines.len();
    let note = |shown: usize| {
        let total = if listing.truncated { format!("more than {total}") } else { total.to_string() };
        format!(
            "... [truncated: showing first {shown} of {total} entries; list a deeper path, or use glob] ..."
        )
    };
    if fits {
        return format!("{text}\n{}", note(total));
    }
    let (shown, count) = cut::whole_lines(&text, limit.saturating_sub(note(total).chars().count()));
    format!("{shown}{}", note(count))
}

fn line(entry: &Entry) -> String {
    let slash = if entry.kind == EntryKind::Directory { "/" } else { "" };
    format!("{}{slash}", entry.path)
}

#[cfg(test)]
#[path = "ls_tests.rs"]
mod tests;
