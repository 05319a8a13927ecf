//! Threads on disk: one append-only file of steps per thread.
//!
//! Invariant: a step that was appended is read back whole or not at all, and appending costs the step's size, whatever
//! the length of the thread.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hart_kernel::{CheckpointError, Checkpointer, Step, async_trait};
use hart_sandbox::ThreadDirs;
use hart_types::{CheckpointId, ThreadId, UserId};

/// Keeps each thread of one user in `{home}/users/{user}/threads/{thread}/log.jsonl`.
#[derive(Clone, Debug)]
pub(crate) struct ThreadLog {
    home: PathBuf,
    user: UserId,
}

/// While it lives, no other process runs this thread.
#[derive(Debug)]
pub(crate) struct ThreadLock {
    file: File,
}

impl Drop for ThreadLock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being started may still hold a copy of the descriptor.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the thread's lock could not be given back");
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "thread `{0}` is busy: another hart is working on it; wait for it, or leave out --thread to start a new one"
    )]
    Busy(ThreadId),
    #[error("cannot use {path}; check that the data directory is writable, or set HART_HOME")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl ThreadLog {
    pub(crate) fn new(home: PathBuf, user: UserId) -> Self {
        Self { home, user }
    }

    /// The same for another user's threads.
    pub(crate) fn of(&self, user: &UserId) -> Self {
        Self { home: self.home.clone(), user: user.clone() }
    }

    pub(crate) fn exists(&self, thread: &ThreadId) -> bool {
        self.path(thread).is_file()
    }

    /// Claims the thread. A line cut off by a crash is dropped here, before anything is appended behind it.
    pub(crate) fn lock(&self, thread: &ThreadId) -> Result<ThreadLock, LockError> {
        let path = self.path(thread);
        let io = |source| LockError::Io { path: path.clone(), source };
        if let Some(dir) = path.parent() {
            crate::home::create_private(dir).map_err(io)?;
            note_id(dir, thread).map_err(io)?;
        }
        let mut file = open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Busy(thread.clone())),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        drop_torn_line(&mut file).map_err(io)?;
        Ok(ThreadLock { file })
    }

    /// Every thread there is, with its file; in no order.
    pub(crate) fn all(&self) -> io::Result<Vec<(ThreadId, PathBuf)>> {
        let any = ThreadDirs::new(&self.home, &self.user, &ThreadId::from("any"));
        let Some(folder) = any.root().parent() else { return Ok(Vec::new()) };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let dir = entry?.path();
            let file = dir.join(FILE);
            if let (true, Some(id)) = (file.is_file(), noted_id(&dir)) {
                all.push((id, file));
            }
        }
        Ok(all)
    }

    /// Deletes the thread with its files. The caller holds its lock.
    pub(crate) fn delete(&self, thread: &ThreadId, _lock: &ThreadLock) -> io::Result<()> {
        ThreadDirs::new(&self.home, &self.user, thread).delete()
    }

    fn path(&self, thread: &ThreadId) -> PathBuf {
        ThreadDirs::new(&self.home, &self.user, thread).root().join(FILE)
    }
}

#[async_trait]
impl Checkpointer for ThreadLog {
    async fn append(&self, thread: &ThreadId, steps: Vec<Step>) -> Result<(), CheckpointError> {
        let path = self.path(thread);
        blocking(move || {
            let mut lines = Vec::new();
            for step in steps {
                serde_json::to_writer(&mut lines, &step)?;
                lines.push(b'\n');
            }
            let mut file = open(&path)?;
            let before = file.metadata()?.len();
            file.write_all(&lines).and_then(|()| file.sync_data()).inspect_err(|_| {
                // Half a line would spoil the next one. Where even this fails, the next run drops the torn end.
                let _ = file.set_len(before);
            })
        })
        .await
        .map_err(|source| failed("cannot save the thread", &self.path(thread), source))
    }

    async fn load(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        let at = at.cloned();
        let path = self.path(thread);
        blocking(move || Ok(lineage(read(&path)?, at)))
            .await
            .map_err(|source| failed("cannot read the thread", &self.path(thread), source))
    }
}

const FILE: &str = "log.jsonl";
/// Holds the thread's id where its folder cannot be called by it.
const ID_FILE: &str = "id";

fn note_id(dir: &Path, thread: &ThreadId) -> io::Result<()> {
    let named = dir.file_name().is_some_and(|name| name == thread.as_str());
    let file = dir.join(ID_FILE);
    if named || file.exists() { Ok(()) } else { fs::write(file, thread.as_str()) }
}

fn noted_id(dir: &Path) -> Option<ThreadId> {
    let noted = fs::read_to_string(dir.join(ID_FILE)).ok();
    let named = || dir.file_name()?.to_str().map(str::to_owned);
    noted.or_else(named).map(ThreadId::from)
}

/// For the owner alone: it holds what people said.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

fn drop_torn_line(file: &mut File) -> io::Result<()> {
    let mut text = Vec::new();
    let length = file.seek(SeekFrom::End(0))?;
    // Whole lines end in a newline; only the tail can be torn, and only its end needs reading.
    let mut start = length;
    while start > 0 {
        start = start.saturating_sub(64 * 1024);
        file.seek(SeekFrom::Start(start))?;
        text.clear();
        file.take(length - start).read_to_end(&mut text)?;
        if let Some(at) = text.iter().rposition(|byte| *byte == b'\n') {
            return file.set_len(start + at as u64 + 1);
        }
    }
    file.set_len(0)
}

/// All whole steps. A line that is not a step is passed over: a damaged thread opens with what is left of it.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Step>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut steps = Vec::new();
    for (number, line) in BufReader::new(file).split(b'\n').enumerate() {
        match serde_json::from_slice(&line?) {
            Ok(step) => steps.push(step),
            Err(error) => {
                tracing::warn!(path = %path.display(), line = number + 1, %error, "not a step; passed over");
            }
        }
    }
    Ok(steps)
}

/// The steps that lead to `at`, or to the last one.
fn lineage(all: Vec<Step>, at: Option<CheckpointId>) -> Vec<Step> {
    let mut wanted = at;
    let mut line = Vec::new();
    for step in all.into_iter().rev() {
        // One that names nobody follows whatever was written before it.
        if wanted.as_ref().is_none_or(|wanted| *wanted == step.id) {
            wanted.clone_from(&step.parent);
            line.push(step);
        }
    }
    line.reverse();
    line
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn failed(what: &str, path: &Path, source: io::Error) -> CheckpointError {
    CheckpointError { message: format!("{what} at {}", path.display()), source: Some(Box::new(source)) }
}

#[cfg(test)]
#[path = "thread_log_tests.rs"]
mod tests;
