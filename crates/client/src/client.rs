//! What a user of the system can ask it.
//!
//! Invariant: it is the whole of it: the command line, chat platforms and editors ask nothing else.

use async_trait::async_trait;
use futures_util::StreamExt;
use hart_types::{Resume, RunId, ThreadId};

use crate::ask::Ask;
use crate::error::ClientError;
use crate::event::{Answer, End, Event};
use crate::record::{Artifact, ModelInfo, RunInfo, ThreadState, ThreadSummary};
use crate::stream::{EventStream, RunStream};

#[async_trait]
pub trait Client: Send + Sync {
    /// Begins a run and hands over its frames, as the server streams them. Dropping them stops the run.
    async fn start(&self, ask: Ask) -> Result<RunStream, ClientError>;

    /// The frames of a run from its first one on, whoever began it and whether or not it has ended.
    async fn join(&self, run: &RunId) -> Result<RunStream, ClientError>;

    /// The newest `limit` threads, the one that was used last first.
    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, ClientError>;

    /// What a thread has come to.
    async fn thread(&self, id: &ThreadId) -> Result<ThreadState, ClientError>;

    /// Deletes a thread with its files.
    async fn delete_thread(&self, id: &ThreadId) -> Result<(), ClientError>;

    /// The newest `limit` runs, of one thread or of all.
    async fn runs(&self, thread: Option<&ThreadId>, limit: usize) -> Result<Vec<RunInfo>, ClientError>;

    async fn run(&self, id: &RunId) -> Result<RunInfo, ClientError>;

    /// Stops a run and returns when it has ended. One that has ended already stays as it is.
    async fn cancel(&self, run: &RunId) -> Result<(), ClientError>;

    /// The models there are to choose from, the default first.
    async fn models(&self) -> Result<Vec<ModelInfo>, ClientError>;

    /// The files a thread has handed over so far.
    async fn artifacts(&self, thread: &ThreadId) -> Result<Vec<Artifact>, ClientError>;

    /// The content of one of them.
    async fn artifact(&self, thread: &ThreadId, path: &str) -> Result<Vec<u8>, ClientError>;

    /// Where one that a state speaks of is to be had.
    fn locate(&self, thread: &ThreadId, path: &str) -> Option<Artifact>;

    /// Asks, and tells what happens as it happens. The run goes on whether or not it is read; dropping the stream
    /// cancels it.
    async fn stream(&self, ask: Ask) -> Result<EventStream, ClientError> {
        Ok(self.start(ask).await?.into_events())
    }

    /// Asks, and waits for all that comes of it. Dropping the future cancels the run.
    async fn ask(&self, ask: Ask) -> Result<Answer, ClientError> {
        let mut events = self.stream(ask.without_states()).await?;
        while let Some(event) = events.next().await {
            if let Event::End(End { usage, values, interrupts }) = event? {
                let (thread, run) = (events.thread().clone(), events.run().clone());
                let artifacts = values.artifacts();
                let artifacts = artifacts.iter().filter_map(|path| self.locate(&thread, path)).collect();
                let text = values.last_words();
                return Ok(Answer { text, thread, run, usage, artifacts, values, interrupts });
            }
        }
        Err(ClientError::Dropped)
    }

    /// Asks, and waits for the answer's text. A run that pauses is [`ClientError::Paused`].
    async fn chat(&self, ask: Ask) -> Result<String, ClientError> {
        let answer = self.ask(ask).await?;
        match answer.interrupts() {
            [] => Ok(answer.text),
            _ => Err(ClientError::Paused { thread: answer.thread }),
        }
    }

    /// Answers what a paused thread asked, and waits for what comes of it.
    async fn resume(&self, thread: &ThreadId, answer: Resume) -> Result<Answer, ClientError> {
        self.ask(Ask::resume(thread.clone(), answer)).await
    }
}
