//! `delete`: removes a file.
//!
//! Invariant: what is removed is one file, one link or one empty directory; a tree is never taken by accident.

use std::sync::Arc;

use hart_kernel::{ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::SandboxError;
use schemars::JsonSchema;
use serde::Deserialize;

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
}
