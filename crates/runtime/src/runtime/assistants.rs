//! Which assistant is meant, and the assistants that stand for the agents themselves.
//!
//! Invariant: every agent has an assistant whose id follows from the agent's name, on every server.

use std::sync::{Arc, PoisonError};

use hart_types::{AssistantId, Secrets, ThreadId};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::Runtime;
use crate::checkpoints::StepLog;
use crate::port::{Assistant, AssistantQuery, StoreError};
use crate::request::{AgentInfo, AgentRequest, FactoryError, Input, StartRun};

/// Why there is no such assistant.
#[derive(Debug, thiserror::Error)]
pub enum AssistantError {
    #[error("Thread or assistant not found.")]
    Unknown,
    #[error("Invalid assistant: '{0}'. Must be either an assistant's ID or the name of an agent")]
    NoName(String),
    #[error("Graph '{0}' not found")]
    NoAgent(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The namespace LangGraph makes the ids of deployed graphs in.
const GRAPHS: Uuid = Uuid::from_u128(0x6ba7_b821_9dad_11d1_80b4_00c0_4fd4_30c8);

/// The assistant that stands for an agent.
pub fn assistant_id(agent: &str) -> AssistantId {
    AssistantId::from(Uuid::new_v5(&GRAPHS, agent.as_bytes()).to_string())
}

impl Runtime {
    /// By its id, or by the name of its agent.
    pub async fn assistant(&self, id: &str) -> Result<Assistant, AssistantError> {
        let agents = &self.inner.agents;
        let is_name = agents.has(id);
        let own = match Uuid::parse_str(id) {
            _ if is_name => assistant_id(id),
            // Ids are stored in lower case, whatever case they are asked for in.
            Ok(id) => AssistantId::from(id.to_string()),
            Err(_) => return Err(AssistantError::NoName(id.to_owned())),
        };
        if !(is_name && self.registered().contains(id)) {
            self.register_agents().await?;
        }
        let found = self.inner.store.assistant(&own).await?.ok_or(AssistantError::Unknown)?;
        match agents.has(&found.graph) {
            true => Ok(found),
            false if found.system => Err(AssistantError::Unknown),
            false => Err(AssistantError::NoAgent(found.graph)),
        }
    }

    /// What its agent can call.
    pub async fn tools_of(&self, assistant: &Assistant) -> Result<Vec<String>, FactoryError> {
        let StartRun { agent, user, options, .. } = StartRun::of(assistant, Input::Continue);
        let checkpointer = StepLog::by_hand(Arc::clone(&self.inner.store), self.inner.tasks.clone());
        let request = AgentRequest {
            agent,
            thread: ThreadId::generate(),
            user,
            options,
            secrets: Secrets::default(),
            checkpointer: Arc::new(checkpointer),
        };
        let agent = self.inner.agents.build(&request).await?;
        Ok(agent.tools().iter().map(|tool| tool.name.clone()).collect())
    }

    /// Fails for an agent that is not there.
    pub fn check_agent(&self, name: &str) -> Result<(), AssistantError> {
        match self.inner.agents.has(name) {
            true => Ok(()),
            false => Err(AssistantError::NoAgent(name.to_owned())),
        }
    }

    pub async fn search_assistants(&self, query: AssistantQuery) -> Result<Vec<Assistant>, AssistantError> {
        let query = self.shown(query).await?;
        Ok(self.inner.store.search_assistants(&query).await?)
    }

    pub async fn count_assistants(&self, query: AssistantQuery) -> Result<u64, AssistantError> {
        let query = self.shown(query).await?;
        Ok(self.inner.store.count_assistants(&query).await?)
    }

    /// Of the agents that are there now.
    async fn shown(&self, query: AssistantQuery) -> Result<AssistantQuery, AssistantError> {
        if let Some(graph) = &query.graph {
            self.check_agent(graph)?;
        }
        let agents = self.register_agents().await?.into_iter().map(|agent| agent.name).collect();
        Ok(AssistantQuery { agents, ..query })
    }

    /// The agents there are, each with its assistant: makes those that are missing.
    pub(super) async fn register_agents(&self) -> Result<Vec<AgentInfo>, StoreError> {
        let agents = self.inner.agents.agents();
        for agent in &agents {
            if self.registered().contains(&agent.name) {
                continue;
            }
            let id = assistant_id(&agent.name);
            if self.inner.store.assistant(&id).await?.is_none() {
                self.inner.store.create_assistant(system(id, agent.clone(), self.now())).await?;
            }
            self.registered().insert(agent.name.clone());
        }
        Ok(agents)
    }

    fn registered(&self) -> std::sync::MutexGuard<'_, std::collections::HashSet<String>> {
        self.inner.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn system(id: AssistantId, agent: AgentInfo, now: hart_kernel::Timestamp) -> Assistant {
    Assistant {
        id,
        graph: agent.name.clone(),
        name: agent.name,
        description: agent.description,
        config: Map::new(),
        context: Map::new(),
        metadata: Map::from_iter([("created_by".to_owned(), Value::from("system"))]),
        version: 1,
        system: true,
        created_at: now,
        updated_at: now,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_id_is_the_one_langgraph_gives() {
        assert_eq!(super::assistant_id("agent").as_str(), "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
    }
}
