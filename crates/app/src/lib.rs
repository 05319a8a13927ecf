//! Reads the configuration, chooses implementations and wires them; as a library it is the embedded SDK.
//!
//! Invariant: this is the only crate that reads the environment or a configuration file, and it does so once, at its
//! edge. Everything further in gets values.

mod app;
mod audit_file;
mod choice;
pub mod config;
pub mod demo;
mod doctor;
mod env;
mod frame;
mod home;
mod profiles;
mod sheet;
mod thread_log;
mod wire;

pub use app::{App, Artifact, OpenError, ProbeError, StartError, StateError, Task, TaskInput};
pub use choice::{ChooseError, ModelChoice, ModelListing, Reason};
pub use doctor::{Finding, Health};
pub use env::Env;
pub use frame::Frame;
pub use hart_agent::Mode;
pub use hart_kernel::{
    AgentEvent, Ended, EventSink, Interrupt, ModelError, Resume, RunError, RunReport, async_trait,
};
pub use hart_models::probe::{self, Check, Outcome, Profile};
pub use hart_sandbox::{Tier, TierReport};
pub use sheet::{ModelSheet, SheetRow};
pub use thread_log::LockError;
pub use tokio_util::sync::CancellationToken;
