//! What a sandbox can do, whatever stands behind it.
//!
//! Invariant: every operation takes a [`VPath`] and reaches nothing outside the sandbox's roots.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use hart_types::{SandboxId, ThreadId, UserId};
use tokio_util::sync::CancellationToken;

use crate::error::{Result, SandboxError};
use crate::exec::{Exec, ExecOutput, OutputSink};
use crate::open::{Incoming, OpenFile};
use crate::path::{PathError, VPath};
use crate::tier::{Tier, TierReport};

/// An isolated place of one thread: files and commands.
#[async_trait]
pub trait Sandbox: Send + Sync + fmt::Debug {
    fn id(&self) -> &SandboxId;

    fn capabilities(&self) -> Capabilities;

    /// Reads a path as the model wrote it, knowing also this sandbox's configured mounts.
    fn path(&self, text: &str) -> Result<VPath, PathError>;

    /// Where a path really leads, links followed. What does not exist leads to where it would be made; a link that
    /// leads nowhere is an error.
    async fn resolve(&self, path: &VPath) -> Result<VPath>;

    /// Runs a shell command and waits for its end, its timeout, or `cancel`.
    ///
    /// Whatever way it ends, and also when the future is dropped, no process of it stays alive. (Where commands run
    /// unconfined, that holds only for those that stayed in its process group.)
    async fn exec(
        &self,
        exec: Exec,
        on_output: Option<&dyn OutputSink>,
        cancel: &CancellationToken,
    ) -> Result<ExecOutput>;

    async fn read(&self, path: &VPath) -> Result<Vec<u8>>;

    async fn read_text(&self, path: &VPath) -> Result<String> {
        String::from_utf8(self.read(path).await?).map_err(|_| SandboxError::NotUtf8(path.clone()))
    }

    /// Some lines of a file. Unlike [`Self::read`] it takes files of any size.
    async fn read_lines(&self, path: &VPath, query: LineQuery) -> Result<Lines> {
        let content = self.read(path).await?;
        crate::files::scan(content.as_slice(), content.len() as u64, query)
            .map_err(|source| SandboxError::io(path, source))
    }

    /// A short text that differs when the file's content differs.
    async fn mark(&self, path: &VPath) -> Result<String> {
        Ok(crate::files::content_mark(&self.read(path).await?))
    }

    /// Writes a file, with its parent directories. A reader sees the old content or the new, nothing between.
    async fn write(&self, path: &VPath, content: &[u8], mode: WriteMode) -> Result<()>;

    /// Writes a file of any size from its parts, as they come. It is there whole or not at all, whatever happens on the
    /// way; without `replace` it fails with `AlreadyExists` if there is something at the path. Returns its size.
    async fn receive(&self, path: &VPath, parts: &mut dyn Incoming, replace: bool) -> Result<u64> {
        let mut content = Vec::new();
        while let Some(part) = parts.next().await.map_err(|source| SandboxError::io(path, source))? {
            content.extend_from_slice(&part);
        }
        let mode = if replace { WriteMode::Overwrite } else { WriteMode::CreateNew };
        self.write(path, &content, mode).await.map(|()| content.len() as u64)
    }

    /// Opens a file of any size to read parts of it. It stays the same file, whatever is put in its place meanwhile.
    async fn open(&self, path: &VPath) -> Result<OpenFile> {
        let modified = self.stat(path).await?.modified;
        Ok(OpenFile::held(self.read(path).await?.into(), modified))
    }

    /// Writes into an archive ([`crate::LARGE_RESULTS`], [`crate::HISTORY`]): places that the model's tools and
    /// commands read and cannot write, so that what is kept there is what was said.
    async fn archive(&self, path: &VPath, content: &[u8], mode: WriteMode) -> Result<()>;

    /// Reads a file, hands it to `edit` and writes what it returns, while other writes to this path wait.
    ///
    /// `None` leaves the file as it is. Returns whether the file was written.
    async fn modify(
        &self,
        path: &VPath,
        edit: &mut (dyn for<'a> FnMut(&'a [u8]) -> Option<Vec<u8>> + Send),
    ) -> Result<bool>;

    async fn stat(&self, path: &VPath) -> Result<Stat>;

    /// What is in a directory, `depth` levels deep (at least 1), sorted, without noise such as `.git`.
    async fn list(&self, path: &VPath, depth: usize) -> Result<Listing>;

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult>;

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult>;

    /// Removes a file, a link (not its target) or an empty directory.
    async fn remove(&self, path: &VPath) -> Result<()>;

    /// Keeps what came of a command where no command can reach it; false where there is no such place.
    async fn keep_receipt(&self, _key: &str, _content: Vec<u8>) -> Result<bool> {
        Ok(false)
    }

    /// What was kept under this key, by whichever process.
    async fn receipt(&self, _key: &str) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    async fn forget_receipt(&self, _key: &str) -> Result<()> {
        Ok(())
    }
}

/// Gives threads their sandboxes.
#[async_trait]
pub trait SandboxProvider: Send + Sync + fmt::Debug {
    async fn acquire(&self, thread: &ThreadId, user: &UserId) -> Result<Arc<dyn Sandbox>>;

    async fn get(&self, id: &SandboxId) -> Option<Arc<dyn Sandbox>>;

    /// The caller is done with it; its files stay.
    async fn release(&self, id: &SandboxId) -> Result<()>;

    /// Ends what runs and gives out nothing more.
    async fn shutdown(&self);

    fn tier(&self) -> TierReport;

    /// What every sandbox it gives out has, as far as that can be said beforehand.
    fn layout(&self) -> Layout {
        let tier = self.tier().tier;
        Layout { capabilities: Capabilities::new(tier, tier == Tier::Host), mounts: Vec::new() }
    }
}

/// What a sandbox has beyond the thread's own directories, the archives and the skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub capabilities: Capabilities,
    pub mounts: Vec<MountPoint>,
}

/// A directory that all threads share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint {
    pub path: String,
    pub read_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// How commands are confined; [`Tier::Refused`] means `exec` always answers `Unavailable`.
    pub tier: Tier,
    /// Whether commands reach the network.
    pub network: bool,
}

impl Capabilities {
    pub fn new(tier: Tier, network: bool) -> Self {
        Self { tier, network }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    Overwrite,
    Append,
    /// Fails with `AlreadyExists` if there is something at the path.
    CreateNew,
}

/// Which lines of a file, counted from 1, both ends included, and how much of them at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineQuery {
    pub first: u64,
    pub last: u64,
    pub max_bytes: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The file's first bytes, to know its kind by.
    pub head: Vec<u8>,
    pub size: u64,
    /// The lines, as far as they fit; the last one may be cut anywhere.
    pub text: Vec<u8>,
    /// More was asked for than fits.
    pub cut: bool,
    /// How many characters the first of the lines has, its end included.
    pub first_line_chars: u64,
    /// `None` where counting would take too long.
    pub total: Option<u64>,
    pub at_least: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub kind: EntryKind,
    pub size: u64,
    /// Seconds since 1970.
    pub modified: i64,
    pub read_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    File,
    Directory,
    Symlink,
    /// A socket, FIFO or device.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: VPath,
    pub kind: EntryKind,
    /// Zero for anything but a file.
    pub size: u64,
    /// 1 for what is directly in the listed directory.
    pub depth: usize,
}

/// Entries in path order, compared name by name (as bytes): a directory comes directly before its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub entries: Vec<Entry>,
    pub truncated: bool,
}

#[derive(Clone, Debug)]
pub struct GlobQuery {
    pub base: VPath,
    /// Without a `/`: matched against names at any depth. Else against the path below `base`: `*` stays in one
    /// directory, `**` crosses them, a leading `/` or `./` begins at `base`.
    pub pattern: String,
    pub include_dirs: bool,
    pub max_results: usize,
    pub shows: Shows,
}

impl GlobQuery {
    pub fn new(base: VPath, pattern: impl Into<String>) -> Self {
        Self { base, pattern: pattern.into(), include_dirs: false, max_results: 200, shows: Shows::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobResult {
    pub paths: Vec<VPath>,
    pub truncated: bool,
}

/// Which paths a search tells of; all of them by itself. What is hidden uses up no room and is not counted anywhere.
#[derive(Clone, Default)]
pub struct Shows(Option<Arc<Judge>>);

type Judge = dyn Fn(&VPath) -> bool + Send + Sync;

impl Shows {
    /// Those that were shown before and that `also` shows.
    #[must_use]
    pub fn narrowed(self, also: impl Fn(&VPath) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(move |path| self.path(path) && also(path))))
    }

    pub fn path(&self, path: &VPath) -> bool {
        self.0.as_ref().is_none_or(|shows| shows(path))
    }

    /// The path is made only where somebody asks.
    pub(crate) fn file(&self, path: impl FnOnce() -> VPath) -> bool {
        self.0.as_ref().is_none_or(|shows| shows(&path()))
    }
}

impl fmt::Debug for Shows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Shows(some)" } else { "Shows(all)" })
    }
}

#[derive(Clone, Debug)]
pub struct GrepQuery {
    /// A directory, or one file.
    pub base: VPath,
    pub pattern: String,
    /// Only files that match, by the rules of [`GlobQuery::pattern`].
    pub glob: Option<String>,
    pub literal: bool,
    pub case_sensitive: bool,
    pub output: GrepOutput,
    /// Lines to show before and after each match, at most 20. Only for [`GrepOutput::Lines`].
    pub before: usize,
    pub after: usize,
    /// Of lines, or of files where those are asked for.
    pub max_results: usize,
    pub shows: Shows,
}

impl GrepQuery {
    pub fn new(base: VPath, pattern: impl Into<String>) -> Self {
        Self {
            base,
            pattern: pattern.into(),
            glob: None,
            literal: false,
            case_sensitive: false,
            output: GrepOutput::Lines,
            before: 0,
            after: 0,
            max_results: 100,
            shows: Shows::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GrepOutput {
    /// Every line that matches.
    #[default]
    Lines,
    /// The files that have one.
    Files,
    /// The files, and how many lines match in each.
    Counts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepMatch {
    pub path: VPath,
    pub line: u64,
    /// The line, or 200 characters of it around the match, with `…` where it is cut.
    pub text: String,
    pub cut: bool,
    /// What stands directly before it and after it. A line is given once: where two matches are close, what lies
    /// between them comes after the first.
    pub before: Vec<String>,
    pub after: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepFile {
    pub path: VPath,
    /// How many lines match, if they were counted.
    pub lines: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrepResult {
    pub matches: Vec<GrepMatch>,
    /// Instead of `matches`, where files are asked for.
    pub files: Vec<GrepFile>,
    pub truncated: bool,
    /// Files that were not searched because they are too large.
    pub skipped_large: usize,
    /// Files that were not searched because they are not text.
    pub skipped_binary: usize,
}
