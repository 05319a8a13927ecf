//! Which file holds the configuration, and its text.
//!
//! Invariant: a file the user named must be readable; only the one nobody named may be absent.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::node::Node;
use super::problem::{Place, Problem};
use super::raw;
use crate::Env;

pub(super) struct ReadFile {
    pub(super) path: PathBuf,
    /// The file as messages call it: relative to the working directory where possible.
    pub(super) label: String,
    pub(super) tree: Node,
}

/// The file that was named, else the variable's, else `config.yaml` if it is there.
pub(super) fn read(named: Option<PathBuf>, cwd: &Path, env: &Env) -> Result<Option<ReadFile>, Problem> {
    let variable = || {
        ["HART_CONFIG", "DEER_FLOW_CONFIG_PATH"]
            .into_iter()
            .find_map(|name| Some((PathBuf::from(env.get_non_empty(name)?), format!("unset {name}"))))
    };
    let found = named.map(|path| (path, "leave out the option".to_owned())).or_else(variable);
    let (path, otherwise) = match found {
        Some((path, otherwise)) => (cwd.join(path), otherwise),
        None => {
            let path = cwd.join("config.yaml");
            // A link that leads nowhere is a mistake to report, not an absence.
            if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                return Ok(None);
            }
            (path, "remove it".to_owned())
        }
    };
    let label = path.strip_prefix(cwd).unwrap_or(&path).display().to_string();
    let place = || Place::WholeFile { file: label.clone() };
    let bytes = bytes_of(&path).map_err(|error| {
        let (what, help) = match error.kind() {
            io::ErrorKind::NotFound => (
                "the file does not exist".to_owned(),
                format!("create it with `hart config init`, or {otherwise}"),
            ),
            io::ErrorKind::IsADirectory => {
                ("this is a directory, not a file".to_owned(), format!("name the file in it, or {otherwise}"))
            }
            io::ErrorKind::PermissionDenied => (
                "the file cannot be read: permission denied".to_owned(),
                "make it readable for this user".to_owned(),
            ),
            _ => (format!("the file cannot be read: {error}"), format!("check the path, or {otherwise}")),
        };
        Problem::new(what, place()).help(help)
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(valid);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        Problem::new(format!("line {line} is not UTF-8 text"), place()).help("save the file as UTF-8")
    })?;
    let tree = raw::parse(&text, &label)?;
    Ok(Some(ReadFile { path, label, tree }))
}

/// Pipes are welcome (`--config <(generate)`), endless ones are cut.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut bytes = Vec::new();
    file.take(raw::MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
