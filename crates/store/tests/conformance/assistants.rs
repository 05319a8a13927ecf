//! Assistants: made once, changed version by version, found by what they hold.

use hart_runtime::port::{
    Assistant, AssistantCreated, AssistantPatch, AssistantQuery, AssistantSort, Order, VersionQuery,
};
use serde_json::{Value, json};

use super::{at, map, stores};

fn assistant(id: &str, seconds: i64, metadata: Value) -> Assistant {
    Assistant {
        id: id.into(),
        graph: "agent".into(),
        name: format!("Name of {id}"),
        description: Some("ü".into()),
        config: map(json!({"configurable": {"model_name": "m"}})),
        context: map(json!({"model_name": "m"})),
        metadata: map(metadata),
        version: 1,
        system: false,
        created_at: at(seconds),
        updated_at: at(seconds),
    }
}

fn patch(seconds: i64) -> AssistantPatch {
    AssistantPatch {
        graph: None,
        name: None,
        description: None,
        config: None,
        context: None,
        metadata: serde_json::Map::new(),
        at: at(seconds),
    }
}

fn versions() -> VersionQuery {
    VersionQuery { limit: 10, ..VersionQuery::default() }
}

#[tokio::test]
async fn an_assistant_is_read_back_as_it_was_made_and_made_once() {
    for (name, store, _dir) in stores() {
        let made = assistant("a", 5, json!({"deep": {"k": [1]}}));
        let first = store.create_assistant(made.clone()).await.unwrap();
        assert_eq!(first, AssistantCreated::New(made.clone()), "{name}");
        let again = store.create_assistant(assistant("a", 9, json!({}))).await.unwrap();
        assert_eq!(again, AssistantCreated::Existing(made.clone()), "{name}");
        assert_eq!(store.assistant(&"a".into()).await.unwrap(), Some(made), "{name}");
        assert_eq!(store.assistant(&"b".into()).await.unwrap(), None, "{name}");
    }
}

#[tokio::test]
async fn a_change_is_a_new_version_and_the_old_ones_stay() {
    for (name, store, _dir) in stores() {
        let made = assistant("a", 0, json!({"k": 1}));
        store.create_assistant(made.clone()).await.unwrap();
        let change = AssistantPatch {
            name: Some("Second".into()),
            context: Some(map(json!({"model_name": "n"}))),
            metadata: map(json!({"more": true})),
            ..patch(7)
        };
        let second = store.patch_assistant(&"a".into(), change).await.unwrap().unwrap();
        assert_eq!((second.version, second.name.as_str()), (2, "Second"), "{name}");
        assert_eq!(
            (second.config.clone(), second.description.clone()),
            (made.config.clone(), made.description.clone())
        );
        assert_eq!(second.metadata, map(json!({"k": 1, "more": true})), "{name}");
        assert_eq!((second.created_at, second.updated_at), (at(0), at(7)), "{name}");
        assert_eq!(store.assistant(&"a".into()).await.unwrap(), Some(second.clone()), "{name}");

        let back = store.set_assistant_version(&"a".into(), 1, at(8)).await.unwrap().unwrap();
        assert_eq!(back, Assistant { updated_at: at(8), ..made.clone() }, "{name}");
        assert_eq!(store.assistant(&"a".into()).await.unwrap(), Some(back), "{name}");
        // Made out of the one shown, numbered behind the newest.
        let third = store.patch_assistant(&"a".into(), patch(9)).await.unwrap().unwrap();
        assert_eq!((third.version, third.name), (3, made.name), "{name}");

        let listed = store.assistant_versions(&"a".into(), &versions()).await.unwrap();
        let numbers: Vec<_> = listed.iter().map(|version| (version.version, version.created_at)).collect();
        assert_eq!(numbers, [(3, at(9)), (2, at(7)), (1, at(0))], "{name}");
        let more = VersionQuery { metadata: map(json!({"more": true})), ..versions() };
        let listed = store.assistant_versions(&"a".into(), &more).await.unwrap();
        assert_eq!(listed.iter().map(|version| version.version).collect::<Vec<_>>(), [2], "{name}");
        let page = VersionQuery { limit: 1, offset: 1, ..versions() };
        assert_eq!(store.assistant_versions(&"a".into(), &page).await.unwrap()[0].version, 2, "{name}");

        assert!(store.set_assistant_version(&"a".into(), 4, at(9)).await.unwrap().is_none(), "{name}");
        assert!(store.set_assistant_version(&"b".into(), 1, at(9)).await.unwrap().is_none(), "{name}");
        assert!(store.patch_assistant(&"b".into(), patch(9)).await.unwrap().is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_search_filters_sorts_and_pages() {
    for (name, store, _dir) in stores() {
        for (id, seconds, metadata) in [
            ("a", 3, json!({"kind": "x"})),
            ("b", 1, json!({"kind": "x", "n": 2})),
            ("c", 2, json!({"kind": "y"})),
        ] {
            store.create_assistant(assistant(id, seconds, metadata)).await.unwrap();
        }
        let other = Assistant { graph: "gone".into(), system: true, ..assistant("s", 9, json!({})) };
        store.create_assistant(other).await.unwrap();
        let all = AssistantQuery { agents: vec!["agent".into()], limit: 10, ..AssistantQuery::default() };
        let table = [
            (all.clone(), vec!["a", "c", "b"]),
            (AssistantQuery { agents: vec!["gone".into()], ..all.clone() }, vec!["s", "a", "c", "b"]),
            (AssistantQuery { order: Order::Ascending, ..all.clone() }, vec!["b", "c", "a"]),
            (AssistantQuery { sort: AssistantSort::Name, ..all.clone() }, vec!["c", "b", "a"]),
            (AssistantQuery { limit: 1, offset: 1, ..all.clone() }, vec!["c"]),
            (AssistantQuery { metadata: map(json!({"kind": "x"})), ..all.clone() }, vec!["a", "b"]),
            (AssistantQuery { name: Some("NAME OF B".into()), ..all.clone() }, vec!["b"]),
            (AssistantQuery { graph: Some("nothing".into()), ..all.clone() }, vec![]),
        ];
        for (query, expected) in table {
            let found = store.search_assistants(&query).await.unwrap();
            let ids: Vec<&str> = found.iter().map(|assistant| assistant.id.as_str()).collect();
            assert_eq!(ids, expected, "{name} {query:?}");
        }
        assert_eq!(store.count_assistants(&AssistantQuery { limit: 1, ..all }).await.unwrap(), 3, "{name}");
    }
}

#[tokio::test]
async fn a_forgotten_assistant_leaves_no_version() {
    for (name, store, _dir) in stores() {
        store.create_assistant(assistant("a", 0, json!({}))).await.unwrap();
        store.patch_assistant(&"a".into(), patch(1)).await.unwrap();
        assert!(store.delete_assistant(&"a".into()).await.unwrap(), "{name}");
        assert!(!store.delete_assistant(&"a".into()).await.unwrap(), "{name}");
        assert!(store.assistant_versions(&"a".into(), &versions()).await.unwrap().is_empty(), "{name}");
        store.create_assistant(assistant("a", 2, json!({}))).await.unwrap();
        assert_eq!(store.assistant_versions(&"a".into(), &versions()).await.unwrap().len(), 1, "{name}");
    }
}
