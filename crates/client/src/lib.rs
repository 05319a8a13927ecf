//! What a user of the system can ask it, and the asking of a server over HTTP.
//!
//! Invariant: whoever asks cannot tell whether the agent works in this process or behind a server: both are told by
//! the same frames, read by the same decoder.

mod ask;
mod client;
mod decoder;
mod error;
mod event;
mod frame;
mod http;
mod record;
mod stream;
mod thread_name;
mod values;

pub use ask::{Ask, Words};
pub use async_trait::async_trait;
pub use client::Client;
pub use decoder::Decoder;
pub use error::{ClientError, Failure};
pub use event::{Answer, End, Event};
pub use frame::{Frame, StreamFrame};
pub use http::HttpClient;
pub use jiff::Timestamp;
pub use record::{Artifact, Location, ModelInfo, RunInfo, ThreadState, ThreadSummary};
pub use stream::{EventStream, Following, RunStream};
pub use thread_name::{id_of, name_of};
pub use values::Values;
