//! A few connections that only read, beside the writer and each other.
//!
//! Invariant: a connection is used by one reader at a time and comes back, whatever the reader did; all that a reader
//! sees is of one moment.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hart_runtime::port::StoreError;
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{connection, failure, gone};

/// Readers beyond this wait: two cores are busy with four.
const READERS: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Readers {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    /// Opened on first use. The lock is held only to take one out or put one back.
    idle: Mutex<Vec<Connection>>,
    slots: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        let pool = Pool { path, idle: Mutex::default(), slots: Arc::new(Semaphore::new(READERS)) };
        Self { pool: Arc::new(pool) }
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let slot = Arc::clone(&self.pool.slots).acquire_owned().await.map_err(|_| gone())?;
        let pool = Arc::clone(&self.pool);
        let read = tokio::task::spawn_blocking(move || {
            let idle = pool.take();
            let connection = match idle {
                Some(connection) => connection,
                None => connection::reader(&pool.path).map_err(failure)?,
            };
            Lent { connection, pool: &pool, _slot: slot }.with(|connection| one_view(connection, work))
        });
        read.await.unwrap_or_else(|error| Err(StoreError::failed("a read was cut off", error)))
    }

    /// As [`Readers::run`], without another thread where a connection is idle: for one statement that finds something by
    /// its key, which takes less time than to hand it over.
    pub(super) async fn look_up<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if let Ok(slot) = Arc::clone(&self.pool.slots).try_acquire_owned()
            && let Some(connection) = self.pool.take()
        {
            return Lent { connection, pool: &self.pool, _slot: slot }.with(work);
        }
        self.run(work).await
    }
}

impl Pool {
    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// A connection in the hands of one reader.
struct Lent<'a> {
    connection: Connection,
    pool: &'a Pool,
    _slot: OwnedSemaphorePermit,
}

impl Lent<'_> {
    fn with<T>(self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let done = work(&self.connection);
        // One that is stuck in its view is not for anybody else.
        if self.connection.is_autocommit() {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.connection);
        }
        done
    }
}

fn one_view<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let order = |word| connection.prepare_cached(word)?.execute([]);
    order("BEGIN").map_err(failure)?;
    let done = work(connection);
    order("ROLLBACK").map_err(failure)?;
    done
}
