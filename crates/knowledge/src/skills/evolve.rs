//! Lets an agent write skills of its user's, and an operator those of everyone: create, change, delete, look back and go
//! back.
//!
//! Invariant: what is written was scanned whole and reviewed as it will lie there; what was there before is kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hart_kernel::{RunContext, Timestamp};
use serde::{Deserialize, Serialize};

use super::catalogue::Root;
use super::install::Inspected;
use super::library::{Library, in_lock, unknown};
use super::lock::{self, Approval};
use super::manifest::{MANIFEST, is_name};
use super::mistake::{MistakeCode, Severity};
use super::package::{Limits, Package, PackagedFile};
use super::review::{ReviewError, Reviewer};
use super::scan::Finding;

/// What is wanted of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new one, with this `SKILL.md`.
    Create {
        content: String,
    },
    /// This `SKILL.md` instead of the one it has.
    Edit {
        content: String,
    },
    /// Another text in the place of one; `expected` times, or once.
    Patch {
        path: Option<String>,
        find: String,
        replace: String,
        expected: Option<usize>,
    },
    WriteFile {
        path: String,
        content: String,
    },
    RemoveFile {
        path: String,
    },
    Delete,
    /// As it was in this version.
    Rollback {
        version: u32,
    },
}

impl Change {
    const fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Edit { .. } => "edit",
            Self::Patch { .. } => "patch",
            Self::WriteFile { .. } => "write_file",
            Self::RemoveFile { .. } => "remove_file",
            Self::Delete => "delete",
            Self::Rollback { .. } => "rollback",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    pub name: String,
    /// Of the history; what was deleted has one too.
    pub version: u32,
    /// What the scanner noticed and did not forbid.
    pub findings: Vec<Finding>,
    /// What the reviewer said, if one was asked.
    pub review: Option<String>,
}

/// One version of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub version: u32,
    pub action: String,
    pub at: Timestamp,
    pub thread: String,
    pub hash: String,
}

/// Why nothing was changed. Written for the model.
#[derive(Debug, thiserror::Error)]
pub enum EvolveError {
    #[error(
        "`{0}` cannot be a name; use small letters, digits and single hyphens, such as `invoice-checking`"
    )]
    Name(String),
    #[error("there is a skill `{0}` already; use `edit` or `patch`, or choose another name")]
    Exists(String),
    #[error("{0}")]
    Unknown(String),
    #[error("`{0}` is not this user's own skill and cannot be changed here; create one under another name")]
    NotOwn(String),
    #[error("{0}")]
    Arguments(String),
    #[error("the skill would not load:\n{0}")]
    Malformed(String),
    #[error("refused by the scanner, nothing was written:\n{}", lines(.0))]
    Findings(Vec<Finding>),
    #[error("refused by the review, nothing was written: {0}")]
    Review(#[from] ReviewError),
    #[error("`{0}` was changed meanwhile, nothing was written; look at it and try again")]
    Meanwhile(String),
    #[error("it could not be written: {0}")]
    Io(#[from] io::Error),
}

fn lines(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("- {finding}; {}", finding.help)).collect::<Vec<_>>().join("\n")
}

/// Where an agent's skills are written and who looks at them.
#[derive(Clone)]
pub struct Evolution {
    library: Arc<Library>,
    /// Whose they are.
    whose: Root,
    root: PathBuf,
    /// Where earlier versions are; no sandbox sees it.
    history: PathBuf,
    reviewer: Reviewer,
}

/// Older versions are let go of.
const KEPT: usize = 20;
const HISTORY: &str = "skill-history";
const FOLDERS: [&str; 5] = ["references", "templates", "scripts", "assets", "tests"];

impl Evolution {
    /// Of a user's own, which are in `root`. `reviewer` judges what the scanner lets pass.
    pub fn new(library: Arc<Library>, root: PathBuf, reviewer: Reviewer) -> Self {
        let history = root.with_file_name(HISTORY);
        Self { library, whose: Root::User, root, history, reviewer }
    }

    /// Of those that were installed for everyone.
    pub fn for_everyone(library: Arc<Library>, reviewer: Reviewer) -> Self {
        let config = &library.config;
        let (whose, root, history) = (config.installs_to(), config.installs(), config.home.join(HISTORY));
        Self { library, whose, root, history, reviewer }
    }

    pub async fn apply(&self, cx: &RunContext, name: &str, change: &Change) -> Result<Changed, EvolveError> {
        let now = cx.clock.now();
        // Calls of one answer run at once, and each is to see what the one before it wrote.
        let _alone = self.library.alone_with(&self.root.join(name)).await;
        let before = self.find(name, matches!(change, Change::Create { .. }), now)?;
        let folder = before.clone().unwrap_or_else(|| self.root.join(name));
        if let Some(before) = &before
            && self.history(name)?.is_empty()
        {
            // What a person wrote is the first version.
            self.record(name, "before", Some(&read(before)?), cx, now)?;
        }
        if *change == Change::Delete {
            if before.is_none() {
                let what = format!("`{name}` was deleted already; `rollback` brings a version back");
                return Err(EvolveError::Unknown(what));
            }
            let version = self.record(name, change.name(), None, cx, now)?;
            lock::change(&self.library.lock_file(), |lock| {
                fs::remove_dir_all(&folder)?;
                lock.skills.remove(&self.key(&folder));
                Ok(())
            })?;
            return Ok(Changed { name: name.to_owned(), version, findings: Vec::new(), review: None });
        }
        let read_as = before.as_deref().map(read).transpose()?.map(|package| package.hash());
        let package = self.changed(name, before.as_deref(), change)?;
        let inspected =
            Inspected::of(package, Some(name)).map_err(|error| EvolveError::Malformed(error.to_string()))?;
        let Inspected { package, manifest, mistakes, scan } = inspected;
        let errors: Vec<String> = mistakes
            .iter()
            .filter(|mistake| mistake.severity == Severity::Error || mistake.code == MistakeCode::FolderName)
            .map(ToString::to_string)
            .collect();
        if manifest.is_none() || !errors.is_empty() {
            return Err(EvolveError::Malformed(errors.join("\n")));
        }
        if scan.blocked() {
            return Err(EvolveError::Findings(scan.blocking().cloned().collect()));
        }
        // What was written once was reviewed then.
        let review = match change {
            Change::Rollback { .. } => None,
            _ => self.reviewer.look(cx, &package, &scan).await?,
        };
        // Another process may have written to it while a model thought about it.
        if before.as_deref().map(read).transpose()?.map(|package| package.hash()) != read_as {
            return Err(EvolveError::Meanwhile(name.to_owned()));
        }
        self.library.put(&self.key(&folder), &folder, &package, Approval::Written, now)?;
        let version = self.record(name, change.name(), Some(&package), cx, now)?;
        Ok(Changed { name: name.to_owned(), version, findings: scan.findings, review })
    }

    /// The versions of a skill, the oldest first.
    pub fn history(&self, name: &str) -> Result<Vec<HistoryEntry>, EvolveError> {
        if !is_name(name) {
            return Err(EvolveError::Name(shown(name)));
        }
        match fs::read_to_string(self.history_of(name).join(INDEX)) {
            Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// The `SKILL.md` of a version; nothing for one that was deleted or let go of.
    pub fn text_of(&self, name: &str, version: u32) -> Result<Option<String>, EvolveError> {
        let known = self.history(name)?.iter().any(|entry| entry.version == version);
        if !known {
            return Ok(None);
        }
        match fs::read_to_string(self.history_of(name).join(version.to_string()).join(MANIFEST)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The folder of one of these; `None` for one that is to be made.
    fn find(&self, name: &str, new: bool, now: Timestamp) -> Result<Option<PathBuf>, EvolveError> {
        if !is_name(name) {
            return Err(EvolveError::Name(shown(name)));
        }
        let user = (self.whose == Root::User).then_some(self.root.as_path());
        let catalogue = self.library.catalogue(user, now);
        match catalogue.get(name) {
            Some(_) if new => Err(EvolveError::Exists(name.to_owned())),
            Some(skill) if skill.root == self.whose => Ok(skill.folder.clone()),
            Some(_) => Err(EvolveError::NotOwn(name.to_owned())),
            None if new && self.root.join(name).exists() => Err(EvolveError::Exists(name.to_owned())),
            None if new => Ok(None),
            // What was deleted can be brought back.
            None if !self.history(name)?.is_empty() => Ok(None),
            None => Err(EvolveError::Unknown(unknown(&catalogue, name).to_string())),
        }
    }

    fn changed(&self, name: &str, before: Option<&Path>, change: &Change) -> Result<Package, EvolveError> {
        let text = |content: &str| PackagedFile { bytes: content.as_bytes().to_vec(), executable: false };
        if let Change::Create { content } = change {
            return Ok(Package::default().with(MANIFEST, Some(text(content))));
        }
        if let Change::Rollback { version } = change {
            let there =
                self.history(name)?.iter().any(|entry| entry.version == *version && !entry.hash.is_empty());
            let folder = self.history_of(name).join(version.to_string());
            if !there || !folder.is_dir() {
                let what = format!("there is no version {version} to go back to; ask for the `history`");
                return Err(EvolveError::Arguments(what));
            }
            return read(&folder);
        }
        let gone =
            || EvolveError::Arguments(format!("`{name}` was deleted; `rollback` brings a version back"));
        let package = read(before.ok_or_else(gone)?)?;
        match change {
            Change::Create { .. } | Change::Rollback { .. } | Change::Delete => Ok(package),
            Change::Edit { content } => Ok(package.with(MANIFEST, Some(text(content)))),
            Change::Patch { path, find, replace, expected } => {
                let path = path.as_deref().unwrap_or(MANIFEST);
                let now = package.text(path).ok_or_else(|| {
                    EvolveError::Arguments(format!("there is no text file `{}` in it", shown(path)))
                })?;
                let times = if find.is_empty() { 0 } else { now.matches(find.as_str()).count() };
                let wanted = expected.unwrap_or(1);
                if times != wanted {
                    let what = format!(
                        "`find` is in {} {times} times, not {wanted}; quote more of its lines",
                        shown(path)
                    );
                    return Err(EvolveError::Arguments(what));
                }
                let executable = package.get(path).is_some_and(|file| file.executable);
                let file =
                    PackagedFile { bytes: now.replace(find.as_str(), replace).into_bytes(), executable };
                Ok(package.with(path, Some(file)))
            }
            Change::WriteFile { path, content } => {
                let allowed = FOLDERS
                    .iter()
                    .any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')));
                if !allowed {
                    let what = format!(
                        "`path` must be in one of {}; SKILL.md is changed with `edit` or `patch`",
                        FOLDERS.join(", ")
                    );
                    return Err(EvolveError::Arguments(what));
                }
                let files = package.files().map(|(path, file)| (path.to_owned(), file.clone()));
                let files = files.filter(|(have, _)| have != path).chain([(path.clone(), text(content))]);
                Package::from_files(files, &Limits::default())
                    .map_err(|error| EvolveError::Arguments(error.to_string()))
            }
            Change::RemoveFile { path } => match package.get(path) {
                Some(_) if path != MANIFEST => Ok(package.with(path, None)),
                _ => Err(EvolveError::Arguments(format!(
                    "there is no file `{}` that could be removed",
                    shown(path)
                ))),
            },
        }
    }

    fn history_of(&self, name: &str) -> PathBuf {
        self.history.join(name)
    }

    /// What it is called in the lock; see `Found::key`.
    fn key(&self, folder: &Path) -> String {
        match self.whose {
            Root::User => format!("user/{}", folder.display()),
            whose => {
                let inside = folder.strip_prefix(&self.root).unwrap_or(folder);
                in_lock(whose, &inside.to_string_lossy())
            }
        }
    }

    fn record(
        &self,
        name: &str,
        action: &str,
        package: Option<&Package>,
        cx: &RunContext,
        now: Timestamp,
    ) -> Result<u32, EvolveError> {
        let folder = self.history_of(name);
        let mut entries = self.history(name)?;
        let version = entries.last().map_or(0, |last| last.version) + 1;
        if let Some(package) = package {
            package.write_to(&folder.join(version.to_string()), false)?;
        }
        entries.push(HistoryEntry {
            version,
            action: action.to_owned(),
            at: now,
            thread: cx.thread_id.to_string(),
            hash: package.map(Package::hash).unwrap_or_default(),
        });
        let over = entries.len().saturating_sub(KEPT);
        for old in entries.drain(..over) {
            // One that stays is only in the way of nothing.
            let _ = fs::remove_dir_all(folder.join(old.version.to_string()));
        }
        let lines: Vec<String> =
            entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).collect();
        super::states::replace(&folder.join(INDEX), lines.join("\n").as_bytes())?;
        Ok(version)
    }
}

const INDEX: &str = "index.jsonl";

fn read(folder: &Path) -> Result<Package, EvolveError> {
    Package::read_folder(folder, &Limits::default()).map_err(|error| EvolveError::Io(io::Error::other(error)))
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}

impl std::fmt::Debug for Evolution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (root, reviewer) = (&self.root, &self.reviewer);
        f.debug_struct("Evolution").field("root", root).field("reviewer", reviewer).finish_non_exhaustive()
    }
}
