//! Keeps the whole output of a command in a file, once it is too long to be shown.
//!
//! Invariant: what is held in memory is less than what is shown anyway, and the file has a limit.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use crate::audit::Denied;
use crate::exec::{OutputSink, Stream};
use crate::files::{Roots, create_log};
use crate::path::{OUTPUTS, PathError, VPath};

/// The folder below the outputs that holds results too long to be shown.
pub const RESULTS: &str = ".tool-results";

/// A command that prints without end must not fill the disk.
const MAX_SAVED: u64 = 64 << 20;

/// Where the long result of a tool belongs: `{outputs}/{folder}/{tool}-{12 hex digits}.{extension}`.
///
/// `seed` tells calls apart; the same one gives the same path.
pub fn result_path(folder: &str, tool: &str, seed: &str, extension: &str) -> Result<VPath, PathError> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let tool: String = tool.chars().take(40).map(plain).collect();
    let digest = Sha256::digest(seed.as_bytes());
    let hex: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    VPath::parse(&format!("{OUTPUTS}/{folder}/{tool}-{hex}.{extension}"))
}

/// Given to an [`Exec`](crate::Exec), it receives the command's output: both streams, in the order they came.
#[derive(Debug)]
pub struct SavedOutput {
    path: VPath,
    beyond: usize,
    saving: Mutex<Saving>,
}

#[derive(Debug, Default)]
struct Saving {
    /// What came before it was too long.
    held: String,
    file: Option<File>,
    written: u64,
    dropped: u64,
    failed: Option<String>,
}

/// What became of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It was short; there is no file.
    NotNeeded,
    /// `dropped` bytes at its end did not fit into the file any more.
    InFile { written: u64, dropped: u64 },
    /// There may be the beginning of a file.
    Failed { reason: String },
}

impl SavedOutput {
    /// A file is made at `path` only if there are more than `beyond` bytes.
    pub fn new(path: VPath, beyond: usize) -> Arc<Self> {
        Arc::new(Self { path, beyond, saving: Mutex::default() })
    }

    pub fn path(&self) -> &VPath {
        &self.path
    }

    pub fn outcome(&self) -> Saved {
        let saving = self.lock();
        match (&saving.failed, &saving.file) {
            (Some(reason), _) => Saved::Failed { reason: reason.clone() },
            (None, Some(_)) => Saved::InFile { written: saving.written, dropped: saving.dropped },
            (None, None) => Saved::NotNeeded,
        }
    }

    fn push(&self, roots: &Roots, text: &str) {
        let mut saving = self.lock();
        if saving.failed.is_some() {
            return;
        }
        if saving.file.is_none() {
            if saving.held.len() + text.len() <= self.beyond {
                saving.held.push_str(text);
                return;
            }
            match create_log(roots, &self.path) {
                Ok(file) => saving.file = Some(file),
                Err(error) => {
                    saving.failed = Some(error.to_string());
                    return;
                }
            }
            let held = std::mem::take(&mut saving.held);
            saving.write(&held);
        }
        saving.write(text);
    }

    fn lock(&self) -> MutexGuard<'_, Saving> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Saving {
    /// Into the page cache, on the task that pumps the output: so a flood waits here and not in memory.
    fn write(&mut self, text: &str) {
        let room = usize::try_from(MAX_SAVED - self.written).unwrap_or(usize::MAX).min(text.len());
        let kept = text.floor_char_boundary(room);
        let Some(file) = &mut self.file else { return };
        match file.write_all(text.as_bytes().get(..kept).unwrap_or_default()) {
            Ok(()) => {
                self.written += kept as u64;
                self.dropped += (text.len() - kept) as u64;
            }
            Err(error) => self.failed = Some(error.to_string()),
        }
    }
}

/// What a command's output passes before anyone reads it: long output is saved.
pub(crate) struct OutputFilter<'a> {
    pub(crate) roots: &'a Roots,
    pub(crate) save: Option<&'a SavedOutput>,
    pub(crate) inner: Option<&'a dyn OutputSink>,
}

impl OutputSink for OutputFilter<'_> {
    fn output(&self, stream: Stream, text: &str) {
        if let Some(saved) = self.save {
            saved.push(self.roots, text);
        }
        if let Some(inner) = self.inner {
            inner.output(stream, text);
        }
    }

    fn denied(&self, denied: &Denied) {
        if let Some(inner) = self.inner {
            inner.denied(denied);
        }
    }
}
