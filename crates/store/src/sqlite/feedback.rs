//! Feedback in SQLite.
//!
//! Invariant: a second opinion of the same person about the same takes the place of the first.

use async_trait::async_trait;
use hart_runtime::port::{Feedback, FeedbackScope, Feedbacks, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::row::{get_text, get_time, time};

#[async_trait]
impl Feedbacks for SqliteStore {
    async fn put_feedback(&self, feedback: Feedback) -> Result<Option<Feedback>, StoreError> {
        self.write(move |db| {
            let run: Option<i64> = db
                .prepare_cached(
                    "SELECT runs.n FROM runs JOIN threads ON threads.n = runs.thread
                     WHERE runs.id = ?1 AND threads.id = ?2",
                )?
                .query_row(params![feedback.run.as_str(), feedback.thread.as_str()], |row| row.get(0))
                .optional()?;
            let Some(run) = run else { return Ok(None) };
            let message = feedback.message.as_deref().unwrap_or_default();
            db.prepare_cached(
                "INSERT INTO feedback (id, run, user, message, rating, comment, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (run, user, message) DO UPDATE SET rating = ?5, comment = ?6",
            )?
            .execute(params![
                feedback.id,
                run,
                feedback.user.as_str(),
                message,
                feedback.rating,
                feedback.comment,
                time(feedback.created_at),
            ])?;
            let sql = format!("{SELECT} WHERE feedback.run = ?1 AND feedback.user = ?2 AND message = ?3");
            db.prepare_cached(&sql)?.query_row(params![run, feedback.user.as_str(), message], read).map(Some)
        })
        .await
    }

    async fn feedback(&self, of: &FeedbackScope) -> Result<Vec<Feedback>, StoreError> {
        let of = of.clone();
        self.read(move |db| found(db, &of)).await
    }

    async fn delete_feedback(&self, of: &FeedbackScope) -> Result<u64, StoreError> {
        let of = of.clone();
        self.write(move |db| {
            let found = found(db, &of)?;
            for feedback in &found {
                db.prepare_cached("DELETE FROM feedback WHERE id = ?1")?.execute([&feedback.id])?;
            }
            Ok(found.len() as u64)
        })
        .await
    }
}

const SELECT: &str = "
    SELECT feedback.id, threads.id AS thread, runs.id AS run, feedback.user, message, rating, comment,
           feedback.created_at
    FROM feedback JOIN runs ON runs.n = feedback.run JOIN threads ON threads.n = runs.thread";

fn found(db: &Connection, of: &FeedbackScope) -> rusqlite::Result<Vec<Feedback>> {
    let (scope, id) = match of {
        FeedbackScope::Thread(thread) => ("threads.id = ?1", thread.as_str()),
        FeedbackScope::Run(run) | FeedbackScope::One(run, _) => ("runs.id = ?1", run.as_str()),
    };
    let sql = format!("{SELECT} WHERE {scope} ORDER BY feedback.n");
    let found = db.prepare_cached(&sql)?.query_map([id], read)?.collect::<Result<Vec<_>, _>>()?;
    Ok(match of {
        FeedbackScope::One(_, id) => found.into_iter().filter(|feedback| feedback.id == *id).collect(),
        _ => found,
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<Feedback> {
    let message: String = row.get("message")?;
    Ok(Feedback {
        id: row.get("id")?,
        thread: get_text(row, "thread")?,
        run: get_text(row, "run")?,
        user: get_text(row, "user")?,
        message: (!message.is_empty()).then_some(message),
        rating: row.get("rating")?,
        comment: row.get("comment")?,
        created_at: get_time(row, "created_at")?,
    })
}
