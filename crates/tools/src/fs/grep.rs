//! `grep`: finds lines by content.
//!
//! Invariant: a result names its file and line so that `read_file` can go there directly.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{EntryKind, GrepQuery, GrepResult, Sandbox, SandboxError, VPath};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::lenient::{Capped, Flag, Purpose};
use crate::sandboxed::{Sandboxed, explain, failed};

pub(crate) struct Grep(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GrepArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// What to look for: a regular expression (no look-around, no back-references), or plain text with `literal`.
    pattern: String,
    /// The absolute path of the directory to search in, or of one file.
    path: String,
    /// Search only files that match, for example `*.py` (by name, at any depth) or `src/**/*.ts`.
    glob: Option<String>,
    /// Take the pattern as plain text: `a.b(c)` finds exactly that.
    #[serde(default)]
    literal: Flag,
    /// Tell `A` from `a`.
    #[serde(default)]
    case_sensitive: Flag,
    /// How many lines at most.
    #[serde(default)]
    max_results: Capped<100, 500>,
}

#[async_trait]
impl TypedTool for Grep {
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = "\
Find lines that match a pattern in the text files below a directory, or in one file.

Each result is `path:line: text`; read_file with start_line shows what is around it. Matching is by line \
and ignores case unless told otherwise. Binary and very large files and folders of machine-made files are \
not searched; long lines are cut.";
    type Args = GrepArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: GrepArgs) -> Result<ToolOutput, ToolError> {
        if args.pattern.is_empty() {
            return Err(failed("the pattern is empty; say what to look for, or use read_file or glob"));
        }
        let sandbox = self.0.acquire(cx).await?;
        let base = sandbox.path(&args.path).map_err(explain)?;
        let mut query = GrepQuery::new(base.clone(), args.pattern);
        query.glob = args.glob.filter(|glob| !glob.trim().is_empty());
        query.literal = args.literal.0;
        query.case_sensitive = args.case_sensitive.0;
        query.max_results = args.max_results.get();
        let (glob, literal) = (query.glob.clone(), query.literal);
        let mut found = sandbox.grep(query).await.map_err(|error| match &error {
            SandboxError::BadPattern { pattern, .. } if !literal && glob.as_ref() != Some(pattern) => {
                failed(format!("{error}. Correct it, or set literal to true to find the text as it is"))
            }
            _ => explain(error),
        })?;
        if found.matches.is_empty() && found.skipped_large == 0 && is_large(sandbox.as_ref(), &base).await {
            found.skipped_large = 1;
        }
        Ok(render(&base, &found).into())
    }
}

/// Above what the sandbox searches.
const LARGE: u64 = 1 << 20;

async fn is_large(sandbox: &dyn Sandbox, path: &VPath) -> bool {
    sandbox.stat(path).await.is_ok_and(|stat| stat.kind == EntryKind::File && stat.size > LARGE)
}

fn render(base: &VPath, found: &GrepResult) -> String {
    let count = found.matches.len();
    let mut text = match (count, found.truncated) {
        (0, _) => format!("No matches found under {base}"),
        (_, false) => format!("Found {count} matches under {base}"),
        (_, true) => format!("Found {count} matches under {base} (showing first {count})"),
    };
    for hit in &found.matches {
        let _ = write!(text, "\n{}:{}: {}", hit.path, hit.line, hit.text);
    }
    if found.truncated && count > 0 {
        text.push_str("\nThere are more. Narrow the pattern or the path, add a glob, or raise max_results.");
    }
    if let Some(note) = skipped(base, found) {
        let _ = write!(text, "\n{note}");
    }
    text
}

/// Silence about files that were not searched would read as "it is not there".
fn skipped(base: &VPath, found: &GrepResult) -> Option<String> {
    let files = |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let large = (found.skipped_large > 0).then(|| format!("{} too large", files(found.skipped_large)));
    let binary = (found.skipped_binary > 0).then(|| format!("{} not text", files(found.skipped_binary)));
    let parts: Vec<String> = [large, binary].into_iter().flatten().collect();
    let instead = if found.skipped_large > 0 {
        format!("search them with bash, for example `grep -rn -m 50 PATTERN {base}`")
    } else {
        format!("search them with bash, for example `grep -rac PATTERN {base}`, if they matter")
    };
    (!parts.is_empty()).then(|| format!("Not searched: {}; {instead}.", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_searched_is_said() {
        let base = VPath::parse("/mnt/user-data/workspace").unwrap();
        let shown = |skipped_large, skipped_binary| {
            render(&base, &GrepResult { skipped_large, skipped_binary, ..GrepResult::default() })
        };
        assert_eq!(shown(0, 0), "No matches found under /mnt/user-data/workspace");
        assert_eq!(
            shown(2, 1),
            "No matches found under /mnt/user-data/workspace\nNot searched: 2 files too large, 1 file not text; \
             search them with bash, for example `grep -rn -m 50 PATTERN /mnt/user-data/workspace`."
        );
        assert!(shown(0, 3).contains("Not searched: 3 files not text; "));
    }
}
