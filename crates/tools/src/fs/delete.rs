//! `delete`: removes a file.
//!
//! Invariant: what is removed is one file, one link or one empty directory; a tree is never taken by accident.

use std::sync::Arc;

use hart_kernel::{Effect, Reconciled, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{Sandbox, SandboxError, VPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::lenient::Purpose;
use crate::sandboxed::{Sandboxed, explain, failed};

pub(crate) struct Delete(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeleteArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// The absolute path of the file or empty directory.
    #[serde(alias = "file_path")]
    path: String,
}

#[async_trait]
impl TypedTool for Delete {
    const NAME: &'static str = "delete";
    const DESCRIPTION: &'static str = "\
Delete one file, symbolic link (not what it points to) or empty directory. Answers `Deleted` and the path.

There is no way back. To delete a directory with what is in it, or files by pattern, use bash.";
    const EFFECT: Effect = Effect::Once;
    type Args = DeleteArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: DeleteArgs) -> Result<ToolOutput, ToolError> {
        let sandbox = self.0.acquire(cx).await?;
        let path = sandbox.path(&args.path).map_err(explain)?;
        sandbox.remove(&path).await.map_err(|error| match error {
            SandboxError::NotEmpty(path) => failed(format!(
                "the directory `{path}` is not empty, and nothing was deleted; delete what is in it first, or \
                 use `rm -r` in bash"
            )),
            SandboxError::IsDirectory(path) => {
                failed(format!("`{path}` belongs to the sandbox and cannot be deleted; name something in it"))
            }
            other => explain(other),
        })?;
        Ok(format!("Deleted {path}").into())
    }

    async fn foresee(&self, cx: &ToolContext<'_>, args: DeleteArgs) -> Option<Value> {
        let sandbox = self.0.acquire(cx).await.ok()?;
        let path = sandbox.path(&args.path).ok()?;
        Some(Value::Bool(is_there(sandbox.as_ref(), &path).await))
    }

    async fn reconcile(
        &self,
        cx: &ToolContext<'_>,
        args: DeleteArgs,
        foreseen: Option<&Value>,
    ) -> Reconciled {
        let Ok(sandbox) = self.0.acquire(cx).await else { return Reconciled::Unknown };
        let Ok(path) = sandbox.path(&args.path) else { return Reconciled::NotDone };
        let was_there = foreseen.and_then(Value::as_bool).unwrap_or(true);
        match is_there(sandbox.as_ref(), &path).await {
            false if was_there => Reconciled::Done(format!("Deleted {path}").into()),
            _ => Reconciled::NotDone,
        }
    }
}

/// A link that leads nowhere is there, too.
async fn is_there(sandbox: &dyn Sandbox, path: &VPath) -> bool {
    !matches!(sandbox.stat(path).await, Err(SandboxError::NotFound(_)))
}
