//! The one thread that writes.
//!
//! Invariant: whoever waits hears of success only after the commit that holds its work is on the disk, and of failure
//! only when none does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use hart_runtime::port::{Lease, StoreError, StoredRecord};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::recordings::{self, Batch, Carried};
use super::soundness::Soundness;
use super::{Shared, failure, gone};

/// What one commit may hold: beyond this, those who wait would wait for others' work.
const GROUP: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Writer {
    jobs: Shared<Sender<Job>>,
    /// Handed in and not answered.
    waiting: Shared<AtomicU64>,
    /// What goes with the next commit.
    carried: Shared<Carried>,
    full: Shared<Full>,
    /// After the jobs: whoever is the last waits for what was handed in.
    _thread: Shared<Thread>,
}

/// The thread, until its work is done and the file closed.
#[derive(Debug)]
struct Thread {
    handle: Option<JoinHandle<()>>,
    file: Option<Shared<Soundness>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        let ended = self.handle.take().is_some_and(|handle| handle.join().is_ok());
        if let (true, Some(file)) = (ended, &self.file) {
            file.closed();
        }
    }
}

/// Does its work inside the open transaction, if there is one, and gives what to do once that is decided.
type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Done + Send>;

struct Done {
    /// Why the work could not be done.
    failed: Option<NotCommitted>,
    finish: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

impl Writer {
    /// `file` is the connection's, if it has one.
    pub(super) fn start(connection: Connection, file: Option<Shared<Soundness>>) -> Self {
        let (jobs, queue) = channel();
        let (carried, full) = (Shared::<Carried>::default(), Shared::<Full>::default());
        let (taken, noted) = (Shared::clone(&carried), Shared::clone(&full));
        // Ends when the last sender is gone and the queue is empty.
        let handle = std::thread::spawn(move || serve(&connection, &queue, &taken, &noted));
        let thread = Thread { handle: Some(handle), file };
        Self { jobs: jobs.into(), waiting: Shared::default(), carried, full, _thread: thread.into() }
    }

    /// Has records written by the next commit, before all that is handed in later.
    pub(super) fn carry(&self, records: Vec<StoredRecord>, lease: Lease) {
        self.carried.add(records, lease);
    }

    pub(super) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.0.load(Ordering::Relaxed)
    }

    pub(super) async fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |opened| {
            let done = opened.and_then(|connection| alone(connection, work));
            let failed = done.as_ref().err().map(NotCommitted::with);
            let finish = Box::new(move |committed: Result<(), StoreError>| {
                // Nobody may be waiting any more; the work is done all the same. Whoever failed knows best why.
                let _ = reply.send(done.and_then(|done| committed.map(|()| done)));
            });
            Done { failed, finish }
        });
        let _waits = Waits::new(&self.waiting);
        self.jobs.send(job).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// As [`Writer::submit`], for who can use what came of the work before the commit.
    pub(super) async fn submit_ahead<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<(T, BoxFuture<'static, Result<(), StoreError>>), StoreError> {
        let (reply, answer) = oneshot::channel();
        let (confirm, confirmed) = oneshot::channel();
        let job: Job = Box::new(move |opened| {
            let done = opened.and_then(|connection| alone(connection, work));
            let failed = done.as_ref().err().map(NotCommitted::with);
            let _ = reply.send(done);
            let finish = Box::new(move |committed| {
                let _ = confirm.send(committed);
            });
            Done { failed, finish }
        });
        let _waits = Waits::new(&self.waiting);
        self.jobs.send(job).map_err(|_| gone())?;
        let done = answer.await.map_err(|_| gone())??;
        Ok((done, Box::pin(async { confirmed.await.map_err(|_| gone())? })))
    }
}

/// Counted until it is dropped, also by one who gives up.
struct Waits<'a>(&'a AtomicU64);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether there was no room for something that was written last.
#[derive(Debug, Default)]
struct Full(AtomicBool);

/// Tells when that changes, not whenever somebody tries again: where little fits and much does not, that is often.
struct Fullness<'a> {
    full: &'a Full,
    /// When there was no room, if that has been told.
    told: Option<Instant>,
}

impl Fullness<'_> {
    fn note(&mut self, is_full: bool) {
        self.full.0.store(is_full, Ordering::Relaxed);
        if is_full {
            if self.told.replace(Instant::now()).is_none() {
                tracing::error!("storage_full: the disk is full; what does not fit waits or is refused");
            }
        } else if self.told.take_if(|last| last.elapsed() >= CALM).is_some() {
            tracing::warn!("there is room on the disk again");
        }
    }
}

/// Whoever waits for room tries more often.
const CALM: Duration = Duration::from_secs(5);

fn serve(connection: &Connection, queue: &Receiver<Job>, carried: &Carried, full: &Full) {
    let (mut fullness, mut ahead) = (Fullness { full, told: None }, None);
    while let Some(first) = ahead.take().or_else(|| queue.recv().ok()) {
        let mut records = match begin(connection, carried) {
            Ok(records) => records,
            Err(error) => {
                match NotCommitted::by(&error) {
                    NotCommitted::Full => fullness.note(true),
                    NotCommitted::Failed(_) => tracing::error!(%error, "no transaction could be opened"),
                }
                (first(Err(failure(error))).finish)(Ok(()));
                continue;
            }
        };
        let (mut finished, mut next, mut broken) = (Vec::new(), Some(first), None);
        // Recordings that did not fit wait for the next commit.
        let mut is_full = records.is_none();
        while let Some(job) = next.take() {
            let Done { failed, finish } = job(Ok(connection));
            finished.push(finish);
            is_full |= matches!(failed, Some(NotCommitted::Full));
            if connection.is_autocommit() {
                // A full or failing disk has rolled back all of it. What the next job wrote would be committed at once
                // and by itself; it has another transaction instead.
                broken = Some(failed.unwrap_or_default());
            } else if finished.len() < GROUP {
                next = queue.try_recv().ok();
                if let (Some(_), Some(records)) = (&next, &mut records)
                    && let Err(error) = take_along(connection, carried, records)
                {
                    (broken, ahead) = (Some(NotCommitted::by(&error)), next.take());
                }
            }
        }
        let committed = match broken {
            Some(why) => Err(why),
            None => order(connection, "COMMIT").map_err(|error| {
                let _ = order(connection, "ROLLBACK");
                NotCommitted::by(&error)
            }),
        };
        fullness.note(is_full || matches!(committed, Err(NotCommitted::Full)));
        if let Err(why) = &committed {
            if !matches!(why, NotCommitted::Full) {
                tracing::error!(%why, jobs = finished.len(), "nothing of a group was committed");
            }
            carried.put_back(records.unwrap_or_default());
        }
        for finish in finished {
            finish(committed.as_ref().copied().map_err(StoreError::from));
        }
    }
}

/// Opens a transaction, with all that goes along in it: what that is, or none where the disk has no room for it.
fn begin(connection: &Connection, carried: &Carried) -> rusqlite::Result<Option<Vec<Batch>>> {
    order(connection, "BEGIN IMMEDIATE")?;
    let records = carried.take();
    if recordings::write(connection, &records).is_err() {
        carried.put_back(records);
        order(connection, "BEGIN IMMEDIATE")?;
        return Ok(None);
    }
    Ok(Some(records))
}

/// What was carried since the transaction was opened is in it before the job that was handed in later. Fails where that
/// has ended the transaction.
fn take_along(connection: &Connection, carried: &Carried, records: &mut Vec<Batch>) -> rusqlite::Result<()> {
    let late = carried.take();
    let written = recordings::write(connection, &late);
    records.extend(late);
    written
}

/// One job's failure undoes that job and not its neighbours.
fn alone<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    order(connection, "SAVEPOINT job").map_err(failure)?;
    let done = work(connection);
    let undone = if done.is_ok() { Ok(()) } else { order(connection, "ROLLBACK TO job") };
    // A full disk may have rolled back the whole transaction already; then there is nothing left to end.
    match undone.and_then(|()| order(connection, "RELEASE job")) {
        Ok(()) => done,
        Err(error) => done.and(Err(failure(error))),
    }
}

/// One of the few words that every commit is made of: they are parsed once.
fn order(connection: &Connection, word: &'static str) -> rusqlite::Result<()> {
    connection.prepare_cached(word)?.execute([]).map(|_| ())
}

/// Why nothing of a group is on the disk; told to all who were in it.
#[derive(Clone, Debug, thiserror::Error)]
enum NotCommitted {
    #[error("the disk is full")]
    Full,
    #[error("{0}")]
    Failed(String),
}

impl NotCommitted {
    fn by(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            _ => Self::Failed(error.to_string()),
        }
    }

    /// The group was broken off with this job.
    fn with(error: &StoreError) -> Self {
        match error {
            StoreError::Full => Self::Full,
            StoreError::Failed { source: Some(source), .. } => Self::Failed(source.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl Default for NotCommitted {
    fn default() -> Self {
        Self::Failed("the transaction was rolled back".to_owned())
    }
}

impl From<&NotCommitted> for StoreError {
    fn from(why: &NotCommitted) -> Self {
        match why {
            NotCommitted::Full => Self::Full,
            NotCommitted::Failed(why) => {
                Self::Failed { message: format!("the database did not commit: {why}"), source: None }
            }
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
