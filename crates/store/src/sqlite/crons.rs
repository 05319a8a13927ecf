//! Crons in SQLite.
//!
//! Invariant: a cron that belongs to a thread or an assistant goes with it.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_runtime::port::{Cron, CronQuery, CronSort, Crons, Order, StoreError};
use hart_types::{CronId, ThreadId};
use rusqlite::types::Value as Sql;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};

use super::SqliteStore;
use super::row::{
    get_json, get_optional_text, get_optional_time, get_text, get_time, json, signed, time, unsigned,
};

#[async_trait]
impl Crons for SqliteStore {
    async fn create_cron(&self, cron: Cron) -> Result<(), StoreError> {
        self.write(move |db| {
            db.prepare_cached(
                "INSERT INTO crons (id, assistant, thread, user, schedule, timezone, end_time, payload, metadata,
                                    keep_threads, enabled, next_run, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(params_from_iter(columns(&cron)))?;
            Ok(())
        })
        .await
    }

    async fn cron(&self, id: &CronId) -> Result<Option<Cron>, StoreError> {
        let id = id.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT * FROM crons WHERE id = ?1")?.query_row([id.as_str()], read).optional()
        })
        .await
    }

    async fn replace_cron(&self, cron: Cron, seen: Timestamp) -> Result<bool, StoreError> {
        self.write(move |db| {
            let changed = db
                .prepare_cached(
                    "UPDATE crons SET assistant = ?2, thread = ?3, user = ?4, schedule = ?5, timezone = ?6,
                        end_time = ?7, payload = ?8, metadata = ?9, keep_threads = ?10, enabled = ?11,
                        next_run = ?12, created_at = ?13, updated_at = ?14
                     WHERE id = ?1 AND updated_at = ?15",
                )?
                .execute(params_from_iter(columns(&cron).into_iter().chain([Sql::Integer(time(seen))])))?;
            Ok(changed > 0)
        })
        .await
    }

    async fn delete_cron(&self, id: &CronId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.write(move |db| {
            Ok(db.prepare_cached("DELETE FROM crons WHERE id = ?1")?.execute([id.as_str()])? > 0)
        })
        .await
    }

    async fn search_crons(&self, query: &CronQuery) -> Result<Vec<Cron>, StoreError> {
        let query = query.clone();
        self.read(move |db| {
            let (clause, mut values) = filter(&query);
            let sql = format!("SELECT * FROM crons WHERE {clause} {} LIMIT ? OFFSET ?", order(&query));
            values.extend([Sql::Integer(signed(query.limit)), Sql::Integer(signed(query.offset))]);
            db.prepare_cached(&sql)?.query_map(params_from_iter(values), read)?.collect()
        })
        .await
    }

    async fn count_crons(&self, query: &CronQuery) -> Result<u64, StoreError> {
        let query = query.clone();
        self.read(move |db| {
            let (clause, values) = filter(&query);
            let sql = format!("SELECT count(*) FROM crons WHERE {clause}");
            db.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get::<_, i64>(0))
        })
        .await
        .map(unsigned)
    }

    async fn due_crons(&self, now: Timestamp, limit: u64) -> Result<Vec<Cron>, StoreError> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT * FROM crons WHERE enabled = 1 AND next_run IS NOT NULL AND next_run <= ?1
                 ORDER BY next_run, n LIMIT ?2",
            )?
            .query_map(params![time(now), signed(limit)], read)?
            .collect()
        })
        .await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|db| {
            db.prepare_cached(
                "SELECT next_run FROM crons WHERE enabled = 1 AND next_run IS NOT NULL ORDER BY next_run LIMIT 1",
            )?
            .query_row([], |row| get_time(row, "next_run"))
            .optional()
        })
        .await
    }
}

fn columns(cron: &Cron) -> [Sql; 14] {
    let text = |text: &str| Sql::Text(text.to_owned());
    let moment = |at: Option<Timestamp>| at.map_or(Sql::Null, |at| Sql::Integer(time(at)));
    [
        text(cron.id.as_str()),
        text(cron.assistant.as_str()),
        cron.thread.as_ref().map(ThreadId::as_str).map_or(Sql::Null, text),
        text(cron.user.as_str()),
        text(&cron.schedule),
        text(&cron.timezone),
        moment(cron.end_time),
        Sql::Text(json(&cron.payload)),
        Sql::Text(json(&cron.metadata)),
        Sql::Integer(cron.keep_threads.into()),
        Sql::Integer(cron.enabled.into()),
        moment(cron.next_run),
        Sql::Integer(time(cron.created_at)),
        Sql::Integer(time(cron.updated_at)),
    ]
}

fn filter(query: &CronQuery) -> (String, Vec<Sql>) {
    let mut clauses = vec!["1".to_owned()];
    let mut values = Vec::new();
    let mut add = |clause: &str, value: Sql| {
        clauses.push(clause.to_owned());
        values.push(value);
    };
    if let Some(assistant) = &query.assistant {
        add("assistant = ?", Sql::Text(assistant.to_string()));
    }
    if let Some(thread) = &query.thread {
        add("thread = ?", Sql::Text(thread.to_string()));
    }
    if let Some(enabled) = query.enabled {
        add("enabled = ?", Sql::Integer(enabled.into()));
    }
    if !query.metadata.is_empty() {
        add("json_has(metadata, ?)", Sql::Text(json(&query.metadata)));
    }
    (clauses.join(" AND "), values)
}

/// The number decides between equals, so that pages do not overlap.
fn order(query: &CronQuery) -> String {
    let column = match query.sort {
        CronSort::Id => "id",
        CronSort::Assistant => "assistant",
        CronSort::Thread => "thread",
        CronSort::NextRun => "next_run",
        CronSort::EndTime => "end_time",
        CronSort::Created => "created_at",
        CronSort::Updated => "updated_at",
    };
    let direction = match query.order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    format!("ORDER BY {column} {direction}, n {direction}")
}

fn read(row: &Row<'_>) -> rusqlite::Result<Cron> {
    Ok(Cron {
        id: get_text(row, "id")?,
        assistant: get_text(row, "assistant")?,
        thread: get_optional_text(row, "thread")?,
        user: get_text(row, "user")?,
        schedule: get_text(row, "schedule")?,
        timezone: get_text(row, "timezone")?,
        end_time: get_optional_time(row, "end_time")?,
        payload: get_json(row, "payload")?,
        metadata: get_json(row, "metadata")?,
        keep_threads: row.get("keep_threads")?,
        enabled: row.get("enabled")?,
        next_run: get_optional_time(row, "next_run")?,
        created_at: get_time(row, "created_at")?,
        updated_at: get_time(row, "updated_at")?,
    })
}
