//! Items in SQLite.
//!
//! Invariant: all that is below a namespace lies side by side.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_runtime::port::{Item, ItemQuery, Items, StoreError};
use rusqlite::{OptionalExtension, Row, params};
use serde_json::Value;

use super::SqliteStore;
use super::row::{get_json, get_time, json, time};

/// Follows every label; clients cannot send it.
const END: char = '\u{1f}';

#[async_trait]
impl Items for SqliteStore {
    async fn put_item(&self, item: Item) -> Result<(), StoreError> {
        self.write(move |db| {
            db.prepare_cached(
                "INSERT INTO items (namespace, key, value, created_at, updated_at, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (namespace, key) DO UPDATE SET value = ?3, updated_at = ?5, expires_at = ?6",
            )?
            .execute(params![
                joined(&item.namespace),
                item.key,
                json(&item.value),
                time(item.created_at),
                time(item.updated_at),
                item.expires_at.map(time),
            ])?;
            Ok(())
        })
        .await
    }

    async fn item(
        &self,
        namespace: &[String],
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Item>, StoreError> {
        let (namespace, key) = (joined(namespace), key.to_owned());
        self.read(move |db| {
            db.prepare_cached(
                "SELECT * FROM items
                 WHERE namespace = ?1 AND key = ?2 AND (expires_at IS NULL OR expires_at > ?3)",
            )?
            .query_row(params![namespace, key, time(now)], read)
            .optional()
        })
        .await
    }

    async fn delete_item(&self, namespace: &[String], key: &str) -> Result<(), StoreError> {
        let (namespace, key) = (joined(namespace), key.to_owned());
        self.write(move |db| {
            db.prepare_cached("DELETE FROM items WHERE namespace = ?1 AND key = ?2")?
                .execute([namespace, key])?;
            Ok(())
        })
        .await
    }

    async fn search_items(&self, query: &ItemQuery, now: Timestamp) -> Result<Vec<Item>, StoreError> {
        let query = query.clone();
        self.read(move |db| {
            let (from, to) = range(&query.prefix);
            let mut statement = db.prepare_cached(
                "SELECT * FROM items
                 WHERE namespace >= ?1 AND namespace < ?2 AND (expires_at IS NULL OR expires_at > ?3)
                 ORDER BY updated_at DESC, namespace, key",
            )?;
            let items = statement.query_map(params![from, to, time(now)], read)?;
            let wanted = |item: &Item| {
                query.filter.iter().all(|(key, condition)| condition.holds(item.value.get(key)))
            };
            let mut found: Vec<Item> =
                items.filter(|item| item.as_ref().map_or(true, wanted)).collect::<rusqlite::Result<_>>()?;
            if let Some(words) = &query.words {
                found.sort_by_cached_key(|item| std::cmp::Reverse(mentioned(item, words)));
            }
            let (skip, take) = (query.offset, query.limit);
            Ok(found
                .into_iter()
                .skip(usize::try_from(skip).unwrap_or(usize::MAX))
                .take(usize::try_from(take).unwrap_or(usize::MAX))
                .collect())
        })
        .await
    }

    async fn namespaces(&self, prefix: &[String], now: Timestamp) -> Result<Vec<Vec<String>>, StoreError> {
        let (from, to) = range(prefix);
        self.read(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT DISTINCT namespace FROM items
                 WHERE namespace >= ?1 AND namespace < ?2 AND (expires_at IS NULL OR expires_at > ?3)
                 ORDER BY namespace",
            )?;
            let names = statement.query_map(params![from, to, time(now)], |row| row.get::<_, String>(0))?;
            names.map(|name| name.map(|name| split(&name))).collect()
        })
        .await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Item> {
    let namespace: String = row.get("namespace")?;
    let expires_at: Option<i64> = row.get("expires_at")?;
    Ok(Item {
        namespace: split(&namespace),
        key: row.get("key")?,
        value: get_json(row, "value")?,
        created_at: get_time(row, "created_at")?,
        updated_at: get_time(row, "updated_at")?,
        expires_at: expires_at.and_then(|at| Timestamp::from_microsecond(at).ok()),
    })
}

fn joined(namespace: &[String]) -> String {
    namespace.iter().flat_map(|label| [label.as_str(), "\u{1f}"]).collect()
}

fn split(namespace: &str) -> Vec<String> {
    namespace.split_terminator(END).map(str::to_owned).collect()
}

/// From the prefix itself to the first text that does not begin with it.
fn range(prefix: &[String]) -> (String, String) {
    let from = joined(prefix);
    let to = format!("{from}\u{10ffff}");
    (from, to)
}

/// How many of the words are somewhere in the value.
fn mentioned(item: &Item, words: &str) -> usize {
    let text = Value::Object(item.value.clone()).to_string().to_lowercase();
    words.to_lowercase().split_whitespace().filter(|word| text.contains(word)).count()
}
