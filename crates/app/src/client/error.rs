//! Why a client could not do what it was asked.
//!
//! Invariant: each says what to do next, in the words of somebody who writes a program.

use std::io;
use std::path::PathBuf;

use hart_kernel::{BuildError, RunError};
use hart_types::ThreadId;

use crate::app::{OpenError, StartError, StateError};
use crate::choice::ChooseError;
use crate::config::ConfigError;
use crate::thread_log::LockError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(
        "the current directory cannot be used; change to one that exists, or build with `no_file()` and `home(…)`"
    )]
    Directory(#[source] io::Error),
    #[error("nothing says where threads and files are kept; give the builder a `home(…)`")]
    NoHome,
    #[error("the agent cannot be built; change what was added to the builder, or `features`")]
    Agent(#[from] BuildError),
    #[error(
        "there is no model; name one in `models` of the configuration, set a provider's key, give the builder a \
         `model(…)`, or ask for `demo`"
    )]
    NoModel,
    #[error(transparent)]
    Model(#[from] ChooseError),
    #[error("thread `{0}` is busy with another run; wait for its end, cancel it, or use another thread")]
    Busy(ThreadId),
    #[error("{} cannot be used; check that the data directory is writable, or build with another `home(…)`", path.display())]
    Storage {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("there is no thread `{0}`; `threads` lists those there are")]
    NoThread(ThreadId),
    #[error("only the checkpointer that was given knows its threads; ask it to {0} them")]
    ForeignThreads(&'static str),
    #[error("thread `{thread}` waits for an answer; give it with `resume`")]
    Paused { thread: ThreadId },
    /// The thread keeps what was done until then.
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the client is closed; build another one")]
    Closed,
    #[error(
        "the run was dropped before its end: its runtime was shut down, or it panicked; the thread can go on"
    )]
    Dropped,
}

impl From<ConfigError> for ClientError {
    fn from(error: ConfigError) -> Self {
        Self::Open(error.into())
    }
}

impl From<LockError> for ClientError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Busy(thread) => Self::Busy(thread),
            LockError::Io { path, source } => Self::Storage { path, source },
        }
    }
}

impl From<StartError> for ClientError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Thread(error) => error.into(),
            StartError::Agent(error) => error.into(),
        }
    }
}

impl From<StateError> for ClientError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Agent(error) => error.into(),
            StateError::Thread(error) => error.into(),
        }
    }
}
