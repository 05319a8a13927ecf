//! Runs recorded and played: what a run asked of models and tools, and what it was told.
//!
//! Invariant: what is recorded of a call does not grow with the conversation: a message is written once and then named
//! by its hash. No secret is in it: every text goes through the mask before it is written, and before it is compared.

mod compare;
mod difference;
mod lines;
mod player;
mod record;
mod recorder;
mod reel;

use std::fmt;
use std::sync::Arc;

use hart_kernel::Clock;

use crate::port::{Lease, Store};
use crate::{Run, StartRun};

pub use compare::{Divergence, Part, Sums, divergence};
pub use difference::{Difference, Place};
pub use player::{Played, PlayingDeck};
pub use record::RecordedProfile;
pub use recorder::{RecordingDeck, RecordingLimits};
pub use reel::{Reel, ReelError};

/// The text without its secrets; `None` where it has none. Masking twice is masking once.
pub type Mask = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A run that is about to be executed, for whoever records it.
pub struct Recordable<'a> {
    pub store: &'a Arc<dyn Store>,
    pub lease: &'a Lease,
    pub run: &'a Run,
    pub request: &'a StartRun,
    pub attempt: u32,
    /// How many bytes earlier attempts have recorded.
    pub recorded: u64,
    pub clock: &'a Arc<dyn Clock>,
}

impl fmt::Debug for Recordable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recordable")
            .field("run", &self.run.id)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
