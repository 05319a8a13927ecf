//! What a reader of the streams puts together, to be held against what the threads hold.

use hart_runtime::port::StoredEvent;
use hart_runtime::{LogEvent, Logged};
use serde_json::Value;

/// `(kind, text)` of a message.
pub(crate) type Spoken = (String, String);

pub(crate) struct Told {
    /// What the model and the tools said, without what was taken back.
    pub(crate) messages: Vec<Spoken>,
    /// How many runs were said to have ended.
    pub(crate) ended: usize,
}

pub(crate) fn told(events: &[StoredEvent]) -> Told {
    let mut streamed: Vec<(String, Value)> = Vec::new();
    let mut ended = 0;
    let mut last = 0;
    for event in events {
        assert!(event.id.seq > last, "numbers rise");
        last = event.id.seq;
        let logged: Logged = serde_json::from_slice(&event.payload).unwrap();
        // What agents inside of calls say is not in the thread.
        if !logged.namespace.is_empty() {
            continue;
        }
        match &logged.event {
            LogEvent::Ended { .. } => ended += 1,
            LogEvent::Chunk { message, .. } | LogEvent::Message { message, .. } => {
                let message: Value = serde_json::from_str(message.get()).unwrap();
                let id = message["id"].as_str().unwrap_or_else(|| panic!("no id: {message}")).to_owned();
                let kind = message["type"].as_str().unwrap().to_owned();
                match streamed.iter_mut().find(|(known, _)| *known == id) {
                    _ if kind == "remove" => streamed.retain(|(known, _)| *known != id),
                    Some((_, known)) if kind == "AIMessageChunk" => {
                        let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
                        known["content"] = (text(known) + &text(&message)).into();
                    }
                    Some((_, known)) => *known = message,
                    None => streamed.push((id, message)),
                }
            }
            _ => {}
        }
    }
    let messages = streamed.iter().filter_map(|(_, message)| spoken(message)).collect();
    Told { messages, ended }
}

/// What the model and the tools said, as a thread's state has it.
pub(crate) fn transcript(values: &Value) -> Vec<Spoken> {
    values["messages"].as_array().into_iter().flatten().filter_map(spoken).collect()
}

/// Results of one batch are told as they come, and are in the thread in the order of their calls.
pub(crate) fn sort_batches(list: &mut [Spoken]) {
    list.chunk_by_mut(|one, other| one.0 == "tool" && other.0 == "tool").for_each(<[_]>::sort);
}

/// Whether it is said of a call that nobody knows what it did.
pub(crate) fn is_unknown((_, text): &Spoken) -> bool {
    text.contains("not known whether it took effect")
}

/// Word for word and in the same order, but for calls that are said to be unknown, which only those can be that must not
/// be made twice, and for results that hang on them.
pub(crate) fn assert_same_but_for_unknown(
    place: &str,
    found: &[Spoken],
    expected: &[Spoken],
    depends: impl Fn(&Spoken) -> bool,
) {
    assert_eq!(found.len(), expected.len(), "{place}: {found:#?}");
    for (found, wanted) in found.iter().zip(expected) {
        if is_unknown(found) {
            let again =
                ["peek ", "put "].iter().any(|tool| wanted.1.trim_start_matches("much ").starts_with(tool));
            assert!(wanted.0 == "tool" && !again, "{place}: {wanted:?} cannot be unknown");
        } else if !depends(wanted) {
            assert_eq!(found, wanted, "{place}");
        }
    }
}

fn spoken(message: &Value) -> Option<Spoken> {
    let kind = message["type"].as_str()?.replace("AIMessageChunk", "ai");
    let is_told = kind == "ai" || kind == "tool";
    is_told.then(|| (kind, message["content"].as_str().unwrap_or_default().to_owned()))
}
