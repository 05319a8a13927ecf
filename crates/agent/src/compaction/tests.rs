//! Data tables for what needs no model: triggers, cuts, views, refusals, extracts.

use std::sync::Arc;

use hart_kernel::{MessageList, ModelProfile, ModelSettings};
use hart_types::{Ai, Body, Message, ToolCall, ToolStatus, UsageMetadata};
use serde_json::{Map, Value, json};

use super::budget::{Budget, reported};
use super::config::{Clause, Size, SummarizationConfig, Triggers};
use super::cut::{Cuts, newest_user_message};
use super::extract::extract;
use super::record::{Anchor, Compaction, Cut, Trim, Trimming};
use super::summary;
use super::view::view;

/// `H` a user's message, `A` an answer, `A:a,b` one with calls, `a` the result of call `a`, `S` a system message.
fn conversation(text: &str) -> MessageList {
    let message = |(at, word): (usize, &str)| {
        let message = match word.split_once(':') {
            _ if word == "H" => Message::human(format!("question {at}")),
            _ if word == "S" => Message::system("be kind"),
            _ if word == "A" => Message::ai(format!("answer {at}")),
            Some((_, calls)) => {
                let tool_calls = calls.split(',').map(|id| ToolCall::new(id, "tool", Map::new())).collect();
                Message::new(Body::Ai(Ai { tool_calls, ..Ai::default() }), "")
            }
            None => Message::tool(&word.into(), "tool", ToolStatus::Success, format!("result {word}")),
        };
        Arc::new(message.with_id(format!("m{at}")))
    };
    text.split_whitespace().enumerate().map(message).collect()
}

#[test]
fn a_cut_keeps_pairs_whole() {
    let table = [
        // conversation, from, messages to keep, first message that stays
        ("H A H A H A", 0, 2, Some(4)),
        ("H A H A H A", 0, 3, Some(3)),
        ("H A H A H A", 0, 6, None),
        ("H A H A H A", 0, 100, None),
        ("H A H A H A", 4, 1, Some(5)),
        ("H A H A H A", 4, 2, None),
        ("H A:a a A", 0, 2, Some(1)),
        ("H A:a a A", 0, 1, Some(3)),
        // Parallel calls: the answer goes where its last result goes.
        ("H A:a,b,c a b c A", 0, 2, Some(1)),
        ("H A:a,b,c a b c A:d d H", 0, 3, Some(5)),
        ("H A:a,b,c a b c A:d d H", 0, 2, Some(5)),
        ("H A:a,b,c a b c A:d d H", 0, 1, Some(7)),
        // Nothing at all is asked to stay: the newest exchange does.
        ("H A H A:a a", 0, 0, Some(3)),
        // What would keep everything goes forward instead.
        ("A:a,b,c a b c H", 0, 2, Some(4)),
        ("A:a,b,c a b c", 0, 2, None),
        // Results whose call is gone are nobody's; what stays does not begin with one.
        ("H x A H", 0, 3, Some(2)),
        ("H A x A H", 0, 3, Some(1)),
        ("H A x A H", 0, 2, Some(3)),
        // A late result keeps its call, and what lies between.
        ("H A:a H a A", 0, 2, Some(1)),
        // Ids that come again belong to the latest call.
        ("H A:a a A:a a A", 0, 3, Some(3)),
        ("H A:a a A:a a A", 0, 2, Some(3)),
        ("", 0, 2, None),
    ];
    for (text, from, keep, expected) in table {
        let messages = conversation(text);
        let found = Cuts::new(&messages, from).keeping(Size::Messages(keep), |_| 1);
        assert_eq!(found, expected, "{text} from {from}, keeping {keep}");
        let same = Cuts::new(&messages, from).keeping(Size::Tokens(keep as u64 * 10), |_| 10);
        assert_eq!(same, expected, "{text} from {from}, keeping {keep} by tokens");
    }
}

#[test]
fn the_newest_exchange_is_found() {
    let table = [
        ("H A H", Some(2)),
        ("H A:a,b a b", Some(1)),
        ("H A:a a A:b b", Some(3)),
        ("A:a a", None),
        ("H", None),
    ];
    for (text, expected) in table {
        assert_eq!(Cuts::new(&conversation(text), 0).newest(), expected, "{text}");
    }
}

#[test]
fn the_newest_user_message_is_one_of_the_user() {
    let mut messages = conversation("H A H A:a a A:b b");
    assert_eq!(newest_user_message(&messages, 7), Some(2));
    assert_eq!(newest_user_message(&messages, 2), Some(0));
    assert_eq!(newest_user_message(&messages, 0), None);
    let mut reminder = Message::human("mind your todos").with_id("r");
    reminder.additional_kwargs.insert("hide_from_ui".to_owned(), Value::Bool(true));
    messages.push(Arc::new(reminder.clone()));
    assert_eq!(newest_user_message(&messages, 8), Some(2));
    reminder.additional_kwargs.insert("human_input_response".to_owned(), json!({"value": "red"}));
    messages.push(Arc::new(reminder.with_id("s")));
    assert_eq!(newest_user_message(&messages, 9), Some(8));
}

fn config(trigger: Value) -> SummarizationConfig {
    serde_json::from_value(json!({ "trigger": trigger })).unwrap()
}

fn due(
    config: &SummarizationConfig,
    window: Option<u32>,
    output: Option<u32>,
    tokens: u64,
    messages: usize,
) -> bool {
    let profile =
        ModelProfile { context_window: window, max_output_tokens: output, ..ModelProfile::default() };
    Budget::new(config, &profile, &ModelSettings::default(), None).is_due(tokens, messages)
}

#[test]
fn clauses_are_or_and_their_conditions_are_and() {
    let both = json!({"tokens": 100, "messages": 5});
    let table = [
        (json!({"type": "tokens", "value": 100}), [(99, 9, false), (100, 1, true)]),
        (json!({"type": "messages", "value": 5}), [(900, 4, false), (1, 5, true)]),
        (json!({"type": "fraction", "value": 0.5}), [(4_999, 9, false), (5_000, 1, true)]),
        (both.clone(), [(100, 4, false), (100, 5, true)]),
        (both.clone(), [(99, 5, false), (500, 50, true)]),
        (json!([{"tokens": 100}, {"messages": 5}]), [(99, 4, false), (99, 5, true)]),
        (json!([both, {"fraction": 0.2}]), [(1_999, 4, false), (2_000, 1, true)]),
        // Whatever is configured, the window is the limit.
        (json!({"messages": 1000}), [(9_499, 1, false), (9_500, 1, true)]),
    ];
    for (trigger, cases) in table {
        let config = config(trigger.clone());
        for (tokens, messages, expected) in cases {
            assert_eq!(
                due(&config, Some(10_000), None, tokens, messages),
                expected,
                "{trigger} {tokens} {messages}"
            );
        }
    }
    let fraction = config(json!({"fraction": 0.1}));
    assert!(!due(&fraction, None, None, 10_000_000, 10_000), "a part of nothing known is never reached");
}

#[test]
fn without_a_trigger_the_window_decides() {
    let default = SummarizationConfig::default();
    let table = [
        // window, answer, compacted from
        (Some(200_000), None, 160_000),
        (Some(200_000), Some(8_000), 160_000),
        (Some(200_000), Some(64_000), 126_000),
        (Some(100_000), Some(90_000), 8_000),
        (Some(100_000), Some(200_000), 8_000),
        (Some(4_000), Some(1_000), 2_800),
        (Some(4_000), Some(4_000), 2_000),
        (None, Some(4_000), 170_000),
    ];
    for (window, output, from) in table {
        assert!(!due(&default, window, output, from - 1, 9), "{window:?} {output:?}: too early");
        assert!(due(&default, window, output, from, 9), "{window:?} {output:?}: too late");
    }
    let profile = ModelProfile { context_window: Some(200_000), ..ModelProfile::default() };
    let settings = ModelSettings { max_tokens: Some(64_000), ..ModelSettings::default() };
    assert!(
        Budget::new(&default, &profile, &settings, None).is_due(126_000, 1),
        "the call's own limit counts"
    );
    let learnt = Budget::new(&default, &profile, &settings, Some(30_000));
    assert!(learnt.is_due(30_000, 1) && learnt.goal() == 18_000);
}

#[test]
fn how_much_stays() {
    let of = |json: Value, window| {
        let config: SummarizationConfig = serde_json::from_value(json).unwrap();
        let profile = ModelProfile { context_window: window, ..ModelProfile::default() };
        Budget::new(&config, &profile, &ModelSettings::default(), None).keep(None)
    };
    assert_eq!(of(json!({}), Some(50_000)), Size::Tokens(5_000));
    assert_eq!(of(json!({}), None), Size::Messages(6));
    assert_eq!(of(json!({"keep": {"type": "fraction", "value": 0.3}}), Some(50_000)), Size::Tokens(15_000));
    assert_eq!(of(json!({"keep": {"fraction": 0.3}}), None), Size::Messages(6));
    assert_eq!(of(json!({"keep": {"type": "messages", "value": 10}}), Some(50_000)), Size::Messages(10));
}

#[test]
fn settings_that_cannot_work_are_refused_with_words() {
    let table = [
        (json!({"type": "tokens"}), "tokens is a whole number above 0"),
        (json!({"type": "words", "value": 3}), "`words` is no type of size"),
        (json!({"fraction": 1.5}), "a fraction is above 0 and at most 1"),
        (json!({"messages": 0}), "messages is a whole number above 0"),
        (json!({}), "an empty size"),
        (json!([]), ""),
        (json!("often"), "is no size"),
        (json!({"type": "tokens", "value": 3, "messages": 4}), "cannot stand beside `type`"),
    ];
    for (trigger, expected) in table {
        match Triggers::try_from(trigger.clone()) {
            Ok(triggers) => assert!(expected.is_empty() && triggers.0.is_empty(), "{trigger}"),
            Err(error) => assert!(!expected.is_empty() && error.contains(expected), "{trigger}: {error}"),
        }
    }
    let several = Size::try_from(json!({"tokens": 1, "messages": 2})).unwrap_err();
    assert_eq!(several, "one size is needed, not 2");
    let deerflow = json!({"enabled": true, "model_name": null, "trigger": [{"type": "tokens", "value": 32000}],
        "keep": {"type": "messages", "value": 10}, "trim_tokens_to_summarize": 15564, "summary_prompt": null});
    let config: SummarizationConfig = serde_json::from_value(deerflow).unwrap();
    assert_eq!(config.trigger.0, [Clause { tokens: Some(32_000), ..Clause::default() }]);
}

#[test]
fn the_providers_count_holds_until_the_view_changes() {
    let model = hart_models::ScriptedModel::new(Vec::<Message>::new());
    let mut messages = conversation("H A H A H");
    assert_eq!(reported(&model, &messages, None), None, "nobody counted");
    let counted = |id: &str| {
        let ai = Ai { usage: Some(UsageMetadata::new(900, 100)), ..Ai::default() };
        Arc::new(Message::new(Body::Ai(ai), "so").with_id(id))
    };
    messages.push(counted("x"));
    assert_eq!(reported(&model, &messages, None), Some(1000));
    messages.push(Arc::new(Message::human("x".repeat(400)).with_id("y")));
    assert_eq!(reported(&model, &messages, None), Some(1104));
    assert_eq!(reported(&model, &messages, Some(4)), Some(1104));
    assert_eq!(reported(&model, &messages, Some(5)), None, "it counted what is no longer shown");
}

fn ids(messages: &MessageList) -> Vec<&str> {
    messages.iter().map(|message| message.id.as_ref().map_or("-", |id| id.as_str())).collect()
}

#[test]
fn a_view_begins_with_the_summary_and_keeps_what_the_user_wants() {
    let messages = conversation("S H A H A:a a A:b b A:c c");
    let anchor = |at| Anchor::of(&messages, at).unwrap();
    let cut = |from, pinned: Option<usize>| Compaction {
        cut: Some(Cut {
            from: anchor(from),
            pinned: pinned.map(anchor),
            summary: summary::message("notes", None),
        }),
        ..Compaction::default()
    };
    let shown = view(&cut(6, Some(3)), &messages, 2000);
    assert_eq!(ids(&shown), ["m0", "-", "m3", "m6", "m7", "m8", "m9"]);
    assert!(shown.get(1).unwrap().text().ends_with("<summary>\nnotes\n</summary>"));
    assert_eq!(
        ids(&view(&cut(3, None), &messages, 2000)),
        ["m0", "-", "m3", "m4", "m5", "m6", "m7", "m8", "m9"]
    );
    // The place of the cut is known by its message, not by its number.
    let mut longer = conversation("S H");
    longer.push(Arc::new(Message::human("inserted").with_id("new")));
    longer.extend(messages.iter_from(2).cloned());
    assert_eq!(ids(&view(&cut(6, Some(3)), &longer, 2000)), ["m0", "-", "m3", "m6", "m7", "m8", "m9"]);
    // A thread that was taken back to before the cut is shown as it is.
    let shorter = conversation("S H A H");
    assert_eq!(ids(&view(&cut(6, Some(3)), &shorter, 2000)), ids(&shorter));
}

#[test]
fn what_is_still_true_stays_in_view_until_it_is_said_anew() {
    let mut messages = conversation("H");
    for (at, id) in ["monday", "tuesday", "wednesday"].into_iter().enumerate() {
        messages.push(Arc::new(crate::reminder::standing("date", id).with_id(id)));
        messages.push(Arc::new(Message::human("and?").with_id(format!("q{at}"))));
    }
    // As of the message at `newest`, with all before `from` cut.
    let shown = |from: usize, newest: usize| {
        let anchor = |at| Anchor::of(&messages, at).unwrap();
        let cut = Cut { from: anchor(from), pinned: None, summary: summary::message("notes", None) };
        let record = Compaction { cut: Some(cut), newest: Some(anchor(newest)), ..Compaction::default() };
        ids(&view(&record, &messages, 2000)).join(" ")
    };
    assert_eq!(shown(2, 2), "- monday q0 tuesday q1 wednesday q2");
    assert_eq!(shown(4, 4), "- tuesday q1 wednesday q2", "the newest of the old ones");
    assert_eq!(shown(4, 6), "- q1 wednesday q2", "a newer one was there already");
    assert_eq!(shown(6, 6), "- wednesday q2");
}

#[test]
fn trimming_goes_from_arguments_to_results_to_exchanges() {
    let long = "x".repeat(3000);
    let mut messages = MessageList::default();
    let args = |text: &str| {
        json!({"path": "a", "content": text, "nested": [{"deep": text}]}).as_object().cloned().unwrap()
    };
    for (at, text) in [(0, long.as_str()), (1, long.as_str())] {
        let ai = Ai { tool_calls: vec![ToolCall::new("c", "write_file", args(text))], ..Ai::default() };
        messages.push(Arc::new(
            Message::new(Body::Ai(ai), if at == 0 { "I write." } else { "" }).with_id(format!("a{at}")),
        ));
        let result = Message::tool(&"c".into(), "write_file", ToolStatus::Success, long.clone());
        messages.push(Arc::new(result.with_id(format!("r{at}"))));
    }
    messages.push(Arc::new(Message::ai("done").with_id("end")));
    let trimmed = |before: usize, how| {
        let trim = Trim { before: Anchor::of(&messages, before).unwrap(), how };
        let history = Some("/conversation_history/s.md".to_owned());
        view(&Compaction { trim: Some(trim), history, ..Compaction::default() }, &messages, 2000)
    };
    let args = trimmed(2, Trimming::Args);
    let short = format!("{}...(argument truncated)", "x".repeat(20));
    assert_eq!(args.get(0).unwrap().tool_calls()[0].args["content"], short);
    assert_eq!(args.get(0).unwrap().tool_calls()[0].args["nested"][0]["deep"], short);
    assert_eq!(args.get(0).unwrap().tool_calls()[0].args["path"], "a");
    assert_eq!(args.get(1).unwrap().text(), long);
    assert!(Arc::ptr_eq(args.get(2).unwrap(), messages.get(2).unwrap()), "what stays is the very same");
    let results = trimmed(2, Trimming::Results);
    assert_eq!(
        results.get(1).unwrap().text(),
        "[3000 characters of old tool output left out; it is in /conversation_history/s.md]"
    );
    assert_eq!(results.get(0).unwrap().tool_calls()[0].args["content"], short);
    let exchanges = trimmed(4, Trimming::Exchanges);
    assert_eq!(ids(&exchanges), ["a0", "end"]);
    assert_eq!(exchanges.get(0).unwrap().text(), "I write.");
    assert!(exchanges.get(0).unwrap().tool_calls().is_empty());
}

#[test]
fn clipping_keeps_the_ends_of_what_there_was() {
    let mut messages =
        MessageList::from(vec![Arc::new(Message::human("a".repeat(500) + &"z".repeat(500)).with_id("h"))]);
    let newest = Anchor::of(&messages, 0);
    let record = Compaction { clip: Some(100), newest, ..Compaction::default() };
    messages.push(Arc::new(Message::ai("b".repeat(1000)).with_id("later")));
    let shown = view(&record, &messages, 2000);
    let text = shown.get(0).unwrap().text();
    assert!(text.starts_with(&"a".repeat(50)) && text.ends_with(&"z".repeat(50)), "{text}");
    assert!(text.contains("[900 of 1000 characters left out to fit]"), "{text}");
    assert_eq!(shown.get(1).unwrap().text().len(), 1000, "what came later is as it is");
}

#[test]
fn refusals_and_silence_are_no_summaries() {
    let table = [
        ("", false),
        ("  \n ", false),
        ("I'm sorry, but I can't assist with that request.", false),
        ("I’m sorry, I cannot help with that.", false),
        ("**I cannot** comply with this.", true),
        ("I cannot provide a summary of this conversation.", false),
        ("As an AI language model, I …", false),
        ("Error: upstream timed out", false),
        ("## Task\nThe user asked for a report; the bank said: I'm sorry, no.", true),
        ("The user wants a cake.", true),
    ];
    for (text, accepted) in table {
        assert_eq!(summary::accepted(&Message::ai(text)).is_ok(), accepted, "{text:?}");
    }
    let long = format!("I cannot stress enough what the user wants: {}", "facts, ".repeat(100));
    assert!(summary::accepted(&Message::ai(long)).is_ok(), "notes are longer than a refusal");
    let mut filtered = Message::ai("The user wants a c");
    filtered.response_metadata.insert("finish_reason".to_owned(), Value::from("content_filter"));
    assert!(summary::accepted(&filtered).is_err());
    assert_eq!(summary::text_of(&summary::message("a\nb", Some("/conversation_history/x.md"))), "a\nb");
}

#[test]
fn an_extract_has_what_was_asked_and_done_and_a_limit() {
    let call = |path: &str| {
        let args = json!({"path": path}).as_object().cloned().unwrap();
        let ai = Ai { tool_calls: vec![ToolCall::new("c", "read_file", args)], ..Ai::default() };
        Arc::new(Message::new(Body::Ai(ai), ""))
    };
    let mut messages =
        vec![Arc::new(Message::human("Build me\n a boat")), call("/a"), call("/b"), call("/a")];
    messages.extend((0..30).map(|n| Arc::new(Message::human(format!("wish {n}")))));
    messages.push(Arc::new(Message::ai("The hull is done.")));
    let text = extract(Some("the keel was laid"), &messages, 6000);
    for expected in [
        "Before that:\n- the keel was laid",
        "- Build me a boat",
        "- (19 more messages)",
        "- wish 29",
        "- read_file, 3 times: /b, /a",
        "- The hull is done.",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(!text.contains("wish 3\n"));
    assert!(extract(Some(&"x".repeat(100_000)), &messages, 500).chars().count() < 600);
    assert_eq!(extract(None, &messages, 6000), extract(None, &messages, 6000));
}
