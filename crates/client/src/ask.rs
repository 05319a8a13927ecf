//! What one asks of a client: words or an answer, and how this one time differs from the rest.
//!
//! Invariant: what is not said here is as the client, or the server, has it.

use std::fmt;

use hart_types::{Resume, StreamMode, ThreadId};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// A string is one; more is said by name:
///
/// ```
/// use hart_client::Ask;
///
/// let ask = Ask::new("And now as a PDF.").thread("t1").mode("flash").recursion_limit(50);
/// # let _ = ask;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use]
pub struct Ask {
    pub words: Words,
    /// None makes a new one.
    pub thread: Option<ThreadId>,
    /// Who is asked; the lead agent, where nobody is named.
    pub agent: Option<String>,
    /// What the run chooses: `model_name`, `mode`, `is_plan_mode`, …
    pub options: Map<String, Value>,
    pub recursion_limit: Option<u32>,
    pub cancel: Option<CancellationToken>,
    /// Whether every state on the way is told.
    pub states: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Words {
    Say(String),
    Answer(Resume),
}

impl Ask {
    /// Says something, on a new thread unless [`Ask::thread`] names one.
    pub fn new(text: impl Into<String>) -> Self {
        Self::of(Words::Say(text.into()))
    }

    /// Answers what a paused thread asked.
    pub fn resume(thread: impl Into<ThreadId>, answer: Resume) -> Self {
        Self::of(Words::Answer(answer)).thread(thread)
    }

    fn of(words: Words) -> Self {
        Self {
            words,
            thread: None,
            agent: None,
            options: Map::new(),
            recursion_limit: None,
            cancel: None,
            states: true,
        }
    }

    /// Goes on with this conversation and its files; a name that nobody used yet begins one.
    pub fn thread(mut self, thread: impl Into<ThreadId>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Asks an agent of the user's own.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// Another model than the default one, by its name in [`Client::models`](crate::Client::models).
    pub fn model(self, name: impl Into<String>) -> Self {
        self.option("model_name", name.into())
    }

    /// How hard to think: `flash`, `thinking`, `pro` or `ultra`.
    pub fn mode(self, mode: impl fmt::Display) -> Self {
        self.option("mode", mode.to_string())
    }

    /// Whether to keep a list of steps, whatever the mode says.
    pub fn plan_mode(self, on: bool) -> Self {
        self.option("is_plan_mode", on)
    }

    /// Any other choice that the agent understands.
    pub fn option(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.insert(key.into(), value.into());
        self
    }

    /// At most this many model calls and tool batches, within `max_recursion_limit` of the configuration.
    pub fn recursion_limit(mut self, steps: u32) -> Self {
        self.recursion_limit = Some(steps);
        self
    }

    /// Ends the run when the token is cancelled. Dropping the stream, or the future, does so too.
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Leaves out the states on the way, which repeat all that was said; the end has the last one.
    pub fn without_states(mut self) -> Self {
        self.states = false;
        self
    }

    /// What has to be streamed for its events.
    pub fn modes(&self) -> Vec<StreamMode> {
        use StreamMode::{Custom, MessagesTuple, Tasks, Updates, Values};
        let all = [Values, MessagesTuple, Updates, Custom, Tasks];
        all.into_iter().skip(usize::from(!self.states)).collect()
    }

    /// Whether it begins a thread where there is none: nothing can be answered in one.
    pub fn may_begin(&self) -> bool {
        matches!(self.words, Words::Say(_))
    }

    /// The input of a run, where it is not an answer.
    pub fn input(&self) -> Option<Map<String, Value>> {
        match &self.words {
            Words::Say(text) => {
                let messages = json!([{"type": "human", "content": text}]);
                Some(Map::from_iter([("messages".to_owned(), messages)]))
            }
            Words::Answer(_) => None,
        }
    }
}

impl<T: Into<String>> From<T> for Ask {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}
