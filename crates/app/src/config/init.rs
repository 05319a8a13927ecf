//! A first `config.yaml`.
//!
//! Invariant: an existing file is never overwritten.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::problem::{ConfigError, Place, Problem};

/// What [`init`] writes.
pub const TEMPLATE: &str = include_str!("../../assets/config.example.yaml");

/// Writes `config.yaml` into `dir` and says where it is.
pub fn init(dir: &Path) -> Result<PathBuf, ConfigError> {
    let path = dir.join("config.yaml");
    let written = fs::OpenOptions::new()
        .write(true)
        // Refuses atomically, and does not follow a link to somewhere else.
        .create_new(true)
        .open(&path)
        .and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
    written.map_err(|error| {
        let place = Place::WholeFile { file: path.display().to_string() };
        let (what, help) = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                ("the file exists already".to_owned(), "edit it, or move it away first")
            }
            io::ErrorKind::NotFound => ("the directory does not exist".to_owned(), "create it first"),
            _ => (format!("the file cannot be written: {error}"), "check the permissions of the directory"),
        };
        Problem::new(what, place).help(help)
    })?;
    Ok(path)
}

#[cfg(test)]
#[path = "init_tests.rs"]
mod tests;
