//! A thread with a real sandbox in a temporary directory, and the tools in it.

use std::path::PathBuf;
use std::sync::Arc;

use hart_kernel::{Effect, RunContext, State, Tool, ToolContext, ToolError, ToolOutput, async_trait};
use hart_sandbox::{
    LocalSandboxProvider, Sandbox, SandboxConfig, SandboxError, SandboxProvider, Tier, TierReport,
};
use hart_types::{SandboxId, ThreadId, ToolCallId, UserId};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Place {
    pub(crate) run: RunContext,
    provider: Arc<LocalSandboxProvider>,
    tools: Vec<Arc<dyn Tool>>,
    _home: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(SandboxConfig::default())
    }

    pub(crate) fn with(config: SandboxConfig) -> Self {
        Self::named("hart-tools", config)
    }

    /// With `name` in the path of its home.
    pub(crate) fn named(name: &str, config: SandboxConfig) -> Self {
        let home = tempfile::Builder::new().prefix(name).tempdir().unwrap();
        let provider =
            Arc::new(LocalSandboxProvider::new(config.clone(), home.path().to_owned(), None).unwrap());
        let tools = hart_tools::sandbox_tools(Arc::clone(&provider) as Arc<dyn SandboxProvider>, &config);
        Self { run: RunContext::new("thread-1".into()), provider, tools, _home: home }
    }

    /// A place for commands, or `None` (with the reason printed) where the machine cannot confine them.
    pub(crate) fn for_commands(config: SandboxConfig) -> Option<Self> {
        let place = Self::with(config);
        let report = place.provider.tier();
        if report.tier != Tier::Refused {
            return Some(place);
        }
        assert!(std::env::var_os("CI").is_none(), "commands must run in CI: {report}");
        println!("skipped: {report}");
        None
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tools.iter().find(|candidate| candidate.spec().name == tool).unwrap();
        call(tool.as_ref(), &self.run, args).await
    }

    /// The tool of that name.
    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        Arc::clone(self.tools.iter().find(|candidate| candidate.spec().name == name).unwrap())
    }

    pub(crate) fn effects(&self) -> Vec<(String, Effect)> {
        self.tools.iter().map(|tool| (tool.spec().name.clone(), tool.spec().effect)).collect()
    }

    /// The answer's text.
    pub(crate) async fn ok(&self, tool: &str, args: Value) -> String {
        self.call(tool, args).await.unwrap().content.text()
    }

    /// The message of a failure the model can act on.
    pub(crate) async fn fails(&self, tool: &str, args: Value) -> String {
        match self.call(tool, args).await {
            Err(ToolError::Failed(message)) => message,
            other => panic!("{tool} should have failed: {other:?}"),
        }
    }

    /// Where a path below `/mnt/user-data` is on the host.
    pub(crate) fn host(&self, below_user_data: &str) -> PathBuf {
        let dirs = self.provider.thread_dirs(&self.run.thread_id, &self.run.user_id);
        dirs.workspace().as_path().parent().unwrap().join(below_user_data)
    }

    /// Puts a file there, behind the tools' back.
    pub(crate) fn put(&self, below_user_data: &str, content: impl AsRef<[u8]>) {
        let path = self.host(below_user_data);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, below_user_data: &str) -> String {
        std::fs::read_to_string(self.host(below_user_data)).unwrap()
    }
}

pub(crate) async fn call(tool: &dyn Tool, run: &RunContext, args: Value) -> Result<ToolOutput, ToolError> {
    let Value::Object(args) = args else { panic!("arguments are an object") };
    let (state, call_id) = (State::default(), ToolCallId::from("call-1"));
    tool.call(&ToolContext { run, state: &state, call_id: &call_id, effect: None }, args).await
}

/// Gives out no sandbox, so that a call gets exactly as far as its arguments are understood.
#[derive(Debug)]
pub(crate) struct Closed;

impl Closed {
    pub(crate) fn tools() -> Vec<Arc<dyn Tool>> {
        hart_tools::sandbox_tools(Arc::new(Self), &SandboxConfig::default())
    }

    pub(crate) const MESSAGE: &str = "the sandbox is not available: closed for the test. Trying again will \
        not help; tell the user, with this remedy: open it";
}

#[async_trait]
impl SandboxProvider for Closed {
    async fn acquire(&self, _: &ThreadId, _: &UserId) -> Result<Arc<dyn Sandbox>, SandboxError> {
        Err(SandboxError::Unavailable { reason: "closed for the test".to_owned(), fix: "open it".to_owned() })
    }

    async fn get(&self, _: &SandboxId) -> Option<Arc<dyn Sandbox>> {
        None
    }

    async fn release(&self, _: &SandboxId) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn shutdown(&self) {}

    fn tier(&self) -> TierReport {
        hart_sandbox::probe()
    }
}
