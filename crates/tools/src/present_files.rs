//! `present_files`: hands finished files to the user.
//!
//! Invariant: what is presented exists, is a file, and lies where clients may fetch it from.

use std::sync::Arc;

use hart_kernel::{
    Effect, ReduceError, Scope, StateKey, ToolContext, ToolError, ToolOutput, TypedTool, Update, async_trait,
};
use hart_sandbox::{EntryKind, OUTPUTS, Sandbox, USER_DATA};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::lenient::List;
use crate::sandboxed::{Sandboxed, explain, failed};

/// The files presented in a thread: virtual paths, each once, in the order they were first presented.
#[derive(Clone, Copy, Debug)]
pub struct Artifacts;

impl StateKey for Artifacts {
    type Value = Vec<String>;
    type Update = Vec<String>;
    const NAME: &'static str = "artifacts";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(current: Option<Vec<String>>, update: Vec<String>) -> Result<Vec<String>, ReduceError> {
        let mut all = current.unwrap_or_default();
        for path in update {
            if !all.contains(&path) {
                all.push(path);
            }
        }
        Ok(all)
    }
}

pub(crate) struct PresentFiles(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PresentFilesArgs {
    /// The absolute paths of the files, all under /mnt/user-data/outputs, the most important first.
    filepaths: List<String>,
}

#[async_trait]
impl TypedTool for PresentFiles {
    const NAME: &'static str = "present_files";
    const DESCRIPTION: &'static str = "\
Show finished files to the user, who sees them beside the conversation and can open and download them.

Call it once a result is complete, with the files the user asked for and not those you only needed on the \
way. The files must be under /mnt/user-data/outputs: copy them there first. Present files that belong \
together in one call.";
    const EFFECT: Effect = Effect::Pure;
    type Args = PresentFilesArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: PresentFilesArgs) -> Result<ToolOutput, ToolError> {
        if args.filepaths.0.is_empty() {
            return Err(failed("filepaths is empty; name at least one file under /mnt/user-data/outputs"));
        }
        let sandbox = self.0.acquire(cx).await?;
        let (mut paths, mut refused) = (Vec::new(), Vec::new());
        for text in &args.filepaths.0 {
            match presentable(sandbox.as_ref(), text).await {
                Ok(path) => paths.push(path),
                Err(error) => refused.push(error.to_string()),
            }
        }
        if !refused.is_empty() {
            return Err(failed(format!("no file was presented: {}", refused.join("; "))));
        }
        Ok(ToolOutput {
            content: "Successfully presented files".into(),
            command: Update::none().set::<Artifacts>(paths).into(),
            ..ToolOutput::default()
        })
    }
}

/// The path in its normal form, if clients may be shown it.
async fn presentable(sandbox: &dyn Sandbox, text: &str) -> Result<String, ToolError> {
    let path = sandbox.path(text).map_err(explain)?;
    if !path.is_under(OUTPUTS) {
        let why = if path.is_under(USER_DATA) { "" } else { " and cannot be downloaded" };
        return Err(failed(format!("`{path}` is not under {OUTPUTS}{why}; copy it to {OUTPUTS} first")));
    }
    match sandbox.stat(&path).await.map_err(explain)?.kind {
        EntryKind::File => Ok(path.as_str().to_owned()),
        EntryKind::Directory => {
            Err(failed(format!("`{path}` is a directory; name the files in it, or pack it into an archive")))
        }
        EntryKind::Symlink | EntryKind::Other => {
            Err(failed(format!("`{path}` is not a regular file; copy its content to one under {OUTPUTS}")))
        }
    }
}
