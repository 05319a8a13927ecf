//! `write_file`: makes, replaces or extends a text file.
//!
//! Invariant: a call writes all of its content or nothing.

use std::sync::Arc;

use hart_kernel::{Effect, Reconciled, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::WriteMode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::edits::Edit;
use crate::lenient::{Flag, Purpose};
use crate::sandboxed::{Sandboxed, explain, failed};

pub(crate) struct WriteFile(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WriteFileArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// The absolute path of the file. Directories on the way are made.
    #[serde(alias = "file_path")]
    path: String,
    /// The text to write, exactly; at most 80 KiB in one call.
    content: String,
    /// Add to the end of the file instead of replacing it.
    #[serde(default)]
    append: Flag,
}

/// Longer arguments are where providers cut an answer off and models lose the thread.
const MAX_BYTES: usize = 80 * 1024;

#[async_trait]
impl TypedTool for WriteFile {
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "\
Write a text file: make it, replace what is in it, or (with append) add to its end. Answers `OK`.

Put work in progress under /mnt/user-data/workspace and what the user shall get under \
/mnt/user-data/outputs. To change a part of a file use str_replace. One call takes at most 80 KiB: write a \
longer text in parts, the first without append and the others with it.";
    const EFFECT: Effect = Effect::Once;
    type Args = WriteFileArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: WriteFileArgs) -> Result<ToolOutput, ToolError> {
        if args.content.len() > MAX_BYTES {
            return Err(failed(format!(
                "the content has {} bytes, the limit of one call is {MAX_BYTES}, and nothing was written; \
                 write it in parts: the first with append=false, each further one with append=true",
                args.content.len()
            )));
        }
        let sandbox = self.0.acquire(cx).await?;
        let path = sandbox.path(&args.path).map_err(explain)?;
        let mode = if args.append.0 { WriteMode::Append } else { WriteMode::Overwrite };
        sandbox.write(&path, args.content.as_bytes(), mode).await.map_err(explain)?;
        Ok("OK".into())
    }

    async fn foresee(&self, cx: &ToolContext<'_>, args: WriteFileArgs) -> Option<Value> {
        let sandbox = self.0.acquire(cx).await.ok()?;
        let path = sandbox.path(&args.path).ok()?;
        let change = |mut content: Vec<u8>| {
            if !args.append.0 {
                content.clear();
            }
            content.extend_from_slice(args.content.as_bytes());
            (args.content.len() <= MAX_BYTES).then_some(content)
        };
        Edit::foresee(sandbox.as_ref(), &path, change).await
    }

    async fn reconcile(
        &self,
        cx: &ToolContext<'_>,
        args: WriteFileArgs,
        foreseen: Option<&Value>,
    ) -> Reconciled {
        let Ok(sandbox) = self.0.acquire(cx).await else { return Reconciled::Unknown };
        match sandbox.path(&args.path) {
            Ok(path) => Edit::reconcile(sandbox.as_ref(), &path, foreseen, "OK".into()).await,
            Err(_) => Reconciled::NotDone,
        }
    }
}
