//! `grep`: finds lines by content.
//!
//! Invariant: a result names its file and line so that `read_file` can go there directly.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{GrepQuery, GrepResult, SandboxError, VPath};
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
        let found = sandbox.grep(query).await.map_err(|error| match &error {
            SandboxError::BadPattern { pattern, .. } if !literal && glob.as_ref() != Some(pattern) => {
                failed(format!("{error}. Correct it, or set literal to true to find the text as it is"))
            }
            _ => explain(error),
        })?;
        Ok(render(&base, &found).into())
    }
}

fn render(base: &VPath, found: &GrepResult) -> String {
    let count = found.matches.len();
    if count == 0 {
        return format!("No matches found under {base}");
    }
    let mut text = format!("Found {count} matches under {base}");
    if found.truncated {
        let _ = write!(text, " (showing first {count})");
    }
    for hit in &found.matches {
        let _ = write!(text, "\n{}:{}: {}", hit.path, hit.line, hit.text);
    }
    if found.truncated {
        text.push_str("\nThere are more. Narrow the pattern or the path, add a glob, or raise max_results.");
    }
    text
}
