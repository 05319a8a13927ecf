//! Connections set up the way hart needs them.
//!
//! Invariant: a writer's commit is on the disk before it returns; a reader cannot write.

use std::path::Path;
use std::time::Duration;

use hart_runtime::port::contains;
use rusqlite::config::DbConfig;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::{OpenError, migrations};

// Older ones can corrupt a file in WAL mode with two connections.
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003, "the bundled SQLite is too old");

/// How long another process may hold the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// `whole` looks at every page; otherwise at the first ones, as opening does.
pub(super) fn writer(path: &Path, whole: bool) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::of(path, source);
    let mut connection = Connection::open(path).map_err(failed)?;
    // Others may have the file open, and be making it.
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    check(&connection, path, if whole { WHOLE } else { GLANCE })?;
    prepare_writer(&connection).map_err(failed)?;
    migrations::apply(&mut connection, path)?;
    Ok(connection)
}

/// Whether a writer would find the file whole, and of a hart that it knows.
pub(super) fn examine(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::of(path, source);
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    check(&connection, path, WHOLE)?;
    migrations::are_missing(&connection, path).map(|_| ())
}

pub(super) fn memory() -> Result<Connection, OpenError> {
    let path = Path::new(":memory:");
    let failed = |source| OpenError::of(path, source);
    let mut connection = Connection::open_in_memory().map_err(failed)?;
    prepare_writer(&connection).map_err(failed)?;
    migrations::apply(&mut connection, path)?;
    Ok(connection)
}

pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", "on")?;
    connection.pragma_update(None, "wal_autocheckpoint", 2000)?;
    prepare(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.busy_timeout(PATIENCE)?;
    // Otherwise a statement that might use a partial index is planned anew for every value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // More than there are, so that none is parsed twice.
    connection.set_prepared_statement_cache_capacity(256);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("json_has", 2, flags, |context| {
        let parse = |index| -> rusqlite::Result<Value> {
            let text: String = context.get(index)?;
            Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
        };
        Ok(contains(&parse(0)?, &parse(1)?))
    })
}

/// Reads every page.
const WHOLE: &str = "PRAGMA quick_check(1)";
/// Reads the header and the schema.
const GLANCE: &str = "SELECT iif(count(*) >= 0, 'ok', 'ok') FROM sqlite_schema";

/// A look at the file; a new one has nothing to find.
fn check(connection: &Connection, path: &Path, look: &str) -> Result<(), OpenError> {
    let finding: Result<String, _> = connection.query_row(look, [], |row| row.get(0));
    match finding {
        Ok(ok) if ok == "ok" => Ok(()),
        Ok(finding) => Err(OpenError::Damaged { path: path.to_owned(), finding }),
        Err(error) => match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                Err(OpenError::Damaged { path: path.to_owned(), finding: error.to_string() })
            }
            _ => Err(OpenError::of(path, error)),
        },
    }
}
