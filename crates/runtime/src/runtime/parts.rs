//! What a runtime is given.
//!
//! Invariant: nothing is looked up elsewhere.

use std::fmt;
use std::sync::Arc;

use hart_kernel::Clock;

use super::Retention;
use crate::port::Store;
use crate::request::AgentFactory;
use crate::workspaces::Workspaces;

/// What a runtime is made of.
#[derive(Clone)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub agents: Arc<dyn AgentFactory>,
    pub workspaces: Arc<dyn Workspaces>,
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("store", &self.store).finish_non_exhaustive()
    }
}

/// How a runtime deals with what others left behind, and with what is old.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub adopt: Adopt,
    /// Whether a run that was being executed goes on; otherwise it ends with an error.
    pub resume: bool,
    /// How many attempts may begin at the same step before a run is given up.
    pub max_tries: u32,
    pub retention: Retention,
}

impl Default for Settings {
    fn default() -> Self {
        Self { adopt: Adopt::Everything, resume: true, max_tries: 5, retention: Retention::default() }
    }
}

/// Which runs of processes that are no more are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopt {
    /// All of them: for servers.
    Everything,
    /// Those that runs of this process would have to wait for: for a process that is here for one run.
    InTheWay,
}
