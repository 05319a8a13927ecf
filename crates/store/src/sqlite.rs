//! One SQLite file: a writer that commits in groups, a few readers beside it.
//!
//! Invariant: every write goes through the one writer, so its order is the order of the file.

mod assistants;
mod child_steps;
mod connection;
mod crons;
mod effects;
mod events;
mod feedback;
mod items;
mod leases;
mod mark;
mod migrations;
mod outbox;
mod presence;
mod readers;
mod recordings;
mod reserve;
mod row;
mod runs;
mod soundness;
mod steps;
mod sum;
mod threads;
mod vitals;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hart_runtime::port::StoreError;
use rusqlite::Connection;

use self::mark::Mark;
use self::presence::Presence;
use self::readers::Readers;
use self::soundness::Soundness;
use self::writer::Writer;

/// A copy is the same store.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    /// None for a store in memory, which has the writer's connection alone. They go first: the last connection to close
    /// writes the log back.
    readers: Option<Readers>,
    writer: Writer,
    presence: Arc<Presence>,
    mark: Arc<Mark>,
    /// None for a store in memory.
    soundness: Option<Arc<Soundness>>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is of a newer hart (its version is {found}, this one knows {known}); update hart", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("{} is a database of another program's; put it aside, or set HART_HOME to another directory", path.display())]
    Foreign { path: PathBuf },
    #[error(
        "{} is damaged: {finding}; put it aside and restore a backup (`hart backup` makes them)",
        path.display()
    )]
    Damaged { path: PathBuf, finding: String },
    #[error("cannot open {}: the disk is full; free some space and try again", path.display())]
    Full { path: PathBuf },
    #[error("cannot open {}; check that the data directory is writable, or set HART_HOME", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}

impl OpenError {
    fn of(path: &Path, source: rusqlite::Error) -> Self {
        let code = source.sqlite_error().map(|error| error.extended_code);
        // Where a file was closed properly there is something to be made beside it, also to read.
        match code {
            Some(rusqlite::ffi::SQLITE_FULL | rusqlite::ffi::SQLITE_IOERR_SHMSIZE) => {
                Self::Full { path: path.to_owned() }
            }
            _ => Self::Sqlite { path: path.to_owned(), source },
        }
    }
}

impl SqliteStore {
    /// Opens or makes the file, brings it up to date and looks whether it is whole, where that is not known.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let presence = Presence::beside(path);
        let soundness = Arc::new(Soundness::of(path));
        // Whoever has it open looked through it.
        let check = !presence.is_anybody_there() && soundness.must_be_checked();
        let connection = reserve::spent_if_full(path, || connection::writer(path, check))?;
        let failed = |source| OpenError::of(path, source);
        let mark = Arc::new(Mark::beside(path, &connection).map_err(failed)?);
        let readers = Readers::new(path.to_owned());
        let writer = Writer::start(connection, Some(Arc::clone(&soundness)));
        Ok(Self {
            readers: Some(readers),
            writer,
            presence: Arc::new(presence),
            mark,
            soundness: Some(soundness),
        })
    }

    /// Looks through a file without changing it: whether [`open`](Self::open) would take it.
    pub fn examine(path: &Path) -> Result<(), OpenError> {
        reserve::spent_if_full(path, || connection::examine(path))
    }

    /// Forgets everything when the last copy goes.
    pub fn in_memory() -> Result<Self, OpenError> {
        let presence = Arc::new(Presence::none());
        let writer = Writer::start(connection::memory()?, None);
        Ok(Self { readers: None, writer, presence, mark: Arc::default(), soundness: None })
    }

    /// Copies the file as it is now, while everything goes on.
    pub async fn backup(&self, to: PathBuf) -> Result<(), StoreError> {
        self.read(move |connection| {
            let mut copy = Connection::open(&to)?;
            let backup = rusqlite::backup::Backup::new(connection, &mut copy)?;
            backup.run_to_completion(1024, std::time::Duration::from_millis(5), None)
        })
        .await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.noting(self.writer.submit(move |connection| work(connection).map_err(failure)).await)
    }

    /// What came of it, and a while later whether it is on the disk.
    async fn write_ahead<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<(T, BoxFuture<'static, Result<(), StoreError>>), StoreError> {
        self.noting(self.writer.submit_ahead(move |connection| work(connection).map_err(failure)).await)
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.noting(match &self.readers {
            Some(readers) => readers.run(move |connection| work(connection).map_err(failure)).await,
            None => self.writer.submit(move |connection| work(connection).map_err(failure)).await,
        })
    }

    /// Reads what is found by its key.
    async fn look_up<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.readers {
            Some(readers) => {
                self.noting(readers.look_up(move |connection| work(connection).map_err(failure)).await)
            }
            None => self.read(work).await,
        }
    }

    /// Damage that somebody has met is remembered beyond this process.
    fn noting<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let (Err(StoreError::Damaged(_)), Some(soundness)) = (&done, &self.soundness) {
            soundness.met_damage();
        }
        done
    }
}

fn failure(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full,
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => damaged(&error),
        Some(_) => StoreError::failed("the database refused", error),
        None => match &error {
            rusqlite::Error::FromSqlConversionFailure(_, _, source) => damaged(source.as_ref()),
            rusqlite::Error::InvalidColumnType(..) => damaged(&error),
            _ => StoreError::failed("the database refused", error),
        },
    }
}

/// Whoever wanted it is told each time, the operator as well.
fn damaged(error: &(dyn std::error::Error + 'static)) -> StoreError {
    tracing::error!(%error, "database_damaged: a row cannot be read");
    StoreError::Damaged(error.to_string())
}

/// For work that cannot be done because the other side is gone.
fn gone() -> StoreError {
    StoreError::Failed { message: "the database is being closed".to_owned(), source: None }
}

type Shared<T> = Arc<T>;
