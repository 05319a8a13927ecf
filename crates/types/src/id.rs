//! Ids are types: a thread's id cannot be passed where a run's is expected.
//!
//! Invariant: an id is opaque text. Nothing in hart parses one.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// A fresh id that sorts by creation time.
            pub fn generate() -> Self {
                Self(uuid::Uuid::now_v7().to_string().into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )* };
}

id! {
    /// A conversation with its files.
    ThreadId,
    /// One execution of an agent on a thread.
    RunId,
    /// One message; stable between its streamed chunks and the final message.
    MessageId,
    /// One tool call, as the provider (or our repair of it) named it.
    ToolCallId,
    /// One durable step of a thread.
    CheckpointId,
    /// One sandbox instance.
    SandboxId,
    /// The owner of threads.
    UserId,
    /// A configured agent that runs can name.
    AssistantId,
    /// A schedule that starts runs.
    CronId,
    /// One process that executes runs, from its start to its end.
    NodeId,
}
