use serde_json::{Map, Value, json};

use super::*;

struct Artifacts;
impl StateKey for Artifacts {
    type Value = Vec<String>;
    type Update = Vec<String>;
    const NAME: &'static str = "artifacts";
    fn reduce(current: Option<Vec<String>>, new: Vec<String>) -> Result<Vec<String>, ReduceError> {
        let mut all = current.unwrap_or_default();
        all.extend(new);
        Ok(all)
    }
}

/// Takes a first id and refuses any other.
struct SandboxKey;
impl StateKey for SandboxKey {
    type Value = String;
    type Update = String;
    const NAME: &'static str = "sandbox";
    fn reduce(current: Option<String>, new: String) -> Result<String, ReduceError> {
        match current {
            Some(old) if old != new => Err(ReduceError(format!("already `{old}`"))),
            _ => Ok(new),
        }
    }
}

struct Secret;
impl StateKey for Secret {
    type Value = u32;
    type Update = u32;
    const NAME: &'static str = "secret";
    const SCOPE: Scope = Scope::Private;
    fn reduce(_: Option<u32>, new: u32) -> Result<u32, ReduceError> {
        Ok(new)
    }
}

fn schema() -> Schema {
    let mut schema = Schema::default();
    schema.declare::<Messages>().unwrap().declare::<Artifacts>().unwrap();
    schema.declare::<SandboxKey>().unwrap().declare::<Secret>().unwrap();
    schema
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn unknown_and_misshapen_stored_values_round_trip() {
    let stored = object(json!({"artifacts": {"not": "a list"}, "from_the_future": [1, 2], "sandbox": "s1"}));
    let mut state = schema().decode(stored.clone());
    assert_eq!(state.get::<Artifacts>(), None);
    assert_eq!(state.get::<SandboxKey>().map(String::as_str), Some("s1"));
    assert_eq!(schema().values(&state), stored);
    state.apply(Update::none().set::<Artifacts>(vec!["a".into()])).unwrap();
    assert_eq!(state.get::<Artifacts>(), Some(&vec!["a".to_owned()]));
}

#[test]
fn an_update_applies_whole_or_not_at_all() {
    let mut state = schema().decode(object(json!({"sandbox": "s1"})));
    let update = Update::none().set::<Artifacts>(vec!["a".into()]).set::<SandboxKey>("s2".into());
    assert!(matches!(state.apply(update), Err(StateError::Reduce { name: "sandbox", .. })));
    assert_eq!(state.get::<Artifacts>(), None, "the write before the refused one left a trace");
}

#[test]
fn private_keys_never_leave_and_cannot_be_written() {
    let mut state = State::default();
    state.apply(Update::none().set::<Secret>(7).set::<Artifacts>(vec!["a".into()])).unwrap();
    assert_eq!(schema().values(&state), object(json!({"artifacts": ["a"]})));
    assert_eq!(schema().inherit(&state).get::<Secret>(), None);
    assert!(matches!(schema().parse(object(json!({"secret": 1}))), Err(StateError::NotWritable { .. })));
}

#[test]
fn children_inherit_shared_keys_only() {
    let mut state = State::default();
    let update = Update::none().messages(hart_types::Message::human("hi")).set::<Artifacts>(vec!["a".into()]);
    state.apply(update).unwrap();
    let child = schema().inherit(&state);
    assert!(child.messages().is_empty());
    assert_eq!(child.get::<Artifacts>(), Some(&vec!["a".to_owned()]));
}

#[test]
fn two_types_with_one_name_are_a_build_error() {
    struct Other;
    impl StateKey for Other {
        type Value = u32;
        type Update = u32;
        const NAME: &'static str = "artifacts";
        fn reduce(_: Option<u32>, new: u32) -> Result<u32, ReduceError> {
            Ok(new)
        }
    }
    let error = schema().declare::<Other>().unwrap_err().to_string();
    assert!(error.contains("Artifacts") && error.contains("Other"), "{error}");
}

#[test]
fn message_input_is_read_as_langgraph_reads_it() {
    for (input, expected) in [
        (json!("hi"), vec![("human", "hi")]),
        (json!(["user", "hi"]), vec![("human", "hi")]),
        (
            json!([["system", "s"], "hi", {"role": "assistant", "content": "yo"}]),
            vec![("system", "s"), ("human", "hi"), ("ai", "yo")],
        ),
        (json!({"type": "human", "content": "hi"}), vec![("human", "hi")]),
    ] {
        let update = schema().parse(object(json!({ "messages": input }))).unwrap();
        let mut state = State::default();
        state.apply(update).unwrap();
        let read: Vec<_> = state.messages().iter().map(|m| (m.kind().to_owned(), m.text())).collect();
        let expected: Vec<_> = expected.into_iter().map(|(k, t)| (k.to_owned(), t.to_owned())).collect();
        assert_eq!(read, expected);
        assert!(state.messages().iter().all(|m| m.id.is_some()));
    }
}

#[test]
fn messages_are_replaced_by_id_and_removed() {
    let mut state = State::default();
    let message = |id: &str, text: &str| hart_types::Message::human(text).with_id(id);
    state.apply(Update::none().messages(vec![message("1", "a"), message("2", "b")])).unwrap();
    state.apply(Update::none().messages(vec![message("1", "A"), hart_types::Message::remove("2")])).unwrap();
    assert_eq!(state.messages().iter().map(|m| m.text()).collect::<Vec<_>>(), ["A"]);
    assert!(state.apply(Update::none().messages(hart_types::Message::remove("9"))).is_err());
    state.apply(Update::none().messages(hart_types::Message::remove(hart_types::REMOVE_ALL))).unwrap();
    assert!(state.messages().is_empty());
}

#[test]
fn replaying_a_log_gives_the_same_state() {
    let updates = || {
        [
            Update::none().messages(hart_types::Message::human("q")).set::<Secret>(1),
            Update::none().set::<Artifacts>(vec!["a".into()]),
            Update::none().set::<Artifacts>(vec!["b".into()]).messages(hart_types::Message::ai("r")),
        ]
    };
    let (mut live, mut replayed) = (State::default(), State::default());
    for update in updates() {
        let writes = update.to_writes();
        live.apply(update).unwrap();
        schema().replay(&mut replayed, writes);
    }
    assert_eq!(schema().values(&replayed), schema().values(&live));
    assert_eq!(replayed.get::<Secret>(), Some(&1));
}

#[test]
fn a_bad_write_in_a_log_does_not_brick_the_thread() {
    let mut state = State::default();
    state.apply(Update::none().messages(hart_types::Message::human("q"))).unwrap();
    let logged = |key: &str, value, private| LoggedWrite { key: key.to_owned(), value, private };
    let log = vec![
        logged("messages", json!(42), false),
        logged("gone", json!({"x": 1}), false),
        logged("gone_secret", json!("s"), true),
    ];
    schema().replay(&mut state, log);
    assert_eq!(state.messages().len(), 1);
    let values = schema().values(&state);
    assert_eq!(values["gone"], json!({"x": 1}));
    assert!(!values.contains_key("gone_secret"), "a private key became public when its middleware went");
}
