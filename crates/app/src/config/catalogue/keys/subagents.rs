//! The keys of `subagents` and `goal`: to whom how much is delegated, and to what end an agent works.
//!
//! Invariant: the defaults told here are those of the types that are read.

use super::{AMOUNT, COUNT, Key, Kind, key};

pub(super) fn keys() -> Vec<Key> {
    let mut keys = subagents();
    keys.extend(goal());
    keys
}

fn goal() -> [Key; 5] {
    [
        key("goal", Kind::Section, "{}", "Holding the agent to the goal of its thread."),
        key(
            "goal.enabled",
            Kind::Bool,
            "true",
            "Whether an agent that ends is judged by the goal, if its thread has one; costs a model call.",
        ),
        key(
            "goal.max_continuations",
            AMOUNT,
            "8",
            "How often it is sent on, in a run; a goal may ask for less.",
        ),
        key(
            "goal.max_no_progress_continuations",
            AMOUNT,
            "2",
            "After how many judgements in a row that say the same it may end.",
        ),
        key("goal.model_name", Kind::Text, "the run's model", "Who judges; a cheap model will do."),
    ]
}

fn subagents() -> Vec<Key> {
    vec![
        key("subagents", Kind::Section, "{}", "Agents that work for the agent."),
        key(
            "subagents.enabled",
            Kind::Bool,
            "in the mode ultra",
            "Whether the agent may delegate: `false` never, `true` in every mode; a run can still do without.",
        ),
        key("subagents.max_concurrent", COUNT, "3", "How many of one answer work at a time."),
        key("subagents.max_total_per_run", COUNT, "6", "How many there may be in a run."),
        key(
            "subagents.on_excess",
            Kind::Choice(&["queue", "refuse"]),
            "queue",
            "What happens to those of an answer beyond `max_concurrent`.",
        ),
        key("subagents.timeout_seconds", Kind::Seconds, "1800", "After which a subagent is ended."),
        key(
            "subagents.progress_timeout_seconds",
            Kind::Seconds,
            "600",
            "A subagent that says nothing for so long is ended.",
        ),
        key(
            "subagents.max_turns",
            COUNT,
            "150 for general-purpose, 60 for bash, 50 for others",
            "How often a subagent's model may be asked.",
        ),
        key(
            "subagents.token_budget",
            Kind::Map,
            "{}",
            "What a subagent may use: `enabled`, `max_tokens` (1000000).",
        ),
        key(
            "subagents.max_tokens_per_run",
            AMOUNT,
            "1000000",
            "What all subagents of a run may use together; 0 is no limit but the run's own.",
        ),
        key(
            "subagents.agents",
            Kind::Map,
            "{}",
            "Other numbers for single ones, by name: `timeout_seconds`, `max_turns`, `model`, `skills`, `middleware`, \
             `token_budget`.",
        ),
        key(
            "subagents.custom_agents",
            Kind::Map,
            "{}",
            "Your own, by name: `description`, `system_prompt`, `tools`, `disallowed_tools`, `skills`, `model`, \
             `max_turns`, `timeout_seconds`, `token_budget`, `middleware`, `permissions`, `response_format`.",
        ),
        key(
            "subagents.remote",
            Kind::Map,
            "{}",
            "Agents on servers that speak LangGraph's protocol, by name: `description`, `url`, `graph_id`, `headers`.",
        ),
    ]
}
