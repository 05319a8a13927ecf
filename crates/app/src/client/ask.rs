//! What one asks of a client: words or an answer, and how this one time differs from the rest.
//!
//! Invariant: what is not said here is as the client was built.

use hart_agent::Mode;
use hart_kernel::{Resume, RunInput, Update};
use hart_types::{Message, ThreadId};
use tokio_util::sync::CancellationToken;

/// A string is one; more is said by name:
///
/// ```
/// use hart_app::{Ask, Mode};
///
/// let ask = Ask::new("And now as a PDF.").thread("t1").mode(Mode::Flash).recursion_limit(50);
/// # let _ = ask;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Ask {
    pub(super) words: Words,
    pub(super) thread: Option<ThreadId>,
    pub(super) model: Option<String>,
    pub(super) mode: Mode,
    pub(super) plan_mode: Option<bool>,
    pub(super) recursion_limit: Option<u32>,
    pub(super) cancel: Option<CancellationToken>,
}

#[derive(Clone, Debug)]
pub(super) enum Words {
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
            model: None,
            mode: Mode::default(),
            plan_mode: None,
            recursion_limit: None,
            cancel: None,
        }
    }

    /// Goes on with this conversation and its files; a name that nobody used yet begins one.
    pub fn thread(mut self, thread: impl Into<ThreadId>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Another model than the default one, by its name in [`Client::models`](crate::Client::models).
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// How hard to think; [`Mode::Flash`] does not.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether to keep a list of steps, whatever the mode says.
    pub fn plan_mode(mut self, on: bool) -> Self {
        self.plan_mode = Some(on);
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
}

impl<T: Into<String>> From<T> for Ask {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl From<Words> for RunInput {
    fn from(words: Words) -> Self {
        match words {
            Words::Say(text) => Update::none().messages(Message::human(text)).into(),
            Words::Answer(resume) => resume.into(),
        }
    }
}
