//! Values on their way into columns and out of them.
//!
//! Invariant: what was written is read back equal; what cannot be read is an error that names its column.

use hart_kernel::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Error, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Microseconds: what LangGraph's clients are shown.
pub(super) fn time(at: Timestamp) -> i64 {
    at.as_microsecond()
}

pub(super) fn get_time(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    let micros: i64 = row.get(column)?;
    Timestamp::from_microsecond(micros).map_err(|error| unreadable(column, error))
}

/// SQLite's numbers have a sign, ours do not.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn get_optional_time(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    let micros: Option<i64> = row.get(column)?;
    micros.map(Timestamp::from_microsecond).transpose().map_err(|error| unreadable(column, error))
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

pub(super) fn get_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

pub(super) fn get_optional_json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| unreadable(column, error))
}

/// An id, or any other type that is made of text.
pub(super) fn get_text<T: From<String>>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    row.get::<_, String>(column).map(T::from)
}

pub(super) fn get_optional_text<T: From<String>>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<String>>(column)?.map(T::from))
}

pub(super) fn get_word<T: std::str::FromStr<Err = String>>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error: String| unreadable(column, error))
}

pub(super) fn unreadable(column: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let source = std::io::Error::other(format!("`{column}` cannot be read: {}", error.into()));
    Error::FromSqlConversionFailure(0, Type::Text, Box::new(source))
}
