//! Why a client could not do what it was asked.
//!
//! Invariant: each says what to do next.

use hart_types::{RunId, ThreadId};
use serde::Deserialize;

/// Why a run failed, as all clients are told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Its class, such as `GraphRecursionError`.
    pub error: String,
    pub message: String,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    #[error("thread `{0}` is busy with another run; wait for its end, cancel it, or use another thread")]
    Busy(ThreadId),
    #[error("there is no thread `{0}`; `threads` lists those there are")]
    NoThread(ThreadId),
    #[error("there is no run `{0}`; `runs` lists those there are")]
    NoRun(RunId),
    #[error("there is no agent `{0}`; agents are folders in `agents` of the data directory")]
    NoAgent(String),
    #[error("there is no file `{0}` in this thread; `artifacts` lists those that were handed over")]
    NoFile(String),
    #[error("thread `{thread}` waits for an answer; give it with `resume`")]
    Paused { thread: ThreadId },
    /// The thread keeps what was done until then.
    #[error(transparent)]
    Run(#[from] Failure),
    /// By its token, by whoever closed the client, or by somebody else.
    #[error("the run was cancelled; what was done until then is kept")]
    Cancelled,
    #[error(
        "there is no model; name one in `models` of the configuration, set a provider's key, give the builder a \
         `model(…)`, or ask for `demo`"
    )]
    NoModel,
    #[error("the client is closed; build another one")]
    Closed,
    /// Its record, and what its thread has come to, are still there.
    #[error(
        "the stream of run `{0}` is not kept any more; its record and its thread still are, and \
         `server.keep_streams_days` says how long streams are"
    )]
    Forgotten(RunId),
    #[error("the run was dropped before its end; the thread can go on")]
    Dropped,
    #[error(
        "{url} does not answer any more; run `{run}` on thread `{thread}` is kept there, and what it comes to is on \
         the thread when the server is back"
    )]
    Lost { url: String, thread: ThreadId, run: RunId },
    #[error("`{url}` is no address of a server; write it like http://127.0.0.1:2026")]
    Address { url: String },
    #[error("no hart answers at {url}; is `hart serve` running there?")]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("what answers at {url} is not hart ({found}); check the address")]
    NotHart { url: String, found: String },
    #[error("{url} asks for {}; give it with --token or HART_TOKEN", if *given { "another token" } else { "a token" })]
    Unauthorized { url: String, given: bool },
    #[error("{url} does not take the request: {detail}")]
    Refused { url: String, status: u16, detail: String },
    #[error("{url} failed: {detail}")]
    Server { url: String, status: u16, detail: String },
    /// What the implementation has to say of its own.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}
