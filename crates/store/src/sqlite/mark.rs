//! How far the log was, written down beside the database: a database that lost the end of its own log looks whole.
//!
//! Invariant: the mark is never ahead of what was committed. It is not synced, so it may be behind.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::events;
use super::row::signed;

#[derive(Debug, Default)]
pub(super) struct Mark {
    /// None for a store in memory, and where it cannot be written.
    file: Option<File>,
    highest: AtomicU64,
}

impl Mark {
    /// Compares what is there with what the database says, and tells the operator if that is less.
    pub(super) fn beside(database: &Path, connection: &Connection) -> rusqlite::Result<Self> {
        let mut name = database.as_os_str().to_owned();
        name.push("-mark");
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&name);
        let mut text = [0; DIGITS];
        let read = opened.as_ref().ok().and_then(|file| file.read_exact_at(&mut text, 0).ok());
        let known = read.and_then(|()| std::str::from_utf8(&text).ok()?.parse().ok()).unwrap_or(0);
        if events::newest(connection)? < known {
            tracing::error!(
                database = %database.display(),
                "database_older: the database is older than it was: the end of its log is missing, or an older copy was \
                 put in its place. What was written since is not there; if that was not meant, stop hart and restore \
                 the newest backup"
            );
            // Numbers that readers have seen are not given again, and it is said once.
            connection.execute(
                "UPDATE counters SET next = max(next, ?1) WHERE name = 'events'",
                [signed(known + 1)],
            )?;
            connection.execute(
                "UPDATE counters SET next = max(next, ?1) WHERE name = 'written'",
                [signed(known)],
            )?;
        }
        Ok(Self { file: opened.ok(), highest: AtomicU64::new(known) })
    }

    /// An event of this number was committed.
    pub(super) fn raise(&self, number: u64) {
        if self.highest.fetch_max(number, Ordering::Relaxed) < number
            && let Some(file) = &self.file
        {
            // Without it nothing is lost but the warning.
            let _ = file.write_all_at(format!("{number:0DIGITS$}").as_bytes(), 0);
        }
    }
}

const DIGITS: usize = 20;
