//! Why a run, or the making of an agent, failed.
//!
//! Invariant: `RunError` is for the client and says what to do next; what only the operator needs is its source.

use crate::{ChainError, CheckpointError, HookError, ModelError, ModelErrorKind, ResumeError, StateError};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    #[error("cancelled")]
    Cancelled,
    #[error(
        "stopped: the time limit of {:.0?} is over; what was done is kept. Go on with another message, or raise the limit",
        limit
    )]
    OutOfTime { limit: std::time::Duration },
    #[error(
        "Recursion limit of {limit} reached without hitting a stop condition. You can increase the limit by setting the \
         `recursion_limit` config key, or split the task. \
         `max_recursion_limit` of the server's configuration is the most there can be"
    )]
    RecursionLimit { limit: u32 },
    #[error("Received no input for __start__: nothing was said on the thread yet; send a message")]
    EmptyInput,
    #[error(transparent)]
    Model(ModelError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error("the input does not fit the thread's state")]
    Input(#[source] StateError),
    #[error("{place} failed")]
    Hook {
        place: String,
        #[source]
        source: HookError,
    },
    #[error("the thread could not be read or saved; what was done since the last step may be lost")]
    Checkpoint(#[source] CheckpointError),
}

impl RunError {
    pub(crate) fn hook(place: impl Into<String>, source: HookError) -> Self {
        match source {
            HookError::Model(error) if error.kind == ModelErrorKind::Cancelled => Self::Cancelled,
            HookError::Model(error) => Self::Model(error),
            // What a call was about to do could not be written down.
            HookError::Other(source) if source.is::<CheckpointError>() => match source.downcast() {
                Ok(error) => Self::Checkpoint(*error),
                Err(source) => Self::Hook { place: place.into(), source: HookError::Other(source) },
            },
            source => Self::Hook { place: place.into(), source },
        }
    }
}

/// Everything that can be wrong with an agent is found when it is built, not mid-run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("two tools are called `{name}`: one from {first}, one from {second}; rename or drop one of them")]
    DuplicateTool { name: String, first: String, second: String },
    /// The parts are sound, but together they would not keep what one of them promises.
    #[error("{0}")]
    Refused(String),
}
