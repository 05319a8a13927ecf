//! Keeps audit lines in `audit.jsonl` in the data directory.
//!
//! Invariant: a line is appended whole; a file that cannot be written stops nothing and is told of, once until it can be again.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hart_agent::middleware::AuditLog;

#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    complained: AtomicBool,
}

impl AuditFile {
    pub(crate) fn new(home: &Path) -> Self {
        Self { path: home.join("audit.jsonl"), complained: AtomicBool::new(false) }
    }
}

impl AuditLog for AuditFile {
    /// One write to a file opened for appending: lines of several processes do not mix.
    fn record(&self, line: &str) {
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path);
        let written = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        let before = self.complained.swap(written.is_err(), Ordering::Relaxed);
        if let Err(error) = written
            && !before
        {
            tracing::warn!(%error, "the audit log cannot be written; commands run without it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_and_a_missing_folder_stops_nothing() {
        let home = tempfile::tempdir().unwrap();
        let file = AuditFile::new(home.path());
        file.record("{\"a\":1}");
        AuditFile::new(home.path()).record("{\"b\":2}");
        assert_eq!(
            std::fs::read_to_string(home.path().join("audit.jsonl")).unwrap(),
            "{\"a\":1}\n{\"b\":2}\n"
        );
        AuditFile::new(&home.path().join("gone")).record("{}");
    }
}
