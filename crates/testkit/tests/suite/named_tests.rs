//! Tests that the guide names as what enforces a promise exist.

use std::fs;

use hart_testkit::binary::workspace_root;

/// `crate/tests/file.rs::name`, wherever they stand in the text.
fn named(text: &str) -> Vec<(&str, &str)> {
    text.split('`').filter_map(|word| word.split_once(".rs::").filter(|_| !word.contains(' '))).collect()
}

#[test]
fn every_test_that_a_promise_names_exists() {
    let root = workspace_root();
    let text = fs::read_to_string(root.join("docs/guide/durability.md")).unwrap();
    let named = named(&text);
    assert!(named.len() > 20, "{named:?}");
    for (file, name) in named {
        let path = root.join("crates").join(format!("{file}.rs"));
        let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let is_test = source.contains(&format!("fn {name}("));
        assert!(is_test, "docs/guide/durability.md names {name}, and {} has none", path.display());
    }
}
