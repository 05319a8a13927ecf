//! Threads in SQLite.
//!
//! Invariant: `thread_tags` holds exactly the top-level words and numbers of each thread's metadata.

use std::time::Duration;

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_runtime::port::{Created, Order, StoreError, ThreadPatch, ThreadQuery, ThreadSort, Threads};
use hart_runtime::{Lifetime, Thread};
use hart_types::{CheckpointId, PruneStrategy, RunId, ThreadId};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use serde_json::{Map, Value};

use super::row::{
    get_json, get_optional_json, get_optional_text, get_text, get_time, get_word, json, time, unsigned,
};
use super::sum::{check_column, sum};
use super::{SqliteStore, events, steps};

#[async_trait]
impl Threads for SqliteStore {
    async fn create_thread(&self, thread: Thread) -> Result<Created, StoreError> {
        self.write(move |db| match find(db, &thread.id)? {
            Some((_, existing)) => Ok(Created::Existing(existing)),
            None => insert(db, &thread).map(|_| Created::New(thread)),
        })
        .await
    }

    async fn thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        let id = id.clone();
        self.look_up(move |db| Ok(find(db, &id)?.map(|(_, thread)| thread))).await
    }

    async fn patch_thread(&self, id: &ThreadId, patch: ThreadPatch) -> Result<Option<Thread>, StoreError> {
        let id = id.clone();
        self.write(move |db| {
            let Some((n, mut thread)) = find(db, &id)? else { return Ok(None) };
            if let Some(metadata) = patch.metadata {
                thread.metadata.extend(metadata);
                tag(db, n, &thread.metadata)?;
            }
            thread.config = patch.config.unwrap_or(thread.config);
            thread.status = patch.status.unwrap_or(thread.status);
            thread.error = patch.error.unwrap_or(thread.error);
            thread.updated_at = patch.updated_at.unwrap_or(thread.updated_at);
            thread.lifetime = patch.lifetime.or(thread.lifetime);
            db.prepare_cached(
                "UPDATE threads SET metadata = ?2, config = ?3, status = ?4, error = ?5, updated_at = ?6,
                                    lifetime = ?7, remains = ?8
                 WHERE n = ?1",
            )?
            .execute(params![
                n,
                json(&thread.metadata),
                json(&thread.config),
                thread.status.as_str(),
                thread.error.as_ref().map(json),
                time(thread.updated_at),
                unused(&thread),
                remains(&thread),
            ])?;
            Ok(Some(thread))
        })
        .await
    }

    async fn delete_thread(&self, id: &ThreadId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.write(move |db| delete(db, &id)).await
    }

    async fn left_behind(&self, before: Timestamp) -> Result<Vec<Thread>, StoreError> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT * FROM threads WHERE temporary = 1 AND updated_at < ?1 AND NOT EXISTS (
                     SELECT 1 FROM runs WHERE runs.thread = threads.n AND runs.status IN ('pending', 'running'))",
            )?
            .query_map([time(before)], read)?
            .collect()
        })
        .await
    }

    async fn expire_threads(&self, now: Timestamp) -> Result<Vec<Thread>, StoreError> {
        let expired = self.read(move |db| {
            let sql = format!("SELECT id FROM threads WHERE {IS_OVER} LIMIT ?2");
            let mut over = db.prepare_cached(&sql)?;
            over.query_map(params![time(now), AT_ONCE], |row| row.get("id"))?.collect()
        });
        let ids: Vec<String> = expired.await?;
        let mut gone = Vec::new();
        for id in ids {
            // One that is damaged keeps no other from going.
            match self.write(move |db| expire(db, &id, now)).await {
                Ok(thread) => gone.extend(thread),
                Err(error @ StoreError::Damaged(_)) => {
                    tracing::warn!(%error, "a thread whose time is over cannot be seen to");
                }
                Err(error) if gone.is_empty() => return Err(error),
                // Those that are gone have files to be seen to; the rest is tried again.
                Err(error) => {
                    tracing::warn!(%error, "not all threads whose time is over could be seen to");
                    break;
                }
            }
        }
        Ok(gone)
    }

    async fn search_threads(&self, query: &ThreadQuery) -> Result<Vec<Thread>, StoreError> {
        let query = query.clone();
        self.read(move |db| {
            let Filter { sql, values } = listing(db, &query)?;
            let mut statement = db.prepare_cached(&sql)?;
            statement.query_map(params_from_iter(values), read)?.collect()
        })
        .await
    }

    async fn count_threads(&self, query: &ThreadQuery) -> Result<u64, StoreError> {
        let query = query.clone();
        self.read(move |db| {
            let Filter { sql, values } = filter(db, &query)?;
            let count = format!("SELECT count(*) FROM threads {sql}");
            db.prepare_cached(&count)?.query_row(params_from_iter(values), |row| row.get::<_, i64>(0))
        })
        .await
        .map(|count| u64::try_from(count).unwrap_or(0))
    }

    async fn copy_thread(&self, from: &ThreadId, to: Thread) -> Result<Thread, StoreError> {
        let from = from.clone();
        let missing = StoreError::NoThread(from.clone());
        let copied = self.write(move |db| {
            let Some((source, original)) = find(db, &from)? else { return Ok(None) };
            let head = to.head.clone();
            let copy = Thread { head: to.head.or(original.head), ..to };
            let target = insert(db, &copy)?;
            steps::copy(db, source, target)?;
            if let Some(head) = head {
                steps::keep_only(db, target, head)?;
            }
            // What waits for an answer waits in the copy as well.
            let status = steps::rest_status(db, target)?;
            db.prepare_cached("UPDATE threads SET status = ?2 WHERE n = ?1")?
                .execute(params![target, status.as_str()])?;
            Ok(Some(Thread { status, ..copy }))
        });
        copied.await?.ok_or(missing)
    }
}

/// So many threads are seen to before their files are.
const AT_ONCE: i64 = 50;

/// Nobody has used the thread for as long as was asked, that was not seen to since, and nothing runs on it. The first
/// parameter is the time.
const IS_OVER: &str =
    "lifetime IS NOT NULL AND updated_at + lifetime < ?1 AND ifnull(expired_at < updated_at, 1)
    AND NOT EXISTS (SELECT 1 FROM runs
                    WHERE runs.thread = threads.n AND runs.status IN ('pending', 'running'))";

/// Does what is to be done when a thread's time is over, if it still is; the thread, if it is gone now.
fn expire(db: &Connection, id: &str, now: Timestamp) -> rusqlite::Result<Option<Thread>> {
    let found = db
        .prepare_cached(&format!("SELECT * FROM threads WHERE {IS_OVER} AND id = ?2"))?
        .query_row(params![time(now), id], |row| Ok((row.get("n")?, read(row)?)))
        .optional()?;
    let Some((n, thread)): Option<(i64, Thread)> = found else { return Ok(None) };
    if thread.lifetime.is_some_and(|lifetime| lifetime.remains == PruneStrategy::Delete) {
        delete(db, &thread.id)?;
        return Ok(Some(thread));
    }
    if let Some(head) = thread.head {
        steps::fold(db, n, head, RunId::generate())?;
    }
    db.prepare_cached("UPDATE threads SET expired_at = ?2 WHERE n = ?1")?.execute(params![n, time(now)])?;
    Ok(None)
}

fn unused(thread: &Thread) -> Option<i64> {
    let micros = thread.lifetime?.unused.as_micros();
    Some(i64::try_from(micros).unwrap_or(i64::MAX))
}

fn remains(thread: &Thread) -> Option<&'static str> {
    thread.lifetime.map(|lifetime| lifetime.remains.as_str())
}

/// Its number and itself.
pub(super) fn find(db: &Connection, id: &ThreadId) -> rusqlite::Result<Option<(i64, Thread)>> {
    db.prepare_cached("SELECT * FROM threads WHERE id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get("n")?, read(row)?)))
        .optional()
}

/// The thread's newest step, if what is written there is what was.
pub(super) fn head(db: &Connection, n: i64) -> rusqlite::Result<Option<CheckpointId>> {
    db.prepare_cached("SELECT id, head, head_sum FROM threads WHERE n = ?1")?.query_row([n], |row| {
        let (id, head): (String, Option<String>) = (row.get("id")?, row.get("head")?);
        let bytes = head.as_deref().map(|head| [head.as_bytes()]);
        check_column(
            row,
            "head_sum",
            &format!("the newest step of thread {id}"),
            bytes.as_ref().map(|parts| parts.as_slice()),
        )?;
        Ok(head.map(CheckpointId::from))
    })
}

/// What its rows are found by.
pub(super) fn number(db: &Connection, id: &ThreadId) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT n FROM threads WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()
}

/// Its newest step. When it was updated is another column, with an index: runs say so at their ends.
pub(super) fn set_head(
    db: &Connection,
    n: i64,
    head: Option<&CheckpointId>,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let head = head.map(CheckpointId::as_str);
    db.prepare_cached("UPDATE threads SET head = ?2, head_sum = ?3, state_updated_at = ?4 WHERE n = ?1")?
        .execute(params![n, head, head.map(|head| sum(&[head.as_bytes()])), time(at)])?;
    Ok(())
}

pub(super) fn delete(db: &Connection, id: &ThreadId) -> rusqlite::Result<bool> {
    let Some(n) = number(db, id)? else { return Ok(false) };
    let orphans = steps::blobs_of_thread(db, n)?;
    events::forget_thread(db, n)?;
    db.prepare_cached("DELETE FROM crons WHERE thread = ?1")?.execute([id.as_str()])?;
    db.prepare_cached("DELETE FROM threads WHERE n = ?1")?.execute([n])?;
    steps::drop_unused(db, orphans)?;
    Ok(true)
}

/// Lays these over its metadata, if they are new to it.
pub(super) fn tell(db: &Connection, id: &ThreadId, about: Map<String, Value>) -> rusqlite::Result<()> {
    let Some((n, mut thread)) = find(db, id)? else { return Ok(()) };
    if about.iter().all(|(key, value)| thread.metadata.get(key) == Some(value)) {
        return Ok(());
    }
    thread.metadata.extend(about);
    if !thread.temporary {
        tag(db, n, &thread.metadata)?;
    }
    db.prepare_cached("UPDATE threads SET metadata = ?2 WHERE n = ?1")?
        .execute(params![n, json(&thread.metadata)])?;
    Ok(())
}

pub(super) fn insert(db: &Connection, thread: &Thread) -> rusqlite::Result<i64> {
    db.prepare_cached(
        "INSERT INTO threads (id, user, created_at, updated_at, state_updated_at, metadata, config, status, error,
                              head, head_sum, temporary, lifetime, remains)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        thread.id.as_str(),
        thread.user.as_str(),
        time(thread.created_at),
        time(thread.updated_at),
        time(thread.state_updated_at),
        json(&thread.metadata),
        json(&thread.config),
        thread.status.as_str(),
        thread.error.as_ref().map(json),
        thread.head.as_ref().map(CheckpointId::as_str),
        thread.head.as_ref().map(|head| sum(&[head.as_str().as_bytes()])),
        thread.temporary,
        unused(thread),
        remains(thread),
    ])?;
    let n = db.last_insert_rowid();
    // One that goes with its run is never searched for.
    if !thread.temporary {
        tag(db, n, &thread.metadata)?;
    }
    Ok(n)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Thread> {
    Ok(Thread {
        id: get_text(row, "id")?,
        user: get_text(row, "user")?,
        created_at: get_time(row, "created_at")?,
        updated_at: get_time(row, "updated_at")?,
        state_updated_at: get_time(row, "state_updated_at")?,
        metadata: get_json(row, "metadata")?,
        config: get_json(row, "config")?,
        status: get_word(row, "status")?,
        error: get_optional_json(row, "error")?,
        head: get_optional_text(row, "head")?,
        temporary: row.get("temporary")?,
        lifetime: lifetime(row)?,
    })
}

fn lifetime(row: &Row<'_>) -> rusqlite::Result<Option<Lifetime>> {
    let Some(micros) = row.get("lifetime")? else { return Ok(None) };
    let unused = Duration::from_micros(unsigned(micros));
    Ok(Some(Lifetime { unused, remains: get_word(row, "remains")? }))
}

fn tag(db: &Connection, n: i64, metadata: &Map<String, Value>) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM thread_tags WHERE thread = ?1")?.execute([n])?;
    let mut insert = db.prepare_cached("INSERT INTO thread_tags (key, value, thread) VALUES (?1, ?2, ?3)")?;
    for (key, value) in metadata.iter().filter(|(_, value)| is_word(value)) {
        insert.execute(params![key, value.to_string(), n])?;
    }
    Ok(())
}

/// What a tag can be: a value that is compared whole.
fn is_word(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

struct Filter {
    sql: String,
    values: Vec<Sql>,
}

/// One page.
fn listing(db: &Connection, query: &ThreadQuery) -> rusqlite::Result<Filter> {
    let Filter { sql, mut values } = filter(db, query)?;
    let sql = format!("SELECT * FROM threads {sql} {} LIMIT ? OFFSET ?", order(query));
    values.push(Sql::Integer(i64::try_from(query.limit).unwrap_or(i64::MAX)));
    values.push(Sql::Integer(i64::try_from(query.offset).unwrap_or(i64::MAX)));
    Ok(Filter { sql, values })
}

/// A tag that fewer threads than this have is where a search begins; others are met often enough on the way.
const RARE: i64 = 2000;

/// Beyond so many tags the rest of what is wanted is compared thread by thread: SQLite reads no statement of any length.
const LOOKED_UP: usize = 32;

fn filter(db: &Connection, query: &ThreadQuery) -> rusqlite::Result<Filter> {
    let mut clauses = vec!["temporary = 0".to_owned()];
    let mut values: Vec<Sql> = Vec::new();
    let text = |text: &str| Sql::Text(text.to_owned());
    if let Some(user) = &query.user {
        clauses.push("user = ?".to_owned());
        values.push(text(user.as_str()));
    }
    if let Some(status) = query.status {
        clauses.push("status = ?".to_owned());
        values.push(text(status.as_str()));
    }
    if let Some(ids) = &query.ids {
        let ids: Vec<&str> = ids.iter().map(ThreadId::as_str).collect();
        clauses.push("id IN (SELECT value FROM json_each(?))".to_owned());
        values.push(Sql::Text(json(&ids)));
    }
    let mut by_tag = 0;
    let (words, others): (Map<_, _>, Map<_, _>) =
        query.metadata.clone().into_iter().partition(|(_, value)| {
            by_tag += usize::from(is_word(value));
            is_word(value) && by_tag <= LOOKED_UP
        });
    for (key, value) in words {
        let value = value.to_string();
        let count: i64 = db
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM thread_tags WHERE key = ?1 AND value = ?2 LIMIT ?3)",
            )?
            .query_row(params![key, value, RARE], |row| row.get(0))?;
        clauses.push(if count < RARE {
            "n IN (SELECT thread FROM thread_tags WHERE key = ? AND value = ?)".to_owned()
        } else {
            "EXISTS (SELECT 1 FROM thread_tags WHERE key = ? AND value = ? AND thread = +threads.n)"
                .to_owned()
        });
        values.extend([Sql::Text(key), Sql::Text(value)]);
    }
    if !others.is_empty() {
        clauses.push("json_has(metadata, ?)".to_owned());
        values.push(Sql::Text(json(&others)));
    }
    Ok(Filter { sql: format!("WHERE {}", clauses.join(" AND ")), values })
}

/// The number decides between equals, so that pages do not overlap.
fn order(query: &ThreadQuery) -> String {
    let column = match query.sort {
        ThreadSort::Id => "id",
        ThreadSort::Status => "status",
        ThreadSort::Created => "created_at",
        ThreadSort::Updated => "updated_at",
        ThreadSort::StateUpdated => "state_updated_at",
    };
    let direction = match query.order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    format!("ORDER BY {column} {direction}, n {direction}")
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
