//! Where the loop goes next.
//!
//! Invariant: `route` is a pure total function; every decision about the next node is made here.

use serde::{Deserialize, Serialize};

/// A stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    BeforeAgent,
    BeforeModel,
    Model,
    AfterModel,
    Tools,
    AfterAgent,
    End,
}

impl Node {
    /// What LangGraph's clients call the work ahead; nothing when there is none.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::BeforeAgent | Self::BeforeModel | Self::Model => Some("model"),
            Self::AfterModel => Some("after_model"),
            Self::Tools => Some("tools"),
            Self::AfterAgent | Self::End => None,
        }
    }
}

/// A jump asked for by a hook or a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goto {
    Model,
    Tools,
    End,
}

/// `pending` says whether the last AI message has tool calls without results.
pub fn route(from: Node, goto: Option<Goto>, pending: bool) -> Node {
    match (from, goto) {
        (Node::AfterAgent | Node::End, _) => Node::End,
        (_, Some(Goto::End)) => Node::AfterAgent,
        (_, Some(Goto::Model)) => Node::BeforeModel,
        // Nothing to run: going to the tools would come straight back with the model none the wiser.
        (_, Some(Goto::Tools)) if pending => Node::Tools,
        (_, Some(Goto::Tools)) => Node::BeforeModel,
        (Node::BeforeAgent, None) => Node::BeforeModel,
        (Node::BeforeModel, None) => Node::Model,
        (Node::Model, None) => Node::AfterModel,
        (Node::AfterModel, None) if pending => Node::Tools,
        (Node::AfterModel, None) => Node::AfterAgent,
        (Node::Tools, None) => Node::BeforeModel,
    }
}

#[cfg(test)]
mod tests {
    use super::{Goto, Node, route};

    /// All 7 × 4 × 2 cases, spelled out: `(from, [none, model, tools, end] without pending calls, … with them)`.
    #[test]
    fn every_case_is_decided() {
        use Node::*;
        let table = [
            (
                BeforeAgent,
                [BeforeModel, BeforeModel, BeforeModel, AfterAgent],
                [BeforeModel, BeforeModel, Tools, AfterAgent],
            ),
            (
                BeforeModel,
                [Model, BeforeModel, BeforeModel, AfterAgent],
                [Model, BeforeModel, Tools, AfterAgent],
            ),
            (
                Model,
                [AfterModel, BeforeModel, BeforeModel, AfterAgent],
                [AfterModel, BeforeModel, Tools, AfterAgent],
            ),
            (
                AfterModel,
                [AfterAgent, BeforeModel, BeforeModel, AfterAgent],
                [Tools, BeforeModel, Tools, AfterAgent],
            ),
            (
                Tools,
                [BeforeModel, BeforeModel, BeforeModel, AfterAgent],
                [BeforeModel, BeforeModel, Tools, AfterAgent],
            ),
            (AfterAgent, [End; 4], [End; 4]),
            (End, [End; 4], [End; 4]),
        ];
        let gotos = [None, Some(Goto::Model), Some(Goto::Tools), Some(Goto::End)];
        for (from, idle, pending) in table {
            for (goto, (idle, pending)) in gotos.into_iter().zip(idle.into_iter().zip(pending)) {
                assert_eq!(route(from, goto, false), idle, "{from:?} {goto:?} without pending calls");
                assert_eq!(route(from, goto, true), pending, "{from:?} {goto:?} with pending calls");
            }
        }
    }
}
