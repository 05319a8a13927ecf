//! Calls and reasoning written as text: every form, cut everywhere, and prose that must not be mistaken for either.

mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hart_kernel::{ChatModel, ModelErrorKind, OutputFormat, Reasoning, ToolChoice, ToolSpec};
use hart_models::{CallsInText, Dialect, ScriptedModel, TextCalls, TextOptions, scan_text};
use hart_testkit::{ModelServer, Turn};
use hart_types::{BlockView, Content, Message};
use proptest::prelude::*;
use serde_json::{Value, json};

use table::table;

use crate::support::{ask, config, http, human, thinking, try_ask};

const ALL: TextOptions = TextOptions { calls: CallsInText::UnlessNative, think: true, opened: false };

pub(crate) fn tools() -> Vec<Arc<ToolSpec>> {
    let tool = |name: &str, properties: Value, required: Value| {
        let input_schema = json!({"type": "object", "properties": properties, "required": required});
        Arc::new(ToolSpec {
            name: name.into(),
            description: String::new(),
            input_schema,
            effect: hart_kernel::Effect::Pure,
        })
    };
    let text = || json!({"type": "string"});
    vec![
        tool(
            "get_weather",
            json!({"city": text(), "days": {"type": "integer"}, "metric": {"type": "boolean"}}),
            json!(["city"]),
        ),
        tool("ls", json!({"path": text()}), json!(["path"])),
        tool("write_file", json!({"path": text(), "content": text()}), json!(["path", "content"])),
        tool(
            "search",
            json!({
                "queries": {"type": "array"}, "opts": {"type": "object"}, "limit": {"type": "integer"},
                "exact": {"type": "boolean"}, "note": text(),
            }),
            json!(["queries"]),
        ),
        tool("now", json!({}), json!([])),
    ]
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

fn form(name: &str) -> String {
    fs::read_to_string(corpus("text_calls").join(format!("{name}.txt"))).unwrap()
}

pub(crate) fn letters(text: &str) -> Vec<&str> {
    text.char_indices().filter_map(|(at, c)| text.get(at..at + c.len_utf8())).collect()
}

fn reasoning(message: &Message) -> String {
    let blocks = message.content.to_blocks();
    let thought = blocks.iter().filter_map(|block| match block.view() {
        BlockView::Reasoning { text, .. } => Some(text.to_owned()),
        _ => None,
    });
    thought.collect()
}

/// Text, reasoning, calls as `[name, arguments]`, and the names of invalid ones.
fn summary(message: &Message) -> Value {
    let ai = message.as_ai().unwrap();
    let calls: Vec<_> = ai.tool_calls.iter().map(|call| json!([call.name, call.args])).collect();
    let invalid: Vec<_> = ai.invalid_tool_calls.iter().map(|call| json!(call.name)).collect();
    json!({"text": message.text(), "reasoning": reasoning(message), "calls": calls, "invalid": invalid})
}

fn scanned(chunks: &[&str], cut: bool) -> Message {
    let (said, message) = scan_text(&tools(), chunks.iter().copied(), ALL, cut);
    let unopened = chunks.concat().contains("</think>") && !chunks.concat().contains("<think>");
    assert!(unopened || said == message.text(), "the fragments are the text: {said:?} {message:?}");
    for call in message.tool_calls() {
        assert!(call.id.as_ref().is_some_and(|id| id.as_str().starts_with("call_")));
        assert!(tools().iter().any(|tool| tool.name == call.name));
    }
    message
}

#[test]
fn every_form_is_understood_however_it_is_cut() {
    let table = table();
    assert_eq!(table.len(), fs::read_dir(corpus("text_calls")).unwrap().count(), "each file is in the table");
    for (name, meant) in &table {
        let text = form(name);
        assert_eq!(summary(&scanned(&[&text], false)), meant.summary(), "{name}, whole");
        assert_eq!(summary(&scanned(&letters(&text), false)), meant.summary(), "{name}, letter by letter");
        for at in (1..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (one, two) = text.split_at(at);
            assert_eq!(summary(&scanned(&[one, two], false)), meant.summary(), "{name}, cut at {at}");
        }
    }
}

#[test]
fn an_answer_that_breaks_off_anywhere_makes_no_call_of_half_of_one() {
    for (name, meant) in table() {
        let text = form(name);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            for cut in [true, false] {
                let message = scanned(&[text.split_at(at).0], cut);
                for (call, (tool, args)) in message.tool_calls().iter().zip(&meant.calls) {
                    let whole = call.name == *tool && Value::Object(call.args.clone()) == *args;
                    // A model that stops between two parameters may have meant to.
                    let fewer = !cut && call.args.iter().all(|(key, value)| &args[key] == value);
                    assert!(whole || fewer, "{name} up to {at} (cut: {cut}): {call:?}");
                }
                assert!(message.tool_calls().len() <= meant.calls.len(), "{name} up to {at}");
            }
        }
    }
}

fn prose() -> Vec<(String, String)> {
    let files = fs::read_dir(corpus("prose")).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| (path.display().to_string(), fs::read_to_string(&path).unwrap());
    let mut all: Vec<_> = files.map(read).collect();
    all.sort();
    all
}

fn assert_untouched(name: &str, text: &str, chunks: &[&str], cut: bool) {
    let (said, message) = scan_text(&tools(), chunks.iter().copied(), ALL, cut);
    assert_eq!(said, text, "{name}");
    assert_eq!(message, Message::ai(text), "{name}");
}

#[test]
fn a_normal_answer_is_never_touched() {
    let all = prose();
    assert!(all.len() >= 40, "only {}", all.len());
    for (name, text) in &all {
        assert_untouched(name, text, &[text], false);
        assert_untouched(name, text, &letters(text), false);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (one, two) = text.split_at(at);
            assert_untouched(name, text, &[one, two], false);
        }
    }
}

fn pieces<'a>(text: &'a str, sizes: &[usize]) -> Vec<&'a str> {
    let (mut out, mut rest, mut sizes) = (Vec::new(), text, sizes.iter().cycle());
    while !rest.is_empty() {
        let wanted = sizes.next().copied().unwrap_or(1).clamp(1, rest.len());
        let size = (wanted..=rest.len()).find(|size| rest.is_char_boundary(*size)).unwrap();
        let (piece, tail) = rest.split_at(size);
        out.push(piece);
        rest = tail;
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chunking_gives_the_same(sizes in prop::collection::vec(1usize..24, 1..12)) {
        for (name, meant) in table() {
            let text = form(name);
            prop_assert_eq!(summary(&scanned(&pieces(&text, &sizes), false)), meant.summary(), "{}", name);
        }
        for (name, text) in prose() {
            assert_untouched(&name, &text, &pieces(&text, &sizes), false);
        }
    }

    #[test]
    fn marks_in_any_order_are_the_same_in_any_chunking(
        words in prop::collection::vec(0usize..WORDS.len(), 0..24),
        sizes in prop::collection::vec(1usize..16, 1..6),
        cut: bool,
    ) {
        let text: String = words.iter().map(|word| WORDS[*word]).collect();
        let whole = summary(&scan_text(&tools(), [text.as_str()], ALL, cut).1);
        prop_assert_eq!(&summary(&scan_text(&tools(), letters(&text), ALL, cut).1), &whole, "{:?}", text);
        prop_assert_eq!(&summary(&scan_text(&tools(), pieces(&text, &sizes), ALL, cut).1), &whole, "{:?}", text);
    }
}

/// What the grammar of all forms is made of.
pub(crate) const WORDS: [&str; 44] = [
    "<tool_call>",
    "</tool_call>",
    "<function=ls>",
    "<parameter=path>",
    "</parameter>",
    "</function>",
    "<think>",
    "</think>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "ls",
    "{\"name\": \"ls\", ",
    "\"arguments\": {\"path\": \"/\"}}",
    "{\"path\": \"/\"}",
    "```json\n",
    "```",
    "\n",
    " ",
    "`",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    "ls(path=\"/\")",
    "<|python_tag|>",
    "<|channel|>",
    "analysis",
    "<|message|>",
    "<|end|>",
    "to=functions.ls ",
    "<|call|>",
    "Some prose. ",
    "<invoke name=\"ls\">",
    "<parameter name=\"path\">",
    "</invoke>",
    "<|tool_call_begin|>",
    "functions.ls:0",
    "<|tool_call_argument_begin|>",
    "<arg_key>path</arg_key>",
    "<arg_value>/",
    "</arg_value>",
    "ä<",
];

#[test]
fn what_is_quoted_or_unknown_is_text() {
    for text in [
        "Write \"<tool_call>{\\\"name\\\": \\\"ls\\\", \\\"arguments\\\": {\\\"path\\\": \\\"/\\\"}}</tool_call>\" to call.",
        "> <tool_call>{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}}</tool_call>",
        "    <tool_call>{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}}</tool_call>",
        "<tool_call>{\"name\": \"rm\", \"arguments\": {\"path\": \"/\"}}</tool_call>",
        "<function=rm><parameter=path>/</parameter></function>",
        "{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}} is what you would send.",
        "{\"name\": \"ls\", \"arguments\": {}}",
        "{\"name\": \"ls\", \"arguments\": {\"path\": \"/\", \"unknown\": 1}}",
        "{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}, \"comment\": \"an example\"}",
        "An example of the format:\n\n```json\n{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}}\n```",
        "```json\n{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}}\n```\n\nThat is all.",
        "```python\nls(path=\"/\")\n```",
        "[ls](https://example.com)",
        "[ls(path=\"/\")] lists the root.",
        "The <think> tag opens, the </think> tag closes.",
        "a < b and <",
        "  \n ",
        "",
    ] {
        assert_untouched(text, text, &[text], false);
        assert_untouched(text, text, &letters(text), false);
    }
    // An unmarked call is only one when the model itself has ended there.
    let bare = "{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}}";
    assert_untouched(bare, bare, &[bare], true);
}

#[test]
fn hostile_repetition_is_no_trouble() {
    for unit in [
        "<tool_call>{\"",
        "<tool_call>",
        "<function=ls>",
        "<function=ls><parameter=path>",
        "</parameter>",
        "\n<think>",
        "\n{x",
        "\n[",
        "`",
        "```json\n{\"name\": \"ls\", ",
        "<|python_tag|>{",
        "[TOOL_CALLS][",
        "<",
        "\n",
        "</think>",
        "<|channel|>",
        "<|tool_calls_section_begin|><|tool_call_begin|>ls<|tool_call_argument_begin|>{",
        "{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}}\n",
        "<tool_call>ls\n<arg_key>",
        "\n```\n{",
    ] {
        for prefix in
            ["", "<tool_call>{\"</tool_call>", "<function=ls>\n<parameter=path>", "<think>", "Prose. "]
        {
            let text = format!("{prefix}{}", unit.repeat(30_000 / unit.len()));
            let whole = summary(&scan_text(&tools(), [text.as_str()], ALL, false).1);
            let small = summary(&scan_text(&tools(), pieces(&text, &[3]), ALL, false).1);
            assert_eq!(whole, small, "{prefix}{unit}…");
        }
    }
}

#[test]
fn mended_calls_are_marked() {
    let extra = |name: &str| scanned(&[&form(name)], false).tool_calls()[0].extra.clone();
    assert!(!extra("hermes").contains_key("repaired"));
    for name in ["hermes_forgotten_brace", "hermes_python_literals", "bare_json_forgotten_brace"] {
        assert_eq!(extra(name)["repaired"], true, "{name}");
    }
    assert_eq!(extra("hermes")["from_text"], true);
}

#[tokio::test]
async fn calls_in_text_come_over_the_wire_as_calls() {
    let server = ModelServer::start().await;
    let model = hart_models::build(&config(&server, Dialect::OpenAi, json!({})), &http());
    let mut asked = human("weather?");
    asked.tools = tools().into();
    server.push(Turn::new().text(form("hermes_between_text")).chunk_chars(3));
    let said = try_ask(&*model, asked.clone()).await.unwrap();
    let message = said.message.unwrap();
    assert_eq!(said.text, message.text());
    assert_eq!(said.call_args, [r#"{"city":"Paris"}"#, r#"{"path":"/"}"#]);
    assert_eq!(message.tool_calls().len(), 2);

    server.push(Turn::new().text(form("think_then_call")).chunk_chars(1));
    let said = try_ask(&*model, asked.clone()).await.unwrap();
    let message = said.message.unwrap();
    assert_eq!((said.text.as_str(), said.reasoning.as_str()), ("", reasoning(&message).as_str()));
    assert!(said.reasoning.starts_with("I need"));
    assert_eq!(message.tool_calls()[0].name, "ls");

    // A structured answer may look like a call, and a call may be forbidden.
    let bare = form("bare_json");
    for settings in [
        hart_kernel::ModelSettings {
            output: OutputFormat::Json { name: "x".into(), schema: json!({"type": "object"}) },
            ..Default::default()
        },
        hart_kernel::ModelSettings { tool_choice: ToolChoice::None, ..Default::default() },
    ] {
        server.push(Turn::new().text(&bare));
        let asked = hart_kernel::ChatRequest { settings, ..asked.clone() };
        let answer = ask(&*model, asked).await;
        assert_eq!((answer.text(), answer.tool_calls().len()), (bare.clone(), 0));
    }
}

#[tokio::test]
async fn a_call_told_by_the_provider_wins() {
    let server = ModelServer::start().await;
    let text = form("hermes_no_end");
    for (switch, texts, count) in
        [("auto", text.as_str(), 1), ("on", "Sure.\n", 2), ("off", text.as_str(), 1)]
    {
        let more = json!({"text_tool_calls": switch});
        let model = hart_models::build(&config(&server, Dialect::OpenAi, more), &http());
        server.push(Turn::new().text(&text).tool_call("call_1", "ls", json!({"path": "/"})));
        let mut asked = human("hi");
        asked.tools = tools().into();
        let answer = ask(&*model, asked).await;
        assert_eq!((answer.text().as_str(), answer.tool_calls().len()), (texts, count), "{switch}");
        assert_eq!(answer.tool_calls()[0].id.as_ref().unwrap().as_str(), "call_1");
    }
    // The same call in both ways is one call.
    let model = hart_models::build(&config(&server, Dialect::OpenAi, json!({})), &http());
    server.push(Turn::new().text(form("hermes")).tool_call(
        "call_1",
        "get_weather",
        json!({"city": "Paris"}),
    ));
    let mut asked = human("hi");
    asked.tools = tools().into();
    let answer = ask(&*model, asked).await;
    assert_eq!((answer.text().as_str(), answer.tool_calls().len()), ("", 1));
}

#[tokio::test]
async fn a_template_that_opens_the_reasoning_is_learned() {
    let text = form("think_unopened");
    let plain = "No thoughts.";
    let model = TextCalls::new(
        Arc::new(ScriptedModel::new([text.as_str(), text.as_str(), plain, plain].map(Message::ai))),
        ALL,
    );
    let said = try_ask(&model, human("hi")).await.unwrap();
    assert_eq!(said.message.unwrap().text(), "Hello!", "the message is right the first time");
    let said = try_ask(&model, human("hi")).await.unwrap();
    assert_eq!(
        (said.text.as_str(), said.reasoning.as_str()),
        ("Hello!", "The user greets.\n\nI greet back.")
    );
    assert_eq!(reasoning(&said.message.unwrap()), said.reasoning);
    // Then an answer without: what was passed on as reasoning is said again as text.
    let said = try_ask(&model, human("hi")).await.unwrap();
    assert_eq!((said.text.as_str(), said.reasoning.as_str()), (plain, plain));
    let message = said.message.unwrap();
    assert_eq!(message.content, Content::Text(plain.into()));
    let said = try_ask(&model, human("hi")).await.unwrap();
    assert_eq!((said.text.as_str(), said.reasoning.as_str()), (plain, ""), "and that is learned too");
}

#[tokio::test]
async fn reasoning_that_was_asked_off_is_not_presumed() {
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedModel::new([Message::ai("Hello!")]));
    let model = TextCalls::new(model, TextOptions { opened: true, ..ALL });
    let said = try_ask(&model, thinking(human("hi"), Reasoning::Off)).await.unwrap();
    assert_eq!((said.text.as_str(), said.reasoning.as_str()), ("Hello!", ""));
}

#[tokio::test]
async fn a_broken_stream_keeps_its_parts_apart() {
    let server = ModelServer::start().await;
    let model = hart_models::build(&config(&server, Dialect::OpenAi, json!({})), &http());
    let text = "<think>Let me see.</think>\nHere it is: <tool_call>{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"half";
    // One event begins the message, the others hold the text.
    server.push(Turn::new().text(text).chunk_chars(4).cut_after(text.chars().count().div_ceil(4) + 1));
    let mut asked = human("hi");
    asked.tools = tools().into();
    let error = try_ask(&*model, asked).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    let partial = error.partial.as_deref().unwrap();
    assert_eq!((partial.text().as_str(), reasoning(partial).as_str()), ("Here it is: ", "Let me see."));
    assert!(partial.tool_calls().is_empty());
    assert_eq!(partial.as_ai().unwrap().invalid_tool_calls[0].name.as_deref(), Some("write_file"));
}
