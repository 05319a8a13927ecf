//! What every sandbox tool holds: where to get the thread's sandbox, and how much of its answers to show.
//!
//! Invariant: a `SandboxError` reaches the model as a sentence that ends in something to do.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{ToolContext, ToolError};
use hart_sandbox::{GlobQuery, Sandbox, SandboxConfig, SandboxError, SandboxProvider, USER_DATA, VPath};

#[derive(Debug)]
pub(crate) struct Sandboxed {
    provider: Arc<dyn SandboxProvider>,
    pub(crate) limits: Limits,
}

/// In characters; zero means no limit, as in the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) bash_chars: usize,
    pub(crate) bash_timeout: Duration,
    pub(crate) read_chars: usize,
    pub(crate) ls_chars: usize,
}

impl Sandboxed {
    pub(crate) fn new(provider: Arc<dyn SandboxProvider>, config: &SandboxConfig) -> Self {
        let limits = Limits {
            bash_chars: config.bash_output_max_chars,
            bash_timeout: config.bash_command_timeout,
            read_chars: config.read_file_output_max_chars,
            ls_chars: config.ls_output_max_chars,
        };
        Self { provider, limits }
    }

    /// The sandbox of the calling thread, made on its first use.
    pub(crate) async fn acquire(&self, cx: &ToolContext<'_>) -> Result<Arc<dyn Sandbox>, ToolError> {
        self.provider.acquire(&cx.run.thread_id, &cx.run.user_id).await.map_err(explain)
    }
}

/// For the errors whose own message already says what to do, and the few that need a word more.
pub(crate) fn explain(error: impl Into<SandboxError>) -> ToolError {
    let error = error.into();
    match &error {
        SandboxError::NotADirectory(_) => {
            failed(format!("{error}; use ls on its parent to see what is there"))
        }
        SandboxError::IsDirectory(path) => failed(format!(
            "`{path}` is a directory, not a file; use ls to see what is in it, then name a file"
        )),
        SandboxError::Unavailable { reason, fix } => failed(format!(
            "the sandbox is not available: {reason}. Trying again will not help; tell the user, with this \
             remedy: {fix}"
        )),
        SandboxError::Spawn { .. } | SandboxError::Io { .. } | SandboxError::BadConfig { .. } => {
            failed(format!("{error}. If it fails again, tell the user; the cause lies outside your reach"))
        }
        _ => failed(error),
    }
}

/// For a file that is not there: names the files that are called the same, which is where most slips lie.
pub(crate) async fn missing(sandbox: &dyn Sandbox, path: VPath) -> ToolError {
    let error = SandboxError::NotFound(path.clone());
    let name = path.file_name();
    if name.contains(['*', '?', '[', ']', '{', '}', '\\']) {
        return explain(error);
    }
    let query = match sandbox.path(USER_DATA) {
        Ok(base) => GlobQuery { max_results: 3, ..GlobQuery::new(base, name) },
        Err(_) => return explain(error),
    };
    let found = sandbox.glob(query).await.map(|found| found.paths).unwrap_or_default();
    if found.is_empty() {
        return explain(error);
    }
    let found: Vec<String> = found.iter().map(|path| format!("`{path}`")).collect();
    failed(format!("{error}. There is {}", found.join(", ")))
}

pub(crate) fn failed(message: impl Display) -> ToolError {
    ToolError::Failed(message.to_string())
}
