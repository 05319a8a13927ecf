//! A command to run and what came of it.
//!
//! Invariant: what a command prints is held in bounded memory, however much it prints.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::audit::Denied;
use crate::error::{Result, SandboxError};
use crate::path::VPath;
use crate::save::SavedOutput;

/// The kernel refuses longer single arguments (`MAX_ARG_STRLEN`, with the closing NUL).
const MAX_COMMAND: usize = 131_071;

/// A shell command. Build it with [`Exec::new`] and set what differs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exec {
    pub command: String,
    /// On top of the sandbox's own and the configured variables. Nothing of hart's own environment is passed.
    pub env: Vec<(String, String)>,
    /// Default: the workspace.
    pub cwd: Option<VPath>,
    pub timeout: Duration,
    /// Bytes kept of each stream; beyond it the middle is left out.
    pub output_limit: usize,
    /// Where all of its output goes when it is long.
    pub save: Option<Arc<SavedOutput>>,
}

impl Exec {
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            env: Vec::new(),
            cwd: None,
            timeout: Duration::from_secs(600),
            output_limit: 1 << 20,
            save: None,
        }
    }

    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    #[must_use]
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }

    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn cwd(mut self, cwd: VPath) -> Self {
        self.cwd = Some(cwd);
        self
    }

    #[must_use]
    pub fn save(mut self, saved: Arc<SavedOutput>) -> Self {
        self.save = Some(saved);
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.command.contains('\0') {
            return Err(SandboxError::NulInCommand);
        }
        if self.command.len() > MAX_COMMAND {
            return Err(SandboxError::CommandTooLong { len: self.command.len(), limit: MAX_COMMAND });
        }
        self.env.iter().try_for_each(|(name, value)| check_variable(name, value))
    }
}

pub(crate) fn check_variable(name: &str, value: &str) -> Result<()> {
    let reason = if name.is_empty() {
        "its name is empty"
    } else if name.contains(['=', '\0']) {
        "its name contains `=` or NUL"
    } else if value.contains('\0') {
        "its value contains a NUL byte"
    } else {
        return Ok(());
    };
    Err(SandboxError::BadEnvironment { name: name.replace('\0', "\\0"), reason })
}

/// What a command printed and how it ended. Bytes that are not UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutput {
    pub stdout: String,
    pub stderr: String,
    pub stdout_truncated: bool,
    pub stderr_truncated: bool,
    pub exit: Exit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut,
    Cancelled,
}

impl Exit {
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Sees output while the command runs, all of it, in pieces that are whole characters.
pub trait OutputSink: Send + Sync {
    fn output(&self, stream: Stream, text: &str);

    /// Something the command tried was refused, and hart knows of it.
    fn denied(&self, denied: &Denied) {
        let _ = denied;
    }
}

impl<F: Fn(Stream, &str) + Send + Sync> OutputSink for F {
    fn output(&self, stream: Stream, text: &str) {
        self(stream, text);
    }
}

/// The beginning and the end of a stream, in at most `limit` bytes.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    omitted: u64,
}

impl Capture {
    pub(crate) fn new(limit: usize) -> Self {
        let head_limit = limit.div_ceil(2);
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_limit,
            tail_limit: limit - head_limit,
            omitted: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(first);
        let skipped = rest.len().saturating_sub(self.tail_limit);
        let kept = rest.get(skipped..).unwrap_or_default();
        let dropped = (self.tail.len() + kept.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..dropped);
        self.tail.extend(kept);
        self.omitted += (skipped + dropped) as u64;
    }

    /// The text, and whether something is missing from its middle.
    pub(crate) fn finish(self) -> (String, bool) {
        let Self { mut head, tail, omitted, .. } = self;
        if omitted == 0 {
            head.extend(tail);
            return (String::from_utf8_lossy(&head).into_owned(), false);
        }
        let tail: Vec<u8> = tail.into();
        let text = format!(
            "{}\n… {omitted} bytes omitted …\n{}",
            String::from_utf8_lossy(&head),
            String::from_utf8_lossy(&tail)
        );
        (text, true)
    }
}

/// Cuts a byte stream into valid text, holding back a character that is not complete yet.
#[derive(Default)]
pub(crate) struct TextStream {
    pending: Vec<u8>,
}

impl TextStream {
    pub(crate) fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(&str)) {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut unfinished = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            unfinished = 0;
            if !chunk.invalid().is_empty() {
                unfinished = chunk.invalid().len();
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        // A broken sequence at the very end may be the start of a character whose rest is still to come.
        let keep = if unfinished > 0 && may_continue(&self.pending, unfinished) { unfinished } else { 0 };
        if keep > 0 {
            text.pop();
        }
        self.pending.drain(..self.pending.len() - keep);
        if !text.is_empty() {
            emit(&text);
        }
    }

    pub(crate) fn finish(self, mut emit: impl FnMut(&str)) {
        if !self.pending.is_empty() {
            emit(&String::from_utf8_lossy(&self.pending));
        }
    }
}

fn may_continue(bytes: &[u8], unfinished: usize) -> bool {
    let end = bytes.get(bytes.len() - unfinished..).unwrap_or_default();
    std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
#[path = "exec_tests.rs"]
mod tests;
