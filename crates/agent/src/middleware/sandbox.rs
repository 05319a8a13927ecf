//! Gives the agent the sandbox tools, and lets go of the sandbox after the run.
//!
//! Invariant: a sandbox is acquired by the first tool that needs one, never before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{
    Command, HookError, HookResult, Middleware, RunContext, Schema, State, StateError, Tool, async_trait,
};
use hart_sandbox::{
    Background, Layout, Permissions, RestrictedSandboxes, SandboxConfig, SandboxError, SandboxProvider,
    TierReport,
};
use hart_tools::Artifacts;
use hart_types::{SandboxId, ThreadId, UserId};

/// A copy shares the sandboxes it holds.
#[derive(Clone, Debug)]
pub struct Sandbox {
    leases: Arc<Leases>,
    config: SandboxConfig,
    /// `None` offers all tools.
    enabled: Option<Vec<String>>,
    permissions: Option<Permissions>,
    /// Somebody else holds it, and has given out the tools.
    borrowed: bool,
}

impl Sandbox {
    pub fn new(provider: Arc<dyn SandboxProvider>, config: SandboxConfig) -> Self {
        Self {
            leases: Arc::new(Leases { provider, held: Mutex::default() }),
            config,
            enabled: None,
            permissions: None,
            borrowed: false,
        }
    }

    /// Where this agent's other parts get the thread's sandbox, so that it is released once for all of them.
    pub fn provider(&self) -> Arc<dyn SandboxProvider> {
        Arc::clone(&self.leases) as Arc<dyn SandboxProvider>
    }

    /// The same as the tools get it: within the rules, if there are any.
    pub fn permitted(&self) -> Arc<dyn SandboxProvider> {
        match &self.permissions {
            Some(rules) => Arc::new(RestrictedSandboxes::new(self.provider(), rules.clone())),
            None => self.provider(),
        }
    }

    /// The file tools keep to these rules. Commands do not.
    #[must_use]
    pub fn restricted_to(mut self, permissions: Permissions) -> Self {
        self.permissions = Some(permissions);
        self
    }

    /// For an agent that works for the one that has the sandbox: it stops what it has started, and lets go of nothing.
    pub(crate) fn borrowed(mut self) -> Self {
        self.borrowed = true;
        self
    }

    /// Offers only the tools of these names.
    #[must_use]
    pub fn only(mut self, tools: Vec<String>) -> Self {
        self.enabled = Some(tools);
        self
    }
}

#[async_trait]
impl Middleware for Sandbox {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Artifacts>()?;
        Ok(())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        if self.borrowed {
            return Vec::new();
        }
        let mut tools = hart_tools::sandbox_tools(self.permitted(), &self.config);
        if let Some(enabled) = &self.enabled {
            tools.retain(|tool| enabled.contains(&tool.spec().name));
        }
        tools
    }

    async fn after_agent(&self, cx: &RunContext, _state: &State) -> HookResult {
        // Nothing that this run started stays behind.
        cx.scratch.get_or_default::<Background>().stop().await;
        if self.borrowed {
            return Ok(Command::none());
        }
        let id = self.leases.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&cx.thread_id);
        if let Some(id) = id {
            self.leases.provider.release(&id).await.map_err(|error| HookError::Other(error.into()))?;
        }
        Ok(Command::none())
    }
}

/// Remembers which thread holds which sandbox, so that it can be released.
#[derive(Debug)]
struct Leases {
    provider: Arc<dyn SandboxProvider>,
    /// Written by tools, emptied by `after_agent`; never held across an await.
    held: Mutex<HashMap<ThreadId, SandboxId>>,
}

#[async_trait]
impl SandboxProvider for Leases {
    async fn acquire(
        &self,
        thread: &ThreadId,
        user: &UserId,
    ) -> Result<Arc<dyn hart_sandbox::Sandbox>, SandboxError> {
        let sandbox = self.provider.acquire(thread, user).await?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(thread.clone(), sandbox.id().clone());
        Ok(sandbox)
    }

    async fn get(&self, id: &SandboxId) -> Option<Arc<dyn hart_sandbox::Sandbox>> {
        self.provider.get(id).await
    }

    async fn release(&self, id: &SandboxId) -> Result<(), SandboxError> {
        self.provider.release(id).await
    }

    async fn shutdown(&self) {
        self.provider.shutdown().await;
    }

    fn tier(&self) -> TierReport {
        self.provider.tier()
    }

    fn layout(&self) -> Layout {
        self.provider.layout()
    }
}
