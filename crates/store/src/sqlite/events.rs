//! Events in SQLite: those of one write in a row, a line each.
//!
//! Invariant: rows do not overlap, so a number is not given twice and a look behind one begins at one row.

use async_trait::async_trait;
use bytes::Bytes;
use hart_kernel::Timestamp;
use hart_runtime::port::{EventScope, Events, Lease, NUMBERS, StoreError, StoredEvent};
use hart_types::{EventId, RunId, ThreadId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::row::{get_text, signed, time, unreadable, unsigned};
use super::runs::Place;
use super::sum::{check, sum};
use super::{SqliteStore, leases, recordings};

/// What a row holds, if one event is not more: whoever reads takes whole rows into memory.
const ROW: usize = 16 << 10;

#[async_trait]
impl Events for SqliteStore {
    async fn append_events(&self, events: Vec<StoredEvent>, lease: &Lease) -> Result<(), StoreError> {
        let (lease, lost) = (lease.clone(), StoreError::Lost(lease.run.clone()));
        let newest = events.last().map_or(0, |event| event.id.seq);
        let appended = self.write(move |db| match leases::held(db, &lease)? {
            Some(place) => insert(db, place, &events).map(Some),
            None => Ok(None),
        });
        appended.await?.ok_or(lost)?;
        self.mark.raise(newest);
        Ok(())
    }

    async fn events(
        &self,
        scope: &EventScope,
        after: u64,
        limit: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let (scope, fits) = (scope.clone(), move |taken: &[StoredEvent], _: usize| taken.len() < most);
        self.read(move |db| taken(db, &scope, after, fits)).await
    }

    async fn page_of_events(
        &self,
        scope: &EventScope,
        after: u64,
        room: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let fits = move |taken: &[StoredEvent], size| taken.is_empty() || size <= room;
        let scope = scope.clone();
        self.read(move |db| taken(db, &scope, after, fits)).await
    }

    async fn event_bounds(&self, run: &RunId) -> Result<Option<(EventId, EventId)>, StoreError> {
        let run = run.clone();
        self.read(move |db| {
            let end = |order: &str| {
                let of_run = of(&EventScope::Run(run.clone()));
                db.prepare_cached(&format!("{of_run} ORDER BY first {order} LIMIT 1"))?
                    .query_row(params![run.as_str(), 0], read)
                    .optional()
            };
            let ends = end("ASC")?.zip(end("DESC")?);
            Ok(ends.and_then(|(oldest, newest)| Some((oldest.first()?.id, newest.last()?.id))))
        })
        .await
    }

    async fn forget_events(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.write(move |db| {
            recordings::forget(db, before)?;
            note_newest(db)?;
            db.prepare_cached(
                "DELETE FROM events WHERE run IN
                    (SELECT n FROM runs WHERE status NOT IN ('pending', 'running') AND updated_at < ?1)",
            )?
            .execute([time(before)])
        })
        .await
        .map(|count| count as u64)
    }
}

/// In the order of their numbers, all of one run.
pub(super) fn insert(db: &Connection, place: Place, events: &[StoredEvent]) -> rusqlite::Result<()> {
    let mut rest = events;
    while let Some(first) = rest.first() {
        let (block, mut size) = (first.id.seq / NUMBERS, 0);
        let fitting = rest.iter().take_while(|event| {
            size += event.payload.len();
            size <= ROW && event.id.seq / NUMBERS == block
        });
        let (row, after) = rest.split_at(fitting.count().max(1));
        let text = lines(row);
        let (first, last) = (signed(first.id.seq), signed(row.last().unwrap_or(first).id.seq));
        db.prepare_cached(
            "INSERT INTO events (first, last, run, thread, text, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            first,
            last,
            place.run,
            place.thread,
            text,
            sum(&[&numbers([first, last, place.run, place.thread]), &text])
        ])?;
        rest = after;
    }
    Ok(())
}

pub(super) fn forget_run(db: &Connection, run: i64) -> rusqlite::Result<()> {
    note_newest(db)?;
    db.prepare_cached("DELETE FROM events WHERE run = ?1")?.execute([run])?;
    Ok(())
}

pub(super) fn forget_thread(db: &Connection, thread: i64) -> rusqlite::Result<()> {
    note_newest(db)?;
    db.prepare_cached("DELETE FROM events WHERE thread = ?1")?.execute([thread])?;
    Ok(())
}

/// The highest number that was ever written, also of events that are forgotten by now.
pub(super) fn newest(db: &Connection) -> rusqlite::Result<u64> {
    let sql = format!("SELECT max(next, {NEWEST_ROW}) FROM counters WHERE name = 'written'");
    db.prepare_cached(&sql)?.query_row([], |row| row.get(0)).map(unsigned)
}

/// Before events go: how far the log was must be known without them.
fn note_newest(db: &Connection) -> rusqlite::Result<()> {
    let sql = format!("UPDATE counters SET next = max(next, {NEWEST_ROW}) WHERE name = 'written'");
    db.prepare_cached(&sql)?.execute([]).map(|_| ())
}

const NEWEST_ROW: &str = "coalesce((SELECT last FROM events ORDER BY first DESC LIMIT 1), 0)";

/// How rows of a scope are found that reach behind a number: from the last one that does not begin behind it. Rows do not
/// overlap, as each is from one of the blocks of numbers that are given to one run.
fn of(scope: &EventScope) -> &'static str {
    match scope {
        EventScope::Run(_) => {
            "SELECT events.*, runs.id AS run_id, threads.id AS thread_id
             FROM runs JOIN events ON events.run = runs.n JOIN threads ON threads.n = runs.thread
             WHERE runs.id = ?1 AND first >= coalesce(
                 (SELECT max(first) FROM events WHERE events.run = runs.n AND first <= ?2), 0)"
        }
        EventScope::Thread(_) => {
            "SELECT events.*, runs.id AS run_id, threads.id AS thread_id
             FROM threads JOIN events ON events.thread = threads.n JOIN runs ON runs.n = events.run
             WHERE threads.id = ?1 AND first >= coalesce(
                 (SELECT max(first) FROM events WHERE events.thread = threads.n AND first <= ?2), 0)"
        }
    }
}

/// Those behind a number, in order, as long as they fit: with what was taken, and how many bytes it would be.
fn taken(
    db: &Connection,
    scope: &EventScope,
    after: u64,
    fits: impl Fn(&[StoredEvent], usize) -> bool,
) -> rusqlite::Result<Vec<StoredEvent>> {
    let id = match scope {
        EventScope::Run(run) => run.as_str(),
        EventScope::Thread(thread) => thread.as_str(),
    };
    let mut select = db.prepare_cached(&format!("{} ORDER BY first", of(scope)))?;
    let mut rows = select.query(params![id, signed(after)])?;
    let (mut taken, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        for event in read(row)?.into_iter().filter(|event| event.id.seq > after) {
            size += event.payload.len();
            if !fits(&taken, size) {
                return Ok(taken);
            }
            taken.push(event);
        }
    }
    Ok(taken)
}

/// All of a row.
fn read(row: &Row<'_>) -> rusqlite::Result<Vec<StoredEvent>> {
    let (run, thread): (RunId, ThreadId) = (get_text(row, "run_id")?, get_text(row, "thread_id")?);
    let (first, last): (i64, i64) = (row.get("first")?, row.get("last")?);
    let text = Bytes::from(row.get::<_, Vec<u8>>("text")?);
    let what = format!("events {first} to {last} of run {run}");
    let place = [first, last, row.get("run")?, row.get("thread")?];
    check(row, &what, &[&numbers(place), &text], 0)?;
    let broken = || unreadable(&what, "a line of it is not an event");
    let mut events = Vec::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let gap = memchr::memchr(b' ', line).ok_or_else(broken)?;
        let (id, payload) = line.split_at_checked(gap).ok_or_else(broken)?;
        let id = str::from_utf8(id).ok().and_then(|id| id.parse().ok()).ok_or_else(broken)?;
        let payload = text.slice_ref(payload.get(1..).ok_or_else(broken)?);
        events.push(StoredEvent { id, run: run.clone(), thread: thread.clone(), payload });
    }
    Ok(events)
}

fn lines(events: &[StoredEvent]) -> Vec<u8> {
    let mut text = Vec::with_capacity(events.iter().map(|event| event.payload.len() + 40).sum());
    for StoredEvent { id, payload, .. } in events {
        text.extend_from_slice(id.to_string().as_bytes());
        text.push(b' ');
        text.extend_from_slice(payload);
        text.push(b'\n');
    }
    text
}

fn numbers(numbers: [i64; 4]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
