//! What a program adds to what the configuration says.
//!
//! Invariant: it is laid over the configuration when an agent is built or a model is chosen, and nowhere else.

use std::fmt;
use std::sync::Arc;

use hart_agent::{Features, Subagent, SuperAgentBuilder};
use hart_kernel::{ChatModel, Placed, Tool};
use hart_runtime::port::Store;

#[derive(Clone, Default)]
pub(crate) struct Extensions {
    /// In the order they were given; each sees what the ones before it left.
    pub(crate) features: Vec<FeatureChange>,
    pub(crate) middleware: Vec<Placed>,
    /// For subagents, too.
    pub(crate) everywhere: Vec<Placed>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) subagents: Vec<Subagent>,
    /// Goes before all models that are configured or found.
    pub(crate) model: Option<Arc<dyn ChatModel>>,
    /// Instead of the database in the data directory.
    pub(crate) store: Option<Arc<dyn Store>>,
}

pub(crate) type FeatureChange = Arc<dyn Fn(&mut Features) + Send + Sync>;

impl Extensions {
    pub(crate) fn shape(&self, mut features: Features) -> Features {
        for change in &self.features {
            change(&mut features);
        }
        features
    }

    pub(crate) fn install(&self, mut agent: SuperAgentBuilder) -> SuperAgentBuilder {
        for middleware in &self.middleware {
            agent = agent.with(middleware.clone());
        }
        for middleware in &self.everywhere {
            agent = agent.with_everywhere(middleware.clone());
        }
        for tool in &self.tools {
            agent = agent.tool(Arc::clone(tool));
        }
        agent
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("Extensions")
            .field("features", &self.features.len())
            .field("middleware", &self.middleware)
            .field("everywhere", &self.everywhere)
            .field("tools", &tools)
            .field("subagents", &self.subagents)
            .field("model", &self.model.as_ref().map(|model| &model.profile().name))
            .field("store", &self.store)
            .finish()
    }
}
