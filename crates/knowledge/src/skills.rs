//! Skills: folders with a `SKILL.md` that say how a kind of work is done.
//!
//! Invariant: a skill is offered only if every byte of its package is the one that was scanned and locked.

mod agents_file;
mod archive;
mod bundled;
mod catalogue;
mod evolve;
mod install;
mod library;
mod lock;
mod manifest;
mod mistake;
mod package;
mod required_secrets;
mod review;
mod scan;
mod slash;
mod stamps;
mod states;
mod tarball;
mod tool_names;
mod watch;

pub use agents_file::{AGENTS_FILE, SkillAgent};
pub use bundled::{bundled, lay_out};
pub use catalogue::{Catalogue, Root, Skill, Trouble, TroubleKind};
pub use evolve::{Change, Changed, Evolution, EvolveError, HistoryEntry};
pub use install::{Inspected, InstallError, InstallOptions, Installed};
pub use library::{Library, LibraryConfig, NotInLibrary};
pub use lock::{Approval, Held};
pub use manifest::{Document, MANIFEST, Manifest, is_name};
pub use mistake::{Mistake, MistakeCode, Severity};
pub use package::{Limits, Package, PackageError, PackagedFile};
pub use required_secrets::RequiredSecret;
pub use review::{Opinion, Review, ReviewError, Reviewer, has_executables, review};
pub use scan::{Finding, Level, Scan, scan};
pub use slash::{activation, is_reserved};
pub use tool_names::native_tool;

/// Where skills are seen by the agent.
pub const SHOWN_AT: &str = "/mnt/skills";
/// Where a user's own are.
pub const USER_SHOWN_AT: &str = "/mnt/user-skills";
/// Where those are that hart installed, if `/mnt/skills` is a folder that it does not write to.
pub const INSTALLED_SHOWN_AT: &str = "/mnt/installed-skills";
