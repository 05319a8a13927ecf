//! Why there is no client, and what the parts say in a client's words.
//!
//! Invariant: each says what to do next, in the words of somebody who writes a program.

use std::io;

use hart_client::{ClientError, Failure};
use hart_kernel::BuildError;
use hart_runtime::port::StoreError;
use hart_runtime::{AssistantError, CancelError, StartError, StateError};
use hart_types::ThreadId;

use crate::app::{OpenError, StorageError};
use crate::choice::ChooseError;
use crate::config::ConfigError;

/// Why a client could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
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
}

impl From<ConfigError> for SetupError {
    fn from(error: ConfigError) -> Self {
        Self::Open(error.into())
    }
}

impl From<SetupError> for ClientError {
    fn from(error: SetupError) -> Self {
        Self::Other(Box::new(error))
    }
}

impl From<StorageError> for ClientError {
    fn from(error: StorageError) -> Self {
        Self::Other(Box::new(error))
    }
}

/// A model that cannot be had fails a run, also where it is found out before.
pub(super) fn of_choice(error: ChooseError) -> ClientError {
    match error {
        error @ ChooseError::Unknown { .. } => {
            Failure { error: "UnknownModel".to_owned(), message: error.to_string() }.into()
        }
        error => ClientError::Other(Box::new(error)),
    }
}

pub(super) fn of_store(error: StoreError) -> ClientError {
    ClientError::Other(Box::new(error))
}

pub(super) fn of_assistant(error: AssistantError, agent: &str) -> ClientError {
    match error {
        AssistantError::Store(error) => of_store(error),
        _ => ClientError::NoAgent(agent.to_owned()),
    }
}

/// `name` is what the caller calls the thread.
pub(super) fn of_start(error: StartError, name: &ThreadId) -> ClientError {
    match error {
        StartError::NoThread(_) => ClientError::NoThread(name.clone()),
        StartError::Busy => ClientError::Busy(name.clone()),
        StartError::Closing => ClientError::Closed,
        error @ StartError::KeyTaken => ClientError::Other(Box::new(error)),
        StartError::Store(error) => of_store(error),
    }
}

pub(super) fn of_state(error: StateError, name: &ThreadId) -> ClientError {
    match error {
        StateError::NoThread(_) => ClientError::NoThread(name.clone()),
        error => ClientError::Other(Box::new(error)),
    }
}

/// One that has ended already is what was wanted.
pub(super) fn of_cancel(error: CancelError) -> Option<ClientError> {
    match error {
        CancelError::Ended { .. } => None,
        CancelError::NoRun(run) => Some(ClientError::NoRun(run)),
        CancelError::Store(error) => Some(of_store(error)),
    }
}
