//! Which paths a call of a built-in tool is about.
//!
//! Invariant: it reads the same argument the tool reads, under each of the names the tool understands.

use hart_sandbox::Operation;
use serde_json::{Map, Value};

/// A path in a call's arguments, and what would happen there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathAccess<'a> {
    pub operation: Operation,
    /// As the model wrote it; `None` if it named none.
    pub path: Option<&'a str>,
    /// Not this path alone but whatever is below it.
    pub whole_tree: bool,
}

/// `tool` is the tool's own name. Empty for tools that are not about files; commands are not looked into.
pub fn path_access<'a>(tool: &str, args: &'a Map<String, Value>) -> Vec<PathAccess<'a>> {
    let path = || args.get("path").or_else(|| args.get("file_path")).and_then(Value::as_str);
    let one = |operation, whole_tree| vec![PathAccess { operation, path: path(), whole_tree }];
    match tool {
        "read_file" => one(Operation::Read, false),
        "ls" | "glob" | "grep" => one(Operation::Read, true),
        "write_file" | "str_replace" => one(Operation::Write, false),
        "delete" => one(Operation::Write, true),
        "present_files" => several(args, &["filepaths"]),
        "view_image" => several(args, &["paths", "path", "image_path", "file_path"]),
        _ => Vec::new(),
    }
}

/// A list of files to read, under the first of these names that there is.
fn several<'a>(args: &'a Map<String, Value>, names: &[&str]) -> Vec<PathAccess<'a>> {
    let read = |path, whole_tree| PathAccess { operation: Operation::Read, path, whole_tree };
    match names.iter().find_map(|name| args.get(*name)) {
        Some(Value::Array(paths)) if paths.iter().all(Value::is_string) => {
            paths.iter().map(|path| read(path.as_str(), false)).collect()
        }
        // The tools also understand a list in quotes and a single path; which files those name is not worth guessing
        // here, so it counts as all of them.
        _ => vec![read(None, true)],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_name_their_paths() {
        let access = |tool: &str, args: Value| {
            let args = args.as_object().unwrap();
            let all = path_access(tool, args);
            all.iter().map(|a| (a.operation, a.path.map(str::to_owned), a.whole_tree)).collect::<Vec<_>>()
        };
        use Operation::{Read, Write};
        let a = || Some("a".to_owned());
        assert_eq!(access("read_file", json!({"file_path": "a"})), [(Read, a(), false)]);
        assert_eq!(access("grep", json!({"path": "a", "pattern": "b"})), [(Read, a(), true)]);
        assert_eq!(access("ls", json!({})), [(Read, None, true)]);
        assert_eq!(access("str_replace", json!({"path": "a"})), [(Write, a(), false)]);
        assert_eq!(access("delete", json!({"path": "a"})), [(Write, a(), true)]);
        assert_eq!(access("present_files", json!({"filepaths": ["a", "a"]})).len(), 2);
        assert_eq!(
            access("view_image", json!({"paths": ["a", "a"]})),
            [(Read, a(), false), (Read, a(), false)]
        );
        for unclear in
            [json!({"paths": "a"}), json!({"image_path": "a"}), json!({"paths": ["a", 1]}), json!({})]
        {
            assert_eq!(access("view_image", unclear), [(Read, None, true)]);
        }
        assert!(access("bash", json!({"command": "cat a"})).is_empty());
    }
}
