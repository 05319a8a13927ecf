//! Reads the configuration, chooses implementations and wires them; as a library it is the embedded SDK.
//!
//! Invariant: this is the only crate that reads the environment or a configuration file, and it does so once, at its
//! edge. Everything further in gets values.
//!
//! Whoever embeds hart begins with [`Client`]; the command line uses [`App`], which lies below it.

mod agent_folders;
mod agents;
mod app;
mod audit_file;
mod chaos;
mod choice;
mod client;
pub mod config;
mod connections;
pub mod demo;
mod doctor;
mod env;
mod extensions;
mod home;
mod house;
mod profiles;
mod recording;
mod remote_agents;
mod replay;
mod review;
mod scratch;
mod server;
mod setup_agent;
mod sheet;
mod shelf;
mod skill_desk;
mod subagent_files;
mod told;
mod wire;
mod workshop;
mod workspaces;

pub use app::{App, OpenError, ProbeError, StorageError};
pub use chaos::{ChaosError, ChaosOptions, ChaosReport, ChaosRow, Fault, Verdict};
pub use choice::{ChooseError, ModelChoice, ModelListing, Reason, cassette_of};
pub use client::{Client, ClientBuilder, SetupError};
pub use doctor::{Finding, Health};
pub use env::Env;
pub use hart_agent::Mode;
pub use hart_client::{
    Answer, Artifact, Ask, Client as AnyClient, ClientError, End, Event, EventStream, Failure, Frame,
    HttpClient, Location, ModelInfo, RunInfo, ThreadState, ThreadSummary, Values,
};
pub use hart_gateway::ServeError;
pub use hart_kernel::{ModelError, async_trait};
// A program that embeds hart names one crate and has them all, each of the version that fits.
pub use hart_models::probe::{self, Check, Outcome, Profile};
pub use hart_sandbox::{Tier, TierReport};
pub use hart_types::{Interrupt, Resume};
pub use replay::{ReplayError, Replayed, Replaying};
pub use server::{Server, ServerBuilder, ServerError};
pub use sheet::{ModelSheet, SheetRow};
pub use tokio_util::sync::CancellationToken;
pub use {
    hart_agent as agent, hart_kernel as kernel, hart_knowledge as knowledge, hart_models as models,
    hart_runtime as runtime, hart_store as store, hart_types as types,
};

/// The pages whose Rust is compiled, and run where it can be, with the tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/sdk.md")]
    struct Sdk;
}
