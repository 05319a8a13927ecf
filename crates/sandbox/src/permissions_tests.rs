//! Rules against paths, as tables.

use serde_json::json;

use super::*;

fn permissions(rules: serde_json::Value) -> Permissions {
    Permissions::new(serde_json::from_value(rules).unwrap()).unwrap()
}

fn at(path: &str) -> VPath {
    VPath::parse(path).unwrap()
}

#[test]
fn the_first_match_decides() {
    let rules = permissions(json!([
        {"operations": ["read"], "paths": ["/mnt/user-data/uploads/public/**"]},
        {"operations": ["read", "write"], "paths": ["/mnt/user-data/uploads/**"], "mode": "deny"},
        {"operations": ["write"], "paths": ["/mnt/user-data/workspace/{a,b}/*.txt"], "mode": "interrupt"},
        {"operations": ["write"], "paths": ["/mnt/user-data/outputs/secret"], "mode": "deny"},
    ]));
    use Operation::{Read, Write};
    use PermissionMode::{Allow, Deny, Interrupt};
    for (operation, path, mode) in [
        (Read, "/mnt/user-data/uploads/public/x", Allow),
        (Write, "/mnt/user-data/uploads/public/x", Deny),
        (Read, "/mnt/user-data/uploads/.env", Deny),
        (Read, "/mnt/user-data/uploads", Allow),
        (Read, "/mnt/user-data/uploads2", Allow),
        (Write, "/mnt/user-data/workspace/a/x.txt", Interrupt),
        (Write, "/mnt/user-data/workspace/a/x.txt/below", Interrupt),
        (Read, "/mnt/user-data/workspace/a/x.txt", Allow),
        (Write, "/mnt/user-data/workspace/a/b/x.txt", Allow),
        (Write, "/mnt/user-data/outputs/secret", Deny),
        (Write, "/mnt/user-data/outputs/secret/deep/er", Deny),
        (Write, "/mnt/user-data/outputs/secrets", Allow),
    ] {
        let path = if path == "/mnt/user-data/uploads2" { VPath::root(path) } else { at(path) };
        assert_eq!(rules.decide(operation, &path), mode, "{operation:?} {path}");
    }
}

#[test]
fn a_directory_is_as_protected_as_what_may_be_in_it() {
    for (pattern, dir, protected) in [
        ("/mnt/user-data/workspace/a/keep.txt", "/mnt/user-data/workspace/a", true),
        ("/mnt/user-data/workspace/a/keep.txt", "/mnt/user-data/workspace/b", false),
        ("/mnt/user-data/workspace/*/keep.txt", "/mnt/user-data/workspace/b", true),
        ("/mnt/user-data/workspace/*/keep.txt", "/mnt/user-data/outputs", false),
        ("/**/keep.txt", "/mnt/user-data/outputs", true),
        ("/mnt/user-data/workspace/a", "/mnt/user-data/workspace/ab", false),
    ] {
        // An earlier rule that allows does not help.
        let rules = permissions(json!([
            {"operations": ["write"], "paths": ["/**"]},
            {"operations": ["write"], "paths": [pattern], "mode": "deny"},
            {"operations": ["write"], "paths": [pattern], "mode": "interrupt"},
        ]));
        assert_eq!(rules.check_below(Operation::Write, &at(dir)).is_err(), protected, "{pattern} {dir}");
        assert_eq!(rules.asks_below(Operation::Write, &at(dir)), protected, "{pattern} {dir}");
        assert!(!rules.asks_below(Operation::Read, &at(dir)));
    }
}

#[test]
fn rules_that_cannot_be_meant_are_refused() {
    for (rule, why) in [
        (json!({"operations": ["read"], "paths": ["uploads/**"]}), "`uploads/**` is not an absolute path"),
        (json!({"operations": ["read"], "paths": ["/a/../b"]}), "is not an absolute path without `..`"),
        (json!({"operations": ["read"], "paths": ["/~root"]}), "is not an absolute path without `..`"),
        (json!({"operations": ["read"], "paths": ["/a/{b"]}), "unclosed alternate"),
        (json!({"operations": [], "paths": ["/a"]}), "names no operation"),
    ] {
        let rules = serde_json::from_value(json!([rule])).unwrap();
        let error = Permissions::new(rules).unwrap_err().to_string();
        assert!(error.contains("rule 1: ") && error.contains(why), "{error}");
    }
    let unknown = json!({"operations": ["execute"], "paths": ["/a"]});
    assert!(serde_json::from_value::<FilesystemPermission>(unknown).is_err());
}
