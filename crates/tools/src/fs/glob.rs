//! `glob`: finds files by name.
//!
//! Invariant: results are absolute virtual paths, numbered in path order.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{Effect, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{GlobQuery, GlobResult, Sandbox, SandboxError, VPath, WORKSPACE};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::lenient::{Capped, Flag, Purpose};
use crate::sandboxed::{Sandboxed, explain, failed};

pub(crate) struct Glob(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GlobArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// A name at any depth below `path`, such as `*.csv` or `*.{png,jpg}`; with a `/` in it a path below `path`, such as
    /// `src/**/test_*.py`, or `./*.csv` for this directory alone.
    pattern: String,
    /// The absolute path of the directory to search in.
    #[schemars(required)]
    path: Option<String>,
    /// Whether directories are results too.
    #[serde(default)]
    include_dirs: Flag,
    /// How many results at most.
    #[serde(default)]
    max_results: Capped<200, 1000>,
}

#[async_trait]
impl TypedTool for Glob {
    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str = "\
Find files whose path matches a pattern, below a directory.

Use it when you know something about the name; to search what is in the files use grep. `*` stays within \
one name, `**` crosses directories. Hidden files are found like others; folders of machine-made files (.git, \
node_modules, __pycache__ and the like) only if the pattern or the path names them.";
    const EFFECT: Effect = Effect::Pure;
    type Args = GlobArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: GlobArgs) -> Result<ToolOutput, ToolError> {
        if args.pattern.trim().is_empty() {
            return Err(failed("the pattern is empty; use `**/*` for every file"));
        }
        let sandbox = self.0.acquire(cx).await?;
        let base = sandbox.path(args.path.as_deref().unwrap_or(WORKSPACE)).map_err(explain)?;
        let mut query = GlobQuery::new(base.clone(), args.pattern);
        query.include_dirs = args.include_dirs.0;
        query.max_results = args.max_results.get();
        let asked = query.clone();
        let found = sandbox.glob(query).await.map_err(|error| match error {
            SandboxError::NotADirectory(path) => {
                failed(format!("`{path}` is not a directory; name the directory to search in"))
            }
            other => explain(other),
        })?;
        let mut text = render(&base, &found);
        if found.paths.is_empty() {
            text.push_str(&nothing(sandbox.as_ref(), asked).await);
        }
        Ok(text.into())
    }
}

/// What may have been meant.
async fn nothing(sandbox: &dyn Sandbox, asked: GlobQuery) -> String {
    let anchored = asked.pattern.starts_with('/');
    let directories = GlobQuery { include_dirs: true, max_results: 3, ..asked.clone() };
    let found = match asked.include_dirs {
        true => Vec::new(),
        false => sandbox.glob(directories).await.map(|found| found.paths).unwrap_or_default(),
    };
    if !found.is_empty() {
        let found: Vec<String> = found.iter().map(|path| format!("{path}/")).collect();
        return format!(", but directories did: {}. Use ls, or include_dirs.", found.join(", "));
    }
    if anchored { ". A leading `/` stands for that directory.".to_owned() } else { String::new() }
}

fn render(base: &VPath, found: &GlobResult) -> String {
    let count = found.paths.len();
    if count == 0 {
        return format!("No files matched under {base}");
    }
    let mut text = format!("Found {count} paths under {base}");
    if found.truncated {
        let _ = write!(text, " (showing first {count})");
    }
    for (index, path) in found.paths.iter().enumerate() {
        let _ = write!(text, "\n{}. {path}", index + 1);
    }
    if found.truncated {
        text.push_str("\nThere are more. Narrow the pattern or the path, or raise max_results.");
    }
    text
}
