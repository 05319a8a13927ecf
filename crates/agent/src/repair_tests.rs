use hart_types::{InvalidToolCall, ToolCall};
use serde_json::{Map, json};

use super::*;

/// Calls as `id:name`; `!` before it makes it one whose arguments were broken, and a lone `:name` has no id at all.
fn answer(calls: &[&str]) -> Message {
    let mut ai = Ai::default();
    for call in calls {
        let (broken, call) = call.strip_prefix('!').map_or((false, *call), |call| (true, call));
        let (id, name) = call.split_once(':').unwrap_or((call, "ls"));
        let id = Some(ToolCallId::from(id)).filter(|_| !call.starts_with(':'));
        if broken {
            let invalid = InvalidToolCall::new("", name, "{", "the JSON ends too early".to_owned());
            ai.invalid_tool_calls.push(InvalidToolCall { id, ..invalid });
        } else {
            ai.tool_calls.push(ToolCall { id, ..ToolCall::new("", name, Map::new()) });
        }
    }
    Message::new(Body::Ai(ai), "").with_id("m")
}

/// A word of a history: `h` a question, `s` a reminder, `a(…)` an answer with calls, anything else a result's call id.
fn history(words: &str) -> MessageList {
    let message = |word: &str| match word {
        "h" => Message::human("q"),
        "s" => Message::system("r"),
        word => match word.strip_prefix("a(").and_then(|calls| calls.strip_suffix(')')) {
            Some(calls) => answer(&calls.split(',').filter(|call| !call.is_empty()).collect::<Vec<_>>()),
            None => Message::tool(&word.into(), "ls", ToolStatus::Success, word),
        },
    };
    words.split_whitespace().map(|word| Arc::new(message(word))).collect()
}

/// The same words back; `?id` is a result that was made up, `id/name` a call of another name than `ls`.
fn words(messages: &MessageList) -> String {
    let name = |id: &str, name: &str| if name == "ls" { id.to_owned() } else { format!("{id}/{name}") };
    let word = |message: &Arc<Message>| match &message.body {
        Body::Human => "h".to_owned(),
        Body::System => "s".to_owned(),
        Body::Ai(ai) => {
            let valid = ai.tool_calls.iter().map(|call| name(call.id.as_ref().unwrap().as_str(), &call.name));
            let invalid = ai.invalid_tool_calls.iter().map(|call| {
                format!("!{}", name(call.id.as_ref().unwrap().as_str(), call.name.as_deref().unwrap()))
            });
            format!("a({})", valid.chain(invalid).collect::<Vec<_>>().join(","))
        }
        Body::Tool(result) => {
            let made_up = if result.status == ToolStatus::Error { "?" } else { "" };
            format!("{made_up}{}", name(result.tool_call_id.as_str(), message.name.as_deref().unwrap()))
        }
        other => panic!("{other:?}"),
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_sound_history_is_left_alone() {
    for sound in [
        "",
        "h",
        "h a() h",
        "s h a(1,2) 2 1 h a(3) 3 s a()",
        "h a(!1) 1",
        "h a(functions.ls|0) functions.ls|0",
    ] {
        let messages = history(sound);
        assert_eq!(History::default().repair(&messages), None, "{sound}");
    }
}

#[test]
fn histories_are_repaired() {
    for (broken, repaired, what) in [
        ("h a(1) h", "h a(1) ?1 h", "interrupted by a crash"),
        ("h a(1)", "h a(1) ?1", "interrupted, nothing said since"),
        ("h a(1,2) 1", "h a(1,2) 1 ?2", "one of two results is missing"),
        ("9 h", "h", "a result without any call"),
        ("h a() 9 h", "h a() h", "a result of a call that is not there"),
        ("a(1) h 1", "a(1) 1 h", "a result behind a later question"),
        ("a(1) s 1", "a(1) 1 s", "a result behind a reminder"),
        ("a(1) 1 1", "a(1) 1", "a result given twice"),
        ("a(1) h a(1) 1", "a(1) ?1 h a(1-2) 1-2", "an id used again: its result is not the first one's"),
        ("a(1) 1 a(1) 1 a(1) 1", "a(1) 1 a(1-2) 1-2 a(1-3) 1-3", "an id used in every answer"),
        ("a(1,1) 1 1", "a(1,1-2) 1 1-2", "one id for two calls"),
        ("a(1-2) 1-2 a(1) 1 a(1) 1", "a(1-2) 1-2 a(1) 1 a(1-3) 1-3", "the new id is taken"),
        ("a(:ls) h", "a(call_0_m) ?call_0_m h", "no id"),
        ("a(:ls,:ls)", "a(call_0_m,call_1_m) ?call_0_m ?call_1_m", "two without an id"),
        ("a(1:) 1", "a(1/unknown_tool) 1/unknown_tool", "no name"),
        ("a(1:) h", "a(1/unknown_tool) ?1/unknown_tool h", "no name and no result"),
        ("a(ä) ä", "a(_) _", "an id in letters that no provider takes"),
        ("a(!1) h", "a(!1) ?1 h", "broken arguments and no result"),
        ("a(!1,1) 1 h", "a(1,!1-2) 1 ?1-2 h", "broken and sound with one id"),
    ] {
        let messages = history(broken);
        let fixed = History::default().repair(&messages).unwrap_or_else(|| panic!("{what}: not repaired"));
        assert_eq!(words(&fixed), repaired, "{what}");
        assert_eq!(History::default().repair(&fixed), None, "{what}: twice is once");
    }
}

#[test]
fn long_ids_are_cut_and_stay_apart() {
    let long = "x".repeat(100);
    let messages = history(&format!("a({long}1,{long}2) {long}2 {long}1"));
    let fixed = History::default().repair(&messages).unwrap();
    let ids: Vec<_> =
        fixed.iter().filter_map(|m| m.as_tool_result()).map(|r| r.tool_call_id.clone()).collect();
    assert!(ids.iter().all(|id| id.as_str().len() == MAX_ID) && ids[0] != ids[1], "{ids:?}");
    assert_eq!(fixed.get(1).unwrap().text(), format!("{long}1"), "each keeps its own result");
}

#[test]
fn what_a_made_up_result_says() {
    for (broken, said) in [
        ("a(1)", "whether it took effect is not known"),
        ("a(!1)", "nothing was run: the JSON ends too early. Call the tool again with valid JSON"),
        ("a(1:)", "the call names no tool"),
    ] {
        let fixed = History::default().repair(&history(broken)).unwrap();
        assert!(fixed.last().unwrap().text().contains(said), "{broken}: {}", fixed.last().unwrap().text());
    }
}

#[test]
fn blocks_that_say_where_a_call_stood_are_renamed_with_it() {
    let block = |kind: &str, key: &str| Block::object(json!({"type": kind, key: "1", "name": "ls"}));
    for (kind, key) in [("tool_use", "id"), ("function_call", "call_id")] {
        let mut second = answer(&["1", "1"]);
        second.content = Content::Blocks(vec![Block::text("t"), block(kind, key), block(kind, key)]);
        let mut messages = history("a(1) 1");
        messages.push(Arc::new(second));
        let fixed = History::default().repair(&messages).unwrap();
        let blocks = fixed.get(2).unwrap().content.to_blocks();
        let ids: Vec<_> = blocks.iter().filter_map(called).collect();
        assert_eq!(ids, ["1-2", "1-3"]);
    }
}

#[test]
fn growing_histories_are_repaired_as_if_at_once_and_keep_their_start() {
    let all = "h a(1,2) 1 h a(1) 1 9 a(:) h a(!3) 3 a() h a(2) 2 h a() h";
    let messages = history(all);
    let mut growing = History::default();
    let mut list = MessageList::default();
    let mut last: Option<MessageList> = None;
    for message in &messages {
        list.push(Arc::clone(message));
        let (sent, fresh) = (growing.repair(&list), History::default().repair(&list));
        assert_eq!(sent.as_ref().map(words), fresh.as_ref().map(words));
        // Everything before the newest answer is the very same value as before.
        if let (Some(last), Some(sent)) = (&last, &sent) {
            let answers = last.iter().enumerate().filter(|(_, message)| message.as_ai().is_some());
            let settled = answers.map(|(at, _)| at).last().unwrap_or(0);
            assert!(sent.common_prefix(last) >= settled, "{} then {}", words(last), words(sent));
        }
        last = sent;
    }
    // Another conversation is not taken for this one.
    assert_eq!(growing.repair(&history("h a(1) 1")), None);
}
