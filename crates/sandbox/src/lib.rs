//! Gives a thread an isolated place to run commands and keep files.
//!
//! Invariant: only this crate turns a [`VPath`] (what the model sees) into a [`HostPath`] (what the machine has).

#[cfg(not(target_os = "linux"))]
compile_error!("hart-sandbox needs Linux: it isolates with namespaces and opens files with openat2");

mod audit;
mod background;
mod cgroup;
mod config;
mod contract;
mod dirs;
mod disk;
mod egress;
mod error;
mod exec;
mod files;
mod host;
mod isolate;
mod local;
mod locks;
mod mask;
mod mounts;
mod open;
mod path;
mod permissions;
mod provider;
mod receipts;
mod restricted;
mod run;
mod save;
mod search;
mod shell_audit;
mod size;
mod snapshot;
mod tier;

pub use audit::Denied;
pub use background::{Background, JobReport, JobState, MAX_BACKGROUND};
pub use config::{Mount, SandboxConfig};
pub use contract::{
    Capabilities, Entry, EntryKind, GlobQuery, GlobResult, GrepFile, GrepMatch, GrepOutput, GrepQuery,
    GrepResult, Layout, LineQuery, Lines, Listing, MountPoint, Sandbox, SandboxProvider, Shows, Stat,
    WriteMode,
};
pub use dirs::ThreadDirs;
pub use egress::{HostRule, Network};
pub use error::{Result, SandboxError};
pub use exec::{Exec, ExecOutput, Exit, OutputSink, Stream};
pub use files::content_mark;
pub use open::{Incoming, OpenFile};
pub use path::{
    HISTORY, HostPath, LARGE_RESULTS, OUTPUTS, PathError, SKILLS, UPLOADS, USER_DATA, USER_SKILLS, VPath,
    WORKSPACE,
};
pub use permissions::{FilesystemPermission, Operation, PermissionMode, Permissions};
pub use provider::LocalSandboxProvider;
pub use restricted::RestrictedSandboxes;
pub use save::{RESULTS, Saved, SavedOutput, result_path};
pub use shell_audit::{AUDIT_RULES, AuditRule, AuditedPart, CommandAudit, Verdict, audit_command, redact};
pub use snapshot::{
    ChangeLimits, ChangeStatus, ChangeSummary, ChangedFile, Restored, SnapshotError, SnapshotId, Snapshots,
    Taken, WorkspaceChanges,
};
pub use tier::{Namespace, Tier, TierReport, probe};
