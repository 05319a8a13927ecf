//! What is said while something before it is still on its way to the disk.
//!
//! Invariant: nobody is shown what came behind a step before that step would survive a crash. A disk that is full, or
//! that fails, lifts it: why the run stands still, or ends, must be seen.

use std::sync::Arc;

use super::Tape;

/// As long as it is there, readers see nothing of what was said since it was made.
pub(crate) struct Hold {
    tape: Arc<Tape>,
    from: u64,
    stays: bool,
}

impl Hold {
    pub(crate) fn on(tape: &Arc<Tape>) -> Self {
        let from = {
            let mut reel = tape.reel();
            let from = reel.next;
            reel.holds.push_back(from);
            from
        };
        Self { tape: Arc::clone(tape), from, stays: false }
    }

    /// Nobody is ever shown it: the run is another process's, which tells its own story.
    pub(crate) fn stay(mut self) {
        self.stays = true;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        {
            let mut reel = self.tape.reel();
            if let Some(place) = reel.holds.iter().position(|from| *from == self.from) {
                reel.holds.remove(place);
            }
        }
        self.tape.bump();
    }
}
