//! `grep`: finds lines by content.
//!
//! Invariant: a result names its file and line so that `read_file` can go there directly.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{Effect, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{GrepMatch, GrepOutput, GrepQuery, GrepResult, SandboxError, VPath, WORKSPACE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lenient::{Capped, Count, Flag, Purpose};
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
    #[schemars(required)]
    path: Option<String>,
    /// Search only files that match, for example `*.py` (by name, at any depth) or `src/**/*.ts`.
    glob: Option<String>,
    /// Take the pattern as plain text: `a.b(c)` finds exactly that.
    #[serde(default)]
    literal: Flag,
    /// Tell `A` from `a`.
    #[serde(default)]
    case_sensitive: Flag,
    /// What to answer: `content` gives the lines, `files_with_matches` only the files, `count` the files with the
    /// number of lines in each.
    #[serde(default)]
    output_mode: OutputMode,
    /// Lines to show before and after each match, at most 20.
    #[serde(alias = "-C")]
    context: Option<Count>,
    /// Lines to show before each match, if that differs.
    #[serde(alias = "-B", alias = "context_before")]
    before: Option<Count>,
    /// Lines to show after each match, if that differs.
    #[serde(alias = "-A", alias = "context_after")]
    after: Option<Count>,
    /// How many lines (or files) at most.
    #[serde(default, alias = "max_count", alias = "head_limit")]
    max_results: Capped<100, 500>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum OutputMode {
    #[default]
    Content,
    FilesWithMatches,
    Count,
}

#[async_trait]
impl TypedTool for Grep {
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = "\
Find lines that match a pattern in the text files below a directory, or in one file.

Each result is `path:line: text`; ask for context to see what is around it, or use read_file with start_line. \
Matching is by line and ignores case unless told otherwise. A line longer than 200 characters is cut around \
its match. Binary files, files above 1 MiB (unless path names the file itself) and folders of machine-made files \
(.git, node_modules, __pycache__ and the like) are not searched.";
    const EFFECT: Effect = Effect::Pure;
    type Args = GrepArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: GrepArgs) -> Result<ToolOutput, ToolError> {
        if args.pattern.is_empty() {
            return Err(failed("the pattern is empty; say what to look for, or use read_file or glob"));
        }
        let sandbox = self.0.acquire(cx).await?;
        let base = sandbox.path(args.path.as_deref().unwrap_or(WORKSPACE)).map_err(explain)?;
        let mut query = GrepQuery::new(base, args.pattern);
        query.glob = args.glob.filter(|glob| !glob.trim().is_empty());
        query.literal = args.literal.0;
        query.case_sensitive = args.case_sensitive.0;
        query.max_results = args.max_results.get();
        let around = |own: Option<Count>| own.or(args.context).map_or(0, |Count(lines)| lines);
        (query.before, query.after) = (around(args.before), around(args.after));
        query.output = match args.output_mode {
            OutputMode::Content => GrepOutput::Lines,
            OutputMode::FilesWithMatches => GrepOutput::Files,
            OutputMode::Count => GrepOutput::Counts,
        };
        let (asked, glob) = (query.clone(), query.glob.clone());
        let found = sandbox.grep(query).await.map_err(|error| match &error {
            SandboxError::BadPattern { pattern, reason }
                if !asked.literal && glob.as_ref() != Some(pattern) && !reason.contains("by line") =>
            {
                failed(format!("{error}. Correct it, or set literal to true to find the text as it is"))
            }
            _ => explain(error),
        })?;
        Ok(render(&asked, &found).into())
    }
}

fn render(query: &GrepQuery, found: &GrepResult) -> String {
    let base = &query.base;
    let count = found.matches.len().max(found.files.len());
    let what = if query.output == GrepOutput::Lines { "matches" } else { "files with matches" };
    let mut text = match (count, found.truncated) {
        (0, _) => match &query.glob {
            Some(glob) => format!("No matches found under {base} in files that match `{glob}`"),
            None => format!("No matches found under {base}"),
        },
        (_, false) => format!("Found {count} {what} under {base}"),
        (_, true) => format!("Found {count} {what} under {base} (showing first {count})"),
    };
    if query.before + query.after > 0 {
        add_with_context(&mut text, &found.matches);
    } else {
        for hit in &found.matches {
            let _ = write!(text, "\n{}:{}: {}", hit.path, hit.line, hit.text);
        }
    }
    for file in &found.files {
        let _ = match file.lines {
            Some(lines) => write!(text, "\n{}: {lines}", file.path),
            None => write!(text, "\n{}", file.path),
        };
    }
    if found.truncated && count > 0 {
        text.push_str("\nThere are more. Narrow the pattern or the path, add a glob, or raise max_results.");
    }
    if found.matches.iter().any(|hit| hit.cut) {
        text.push_str("\nLines with … are longer than shown; see all of one with read_file.");
    }
    if let Some(note) = skipped(base, found) {
        let _ = write!(text, "\n{note}");
    }
    text
}

/// The path once for each file; then `number: text` for what matches, `number- text` around it, and `--` where lines
/// are left out.
fn add_with_context(text: &mut String, matches: &[GrepMatch]) {
    let mut shown: Option<(&VPath, u64)> = None;
    for hit in matches {
        let first = hit.line - hit.before.len() as u64;
        match shown {
            Some((path, last)) if *path == hit.path => {
                if first > last + 1 {
                    text.push_str("\n--");
                }
            }
            _ => {
                let _ = write!(text, "\n{}:", hit.path);
            }
        }
        for (number, line) in (first..).zip(&hit.before) {
            let _ = write!(text, "\n  {number}- {line}");
        }
        let _ = write!(text, "\n  {}: {}", hit.line, hit.text);
        for (number, line) in (hit.line + 1..).zip(&hit.after) {
            let _ = write!(text, "\n  {number}- {line}");
        }
        shown = Some((&hit.path, hit.line + hit.after.len() as u64));
    }
}

/// Silence about files that were not searched would read as "it is not there".
fn skipped(base: &VPath, found: &GrepResult) -> Option<String> {
    let files = |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let large = (found.skipped_large > 0).then(|| format!("{} too large", files(found.skipped_large)));
    let binary = (found.skipped_binary > 0).then(|| format!("{} not text", files(found.skipped_binary)));
    let parts: Vec<String> = [large, binary].into_iter().flatten().collect();
    let instead = if found.skipped_large > 0 {
        format!("name a large file itself as path, or use bash, for example `grep -rn -m 50 PATTERN {base}`")
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
            let query = GrepQuery::new(base.clone(), "x");
            render(&query, &GrepResult { skipped_large, skipped_binary, ..GrepResult::default() })
        };
        assert_eq!(shown(0, 0), "No matches found under /mnt/user-data/workspace");
        assert_eq!(
            shown(2, 1),
            "No matches found under /mnt/user-data/workspace\nNot searched: 2 files too large, 1 file not text; \
             name a large file itself as path, or use bash, for example `grep -rn -m 50 PATTERN /mnt/user-data/workspace`."
        );
        assert!(shown(0, 3).contains("Not searched: 3 files not text; "));
    }
}
