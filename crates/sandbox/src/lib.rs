//! Gives a thread an isolated place to run commands and keep files.
//!
//! Invariant: only this crate turns a [`VPath`] (what the model sees) into a [`HostPath`] (what the machine has).

#[cfg(not(target_os = "linux"))]
compile_error!("hart-sandbox needs Linux: it isolates with namespaces and opens files with openat2");

mod audit;
mod cgroup;
mod config;
mod contract;
mod dirs;
mod egress;
mod error;
mod exec;
mod files;
mod host;
mod isolate;
mod local;
mod path;
mod provider;
mod run;
mod search;
mod tier;

pub use audit::Denied;
pub use config::{Mount, SandboxConfig};
pub use contract::{
    Capabilities, Entry, EntryKind, GlobQuery, GlobResult, GrepMatch, GrepQuery, GrepResult, Listing,
    Sandbox, SandboxProvider, Stat, WriteMode,
};
pub use dirs::ThreadDirs;
pub use egress::{HostRule, Network};
pub use error::{Result, SandboxError};
pub use exec::{Exec, ExecOutput, Exit, OutputSink, Stream};
pub use path::{HostPath, OUTPUTS, PathError, SKILLS, UPLOADS, USER_DATA, VPath, WORKSPACE};
pub use provider::LocalSandboxProvider;
pub use tier::{Namespace, Tier, TierReport, probe};
