//! An agent as LangGraph's assistant.
//!
//! Invariant: the assistant of an agent has an id that follows from the agent's name, on every server.

use hart_runtime::AgentInfo;
use hart_types::AssistantId;
use serde_json::{Value, json};
use uuid::Uuid;

/// The namespace LangGraph makes the ids of deployed graphs in.
const GRAPHS: Uuid = Uuid::from_u128(0x6ba7_b821_9dad_11d1_80b4_00c0_4fd4_30c8);

pub(crate) fn id(agent: &str) -> AssistantId {
    AssistantId::from(Uuid::new_v5(&GRAPHS, agent.as_bytes()).to_string())
}

pub(crate) fn json(agent: &AgentInfo, created_at: &str) -> Value {
    json!({
        "assistant_id": id(&agent.name),
        "graph_id": agent.name,
        "config": {},
        "context": {},
        "metadata": {"created_by": "system"},
        "name": agent.name,
        "created_at": created_at,
        "updated_at": created_at,
        "version": 1,
        "description": agent.description,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_id_is_the_one_langgraph_gives() {
        assert_eq!(super::id("agent").as_str(), "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
    }
}
