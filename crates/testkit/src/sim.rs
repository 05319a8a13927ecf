//! A machine that is made of nothing but a seed: processes that are killed and stopped at any place, a disk that tears,
//! fills up, fails and forgets what was not synced. Time is tokio's, paused.
//!
//! Invariant: it has never heard of what is simulated, and the same seed makes the same decisions.

mod disk;
mod locks;
mod process;
mod random;
mod seeds;
mod vfs;

pub use disk::{Cut, Disk, Fault, Loss};
pub use process::{Machine, Process, Trouble};
pub use random::Random;
pub use seeds::each_seed;
pub use vfs::Mount;
