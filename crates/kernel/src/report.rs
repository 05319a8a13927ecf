//! What goes into a run and what comes out of it.
//!
//! Invariant: a report holds the state that was reached, however the run ended.

use crate::{Resume, RunError, Snapshot, State, Update};

/// How a run ended, and the state it reached.
#[derive(Debug)]
pub struct RunReport {
    pub outcome: Result<Ended, RunError>,
    pub values: Snapshot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Finished,
    /// Until somebody answers [`Snapshot::interrupts`].
    Paused,
}

/// What a run starts with.
#[derive(Debug)]
pub enum RunInput {
    /// Writes to the thread, most often a person's words.
    Words(Update),
    /// An answer to what the thread asked, and perhaps writes.
    Answer { resume: Resume, update: Update },
    /// Writes that are nobody's words: goes on where the thread stands.
    Write(Update),
    /// Nothing new: goes on where the thread stands.
    Continue,
    /// Writes behind which nothing is left to do: what was asked is not asked any more.
    End(Update),
}

impl From<Update> for RunInput {
    fn from(update: Update) -> Self {
        Self::Words(update)
    }
}

impl From<Resume> for RunInput {
    fn from(resume: Resume) -> Self {
        Self::Answer { resume, update: Update::none() }
    }
}

impl RunReport {
    pub fn state(&self) -> &State {
        &self.values.state
    }

    /// The last message's text, if the agent had the last word.
    pub fn answer(&self) -> Option<String> {
        let last = self.state().messages().last()?;
        last.as_ai().map(|_| last.text())
    }
}
