//! Which files the model has seen, and in what state: so that it does not overwrite what it does not know.
//!
//! Invariant: a mark is made only of content that the model was shown or wrote itself.

use std::collections::BTreeMap;

use hart_kernel::{ReduceError, Scope, StateKey};
use hart_sandbox::VPath;
use serde_json::{Map, Value};

use crate::lenient::Flag;

/// The marks of a thread, by path.
#[derive(Clone, Copy, Debug)]
pub struct ReadMarks;

/// The oldest paths by name go first: a thread that touches so many files can read one again.
const MAX_MARKS: usize = 2000;

impl StateKey for ReadMarks {
    type Value = BTreeMap<String, String>;
    type Update = BTreeMap<String, String>;
    const NAME: &'static str = "read_marks";
    const SCOPE: Scope = Scope::Private;

    fn reduce(current: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        let mut all = current.unwrap_or_default();
        let new: Vec<String> = update.keys().cloned().collect();
        all.extend(update);
        while all.len() > MAX_MARKS {
            let Some(spare) = all.keys().find(|path| !new.contains(path)).cloned() else { break };
            all.remove(&spare);
        }
        Ok(all)
    }
}

/// What a call does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    Reads,
    /// Replaces all or a part of it.
    Overwrites,
    /// Adds to its end, which loses nothing.
    Extends,
}

/// What a call of a built-in tool does, and to which path; `None` for calls that touch no single file's content.
pub fn file_access<'a>(tool: &str, args: &'a Map<String, Value>) -> Option<(FileAccess, &'a str)> {
    let access = match tool {
        "read_file" => FileAccess::Reads,
        "str_replace" => FileAccess::Overwrites,
        "write_file" => {
            let append = args.get("append").cloned().map(serde_json::from_value::<Flag>);
            match append {
                Some(Ok(Flag(true))) => FileAccess::Extends,
                _ => FileAccess::Overwrites,
            }
        }
        _ => return None,
    };
    let path = args.get("path").or_else(|| args.get("file_path"))?.as_str()?;
    Some((access, path))
}

/// Why a write is refused, for the model.
pub fn never_read(path: &VPath) -> String {
    format!(
        "`{path}` exists and you have not read it, so nothing was written; read it with read_file first, then write \
         what shall be in it (or append, which loses nothing)"
    )
}

/// Why a write is refused, for the model.
pub fn changed_since(path: &VPath) -> String {
    format!(
        "`{path}` has changed since you read it, so nothing was written; read it again with read_file, then make \
         your change to what is there now"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart() {
        let access = |tool: &str, args: Value| {
            file_access(tool, args.as_object().unwrap()).map(|(access, path)| (access, path.to_owned()))
        };
        use serde_json::json;
        let a = || "a".to_owned();
        assert_eq!(access("read_file", json!({"path": "a"})), Some((FileAccess::Reads, a())));
        assert_eq!(access("write_file", json!({"path": "a"})), Some((FileAccess::Overwrites, a())));
        let append = json!({"file_path": "a", "append": "true"});
        assert_eq!(access("write_file", append), Some((FileAccess::Extends, a())));
        assert_eq!(access("str_replace", json!({"path": "a"})), Some((FileAccess::Overwrites, a())));
        assert_eq!(access("bash", json!({"path": "a"})), None);
        assert_eq!(access("read_file", json!({"path": 5})), None);
    }

    #[test]
    fn marks_are_many_but_not_endless() {
        let one = |n: usize| BTreeMap::from([(format!("{n:05}"), "x".to_owned())]);
        let all =
            (0..MAX_MARKS + 10).fold(None, |all, n| Some(ReadMarks::reduce(all, one(n)).unwrap())).unwrap();
        assert_eq!(all.len(), MAX_MARKS);
        assert!(all.contains_key(&format!("{:05}", MAX_MARKS + 9)));
    }
}
