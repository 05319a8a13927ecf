//! The layers of the workspace, and the check itself.

use hart_testkit::binary::workspace_root;
use hart_testkit::layering::{Metadata, forbidden_reach, violations, wrong_arrows};
use serde_json::{Value, json};

#[test]
fn lower_layers_never_import_higher_ones() {
    let found = violations(&workspace_root());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn metadata(json: Value) -> Metadata {
    serde_json::from_value(json).unwrap()
}

fn package(name: &str, dependencies: Value) -> Value {
    json!({"id": name, "name": name, "dependencies": dependencies})
}

#[test]
fn a_wrong_arrow_is_named_and_a_test_dependency_is_not() {
    let found = wrong_arrows(&metadata(json!({"packages": [
        package("hart-kernel", json!([
            {"name": "hart-types", "kind": null},
            {"name": "hart-models", "kind": "build"},
            {"name": "hart-testkit", "kind": "dev"},
            {"name": "tokio", "kind": null},
        ])),
        package("hart-bench", json!([{"name": "hart-app", "kind": null}])),
    ]})));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("hart-kernel -> hart-models"));
    assert!(found[0].contains("ADR"));
}

#[test]
fn an_unknown_crate_must_be_added_to_the_table() {
    let found = wrong_arrows(&metadata(json!({"packages": [package("hart-utils", json!([]))]})));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("hart-utils") && found[0].contains("add it to the table"));
}

#[test]
fn a_forbidden_crate_is_found_through_others_but_not_through_tests() {
    let edge = |to: &str, kind: Value| json!({"pkg": to, "dep_kinds": [{"kind": kind}]});
    let graph = |kind: Value| {
        metadata(json!({
            "packages": [package("hart-types", json!([])), package("middle", json!([])), package("tokio", json!([]))],
            "resolve": {"nodes": [
                {"id": "hart-types", "deps": [edge("middle", kind)]},
                {"id": "middle", "deps": [edge("tokio", Value::Null)]},
                {"id": "tokio", "deps": []},
            ]},
        }))
    };
    let found = forbidden_reach(&graph(Value::Null));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("hart-types -> middle -> tokio"), "{found:?}");
    assert!(forbidden_reach(&graph(json!("dev"))).is_empty());
}
