//! The frames of one run for one reader, wherever the reader is.
//!
//! Invariant: a frame is handed on once and in order, also when whoever waited for it gave up in between.

use std::sync::Arc;

use hart_types::StreamMode;

use crate::follow::{After, Follower};
use crate::port::StoreError;
use crate::recall::Recall;
use crate::runtime::{Runtime, StateError};
use crate::values::Spelling;
use crate::{Entry, Failure, Frame, Renderer, Run};

#[derive(Debug)]
pub struct RunFrames {
    runtime: Runtime,
    run: Run,
    follower: Follower,
    renderer: Renderer,
    recall: Recall,
    /// Frames up to this number were seen before.
    seen: u64,
    /// Read, but not rendered yet.
    entry: Option<Arc<Entry>>,
    /// Whether the reader knows that the run is over, or did not ask.
    ended: bool,
}

impl Runtime {
    /// What a reader that is behind `after` is told of a run. `children` are the agents inside of its calls.
    pub fn frames(&self, run: Run, modes: Vec<StreamMode>, children: bool, after: After) -> RunFrames {
        let renderer = Renderer::new(run.clone(), modes, children);
        let (seen, from) = match after {
            After::Frame(id) if renderer.remembers() => (id.seq, After::Start),
            After::Frame(id) => (id.seq, after),
            After::Start | After::Now => (0, after),
        };
        RunFrames {
            follower: self.follow(&run.id, from),
            recall: Recall::new(self.clone(), run.thread.clone(), Spelling::State),
            runtime: self.clone(),
            run,
            renderer,
            seen,
            entry: None,
            ended: after == After::Now,
        }
    }
}

impl RunFrames {
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The frames of the next event that has any; none when the run is over and all was read.
    pub async fn next(&mut self) -> Result<Option<Vec<Frame>>, StoreError> {
        loop {
            if self.entry.is_none() {
                self.entry = self.follower.next().await?;
            }
            let Some(entry) = &self.entry else { return Ok(None) };
            let mut frames = frames_of(entry, &mut self.renderer, &mut self.recall).await?;
            self.entry = None;
            self.ended |= frames.iter().any(|frame| frame.event == "end");
            frames.retain(|frame| frame.id.seq > self.seen);
            if !frames.is_empty() {
                return Ok(Some(frames));
            }
        }
    }

    /// Once, at the end: how the run ended, where its log does not say it because its server was killed.
    pub async fn unsaid_end(&mut self) -> Result<Option<UnsaidEnd>, StoreError> {
        if self.ended {
            return Ok(None);
        }
        let record = self.runtime.store().run(&self.run.id).await?;
        let forgotten = record.is_some() && self.runtime.kept(&self.run.id).await?.is_none();
        self.ended = true;
        Ok(Some(match forgotten {
            true => UnsaidEnd::Forgotten,
            false => UnsaidEnd::Ended(record.and_then(|run| run.error)),
        }))
    }
}

/// Why no event tells of the end.
#[derive(Debug)]
pub enum UnsaidEnd {
    /// Its server was killed. This is how the record says that it ended.
    Ended(Option<Failure>),
    /// Its stream is not kept any more: this was not all of it.
    Forgotten,
}

/// What an event looks like to a reader. The renderer is not touched before nothing is awaited any more.
pub async fn frames_of(
    entry: &Entry,
    renderer: &mut Renderer,
    recall: &mut Recall,
) -> Result<Vec<Frame>, StoreError> {
    let values = match renderer.wants_values(entry) {
        true => match recall.values_of(entry).await {
            Ok(values) => values,
            Err(StateError::Store(error)) => return Err(error),
            // The thread or its agent is gone: the event has no state any more.
            Err(_) => None,
        },
        false => None,
    };
    Ok(renderer.render(entry, values.as_ref()))
}
