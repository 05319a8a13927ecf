//! `list_uploaded_files`: what the user handed in, also long ago.
//!
//! Invariant: it lists what is in the folder now, not what was once said to be there.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{
    Effect, ReduceError, Scope, StateKey, ToolContext, ToolError, ToolOutput, TypedTool, async_trait,
};
use hart_sandbox::{EntryKind, SandboxError, UPLOADS, VPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lenient::{Capped, Flag, Purpose};
use crate::outline::outline;
use crate::sandboxed::{Sandboxed, explain};

/// The files that came with the newest message, or with the run's input.
#[derive(Clone, Copy, Debug)]
pub struct UploadedFiles;

impl StateKey for UploadedFiles {
    type Value = Vec<UploadedFile>;
    type Update = Vec<UploadedFile>;
    const NAME: &'static str = "uploaded_files";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(_: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        Ok(update)
    }
}

/// One file, as DeerFlow's clients name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UploadedFile {
    pub filename: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Virtual; without one the file is in the folder of uploads, under its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl UploadedFile {
    /// Where it is to be found.
    pub fn place(&self) -> String {
        match &self.path {
            Some(path) => path.clone(),
            None => format!("{UPLOADS}/{}", self.filename),
        }
    }
}

pub(crate) struct ListUploadedFiles(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListUploadedFilesArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// Also show what is in each text file: headings, columns or its first lines.
    #[serde(default)]
    #[schemars(!default)]
    include_outline: Option<Flag>,
    /// How many files at most; 50 if not given.
    #[serde(default)]
    #[schemars(!default)]
    max_results: Option<Capped<50, 100>>,
}

#[async_trait]
impl TypedTool for ListUploadedFiles {
    const NAME: &'static str = "list_uploaded_files";
    const DESCRIPTION: &'static str = "\
List the files the user has uploaded in this conversation, with size and path.

You are told about the files of a message when it comes; use this for earlier ones.";
    const EFFECT: Effect = Effect::Pure;
    type Args = ListUploadedFilesArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: ListUploadedFilesArgs) -> Result<ToolOutput, ToolError> {
        let sandbox = self.0.acquire(cx).await?;
        let folder = VPath::parse(UPLOADS).map_err(explain)?;
        let listing = match sandbox.list(&folder, DEPTH).await {
            Ok(listing) => listing,
            Err(SandboxError::NotFound(_)) => return Ok(NOTHING.into()),
            Err(error) => return Err(explain(error)),
        };
        let files: Vec<_> = listing.entries.iter().filter(|entry| entry.kind == EntryKind::File).collect();
        if files.is_empty() {
            return Ok(NOTHING.into());
        }
        let most = args.max_results.unwrap_or_default().get();
        let wanted = args.include_outline.is_some_and(|Flag(wanted)| wanted);
        let mut text = String::new();
        for file in files.iter().take(most) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {} ({})", file.path, in_bytes(file.size));
            if wanted && let Some(outline) = outline(sandbox.as_ref(), &file.path).await {
                for line in outline.lines() {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
        let more = files.len().saturating_sub(most);
        if more > 0 || listing.truncated {
            let more = if listing.truncated { "more".to_owned() } else { format!("{more} more") };
            let _ = writeln!(text, "... [{more} not shown; use ls or glob on {UPLOADS}] ...");
        }
        Ok(text.trim_end().into())
    }
}

const DEPTH: usize = 4;
const NOTHING: &str = "The user has uploaded no files.";

/// A size as people say it.
pub fn in_bytes(size: u64) -> String {
    const UNITS: [&str; 3] = ["KB", "MB", "GB"];
    if size < 1024 {
        return format!("{size} bytes");
    }
    let mut scaled = size as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS.get(unit).copied().unwrap_or_default())
}
