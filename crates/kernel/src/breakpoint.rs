//! Where a run is told to stop before it starts.
//!
//! Invariant: a run stops at a breakpoint with nothing asked, and goes on from there when it is continued.

use serde::{Deserialize, Serialize};

use crate::Node;

/// Nodes at which to pause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakpoints {
    pub before: Nodes,
    pub after: Nodes,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nodes {
    All,
    /// `model`, `tools`; other names stop nothing.
    Named(Vec<String>),
}

impl Default for Nodes {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl Nodes {
    pub(crate) fn contain(&self, node: Node) -> bool {
        let name = match node {
            Node::Model => "model",
            Node::Tools => "tools",
            _ => return false,
        };
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}
