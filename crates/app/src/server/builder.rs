//! A server for agents of one's own.
//!
//! Invariant: nothing is read that is not passed; what is not said is as `hart serve` has it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hart_gateway::{Access, NoHouse, Settings};
use hart_kernel::{Agent, BuildError, Checkpointer, SystemClock, async_trait};
use hart_runtime::{AgentFactory, AgentInfo, AgentRequest, FactoryError, NoWorkspaces, Parts, Runtime};

use super::{Server, ServerError};
use crate::app::StorageError;
use crate::wire;

/// Made by [`Server::builder`].
///
/// ```
/// use std::sync::Arc;
///
/// use hart_app::kernel::{Agent, ChatModel};
/// use hart_app::{CancellationToken, Server};
///
/// async fn serve(model: Arc<dyn ChatModel>, stop: CancellationToken) -> Result<(), hart_app::ServerError> {
///     let server = Server::builder(".hart")
///         .agent("poet", move |states| Agent::builder(model.clone()).checkpointer(states).build())
///         .port(8123)
///         .bind()
///         .await?;
///     println!("{}", server.url());
///     server.run(stop).await
/// }
/// ```
#[must_use = "call `bind`"]
pub struct ServerBuilder {
    home: PathBuf,
    host: String,
    port: u16,
    access: Access,
    drain: Duration,
    agents: OwnAgents,
}

impl ServerBuilder {
    pub(super) fn new(home: PathBuf) -> Self {
        Self {
            home,
            host: "127.0.0.1".to_owned(),
            port: 2026,
            access: Access::default(),
            drain: Duration::from_secs(10),
            agents: OwnAgents::default(),
        }
    }

    /// Serves what `build` makes, under this name; called for every run and whenever a state is read, with the place
    /// the agent's states are kept in.
    pub fn agent(
        mut self,
        name: impl Into<String>,
        build: impl Fn(Arc<dyn Checkpointer>) -> Result<Agent, BuildError> + Send + Sync + 'static,
    ) -> Self {
        let info = AgentInfo { name: name.into(), description: None };
        self.agents.0.push((info, Box::new(build)));
        self
    }

    /// What is said about the agent that was added last.
    pub fn about(mut self, description: impl Into<String>) -> Self {
        if let Some((info, _)) = self.agents.0.last_mut() {
            info.description = Some(description.into());
        }
        self
    }

    /// An address or a name of this machine; beyond loopback a token is needed.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }

    /// 0 takes any that is free.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Asked of every request.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.access.token = Some(token.into());
        self
    }

    /// How long runs may go on when the server is told to stop.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Listens, then opens the data.
    pub async fn bind(self) -> Result<Server, ServerError> {
        let Self { home, host, port, access, drain, agents } = self;
        let (listener, access) = super::listen_as(&host, port, access).await?;
        let parts = Parts {
            store: Arc::new(wire::store(home).await?),
            agents: Arc::new(agents),
            workspaces: Arc::new(NoWorkspaces),
            clock: Arc::new(SystemClock),
        };
        let runtime = Runtime::open(parts).await.map_err(StorageError::Runs)?;
        let settings = Settings::default();
        Ok(Server { listener, runtime, house: Arc::new(NoHouse), access, settings, traces: None, drain })
    }
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

type Build = Box<dyn Fn(Arc<dyn Checkpointer>) -> Result<Agent, BuildError> + Send + Sync>;

#[derive(Default)]
struct OwnAgents(Vec<(AgentInfo, Build)>);

#[async_trait]
impl AgentFactory for OwnAgents {
    fn agents(&self) -> Vec<AgentInfo> {
        self.0.iter().map(|(info, _)| info.clone()).collect()
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.reader(&request.agent, Arc::clone(&request.checkpointer))
    }

    fn reader(&self, agent: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        // A thread that no run has touched has no agent's name yet: the first one reads it.
        let named = self.0.iter().find(|(info, _)| info.name == agent).or_else(|| self.0.first());
        let refused = |error: &str, message: String| FactoryError { error: error.to_owned(), message };
        let (_, build) =
            named.ok_or_else(|| refused("UnknownAgent", "this server has no agent".to_owned()))?;
        build(checkpointer).map_err(|error| refused("BuildError", error.to_string()))
    }
}
