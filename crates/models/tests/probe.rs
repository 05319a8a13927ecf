//! Probes of endpoints that behave, and of some that do not.

use std::sync::Mutex;

use hart_kernel::{Clock as _, SystemClock};
use hart_models::catalogue::{Choice, ThinkingMode};
use hart_models::probe::{self, Check, Outcome, ProbeOptions, Profile};
use hart_models::{Dialect, ModelConfig};
use hart_testkit::{ModelServer, RecordedRequest, Turn};
use serde_json::{Value, json};

use crate::support::{DIALECTS, KEY, config, http, sends};

async fn probed(config: &ModelConfig, context: u32) -> Profile {
    let told = Mutex::new(Vec::new());
    let options = ProbeOptions { context, now: SystemClock.now() };
    let profile =
        probe::probe(config, &http(), options, &|check: &Check| told.lock().unwrap().push(check.clone()))
            .await;
    assert_eq!(told.into_inner().unwrap(), profile.checks, "every result is told as it comes");
    assert!(!serde_json::to_string(&profile).unwrap().contains(KEY), "the key shows");
    profile
}

fn last_user(asked: &RecordedRequest) -> String {
    asked.texts_of("user").pop().unwrap_or_default()
}

const SCHEMA: &[&str] = &["response_format", "format", "responseJsonSchema"];
const STOP: &[&str] = &["stop", "stop_sequences", "stopSequences"];

/// Gemini tells by its name whether it thinks.
fn model(dialect: Dialect) -> Value {
    if dialect == Dialect::Gemini { json!({"model": "gemini-2.5-flash"}) } else { json!({}) }
}

/// What a protocol has no place for.
fn impossible(dialect: Dialect, check: &str) -> bool {
    match dialect {
        Dialect::Responses => check == "stop_sequences",
        Dialect::Ollama => check.starts_with("tool_choice"),
        _ => false,
    }
}

/// A model that can do everything, as far as a script can.
fn good(asked: &RecordedRequest) -> Turn {
    let text = last_user(asked);
    let body = &asked.body;
    let thinking = [
        &body["reasoning_effort"],
        &body["thinking"]["type"],
        &body["reasoning"]["effort"],
        &body["think"],
        &body["generationConfig"]["thinkingConfig"]["thinkingBudget"],
    ];
    let thinks =
        thinking.iter().any(|word| ![json!(null), json!(false), json!(0), json!("none")].contains(word));
    let turn = if thinks { Turn::new().reasoning("Let me see.").signature("sig") } else { Turn::new() };
    let call = |turn: Turn, n: usize| {
        (0..n).fold(turn, |turn, i| turn.tool_call(format!("c{i}"), "get_code", json!({"city": "Oslo"})))
    };
    let forced = sends(body, &["tool_choice", "toolConfig"]);
    if !asked.tool_results().is_empty() {
        turn.text("The code is 7319.")
    } else if text.contains("both cities") {
        call(turn, 2)
    } else if text.contains("Use the tool") || forced {
        call(turn, 1)
    } else if text.contains("17 times 23") || text.contains("twice that") {
        turn.text("391")
    } else if asked.system().contains("PINEAPPLE") {
        turn.text("PINEAPPLE")
    } else if text.contains("colour") {
        turn.text("Red.")
    } else if sends(body, SCHEMA) {
        turn.text(r#"{"city": "Paris", "population": 2100000}"#)
    } else if sends(body, STOP) {
        turn.text("1 2 3 4 5 ")
    } else if text.contains("very beginning") {
        turn.text("HELIOTROPE-4417").usage(2_400, 5)
    } else if text.contains("three hundred") {
        turn.text("one two three four five ".repeat(20)).chunk_chars(4).hang_after(12)
    } else {
        turn.text("one two three").chunk_chars(3)
    }
}

#[tokio::test]
async fn a_good_endpoint_can_do_everything() {
    for dialect in DIALECTS {
        let server = ModelServer::with(good).await;
        let profile = probed(&config(&server, dialect, model(dialect)), 2_000).await;
        let unexpected = |check: &&Check| {
            check.outcome != if impossible(dialect, &check.name) { Outcome::No } else { Outcome::Yes }
        };
        let doubtful: Vec<_> = profile.checks.iter().filter(unexpected).collect();
        assert!(doubtful.is_empty(), "{dialect:?}: {doubtful:#?}");
        assert!(profile.talks());
        assert_eq!(profile.checks.len(), 18);
        let facts = &profile.facts;
        assert_eq!(
            (facts.vision, facts.structured_output, facts.temperature),
            (Some(true), Some(true), Some(true))
        );
        assert_eq!(
            (facts.stop, facts.parallel_calls, facts.text_tool_calls),
            ((dialect != Dialect::Responses).then_some(true), Some(true), Some(false))
        );
        assert_eq!(facts.thinking, Some(ThinkingMode::Optional));
        assert_eq!(facts.tool_choice.as_ref().map(Vec::len), (dialect != Dialect::Ollama).then_some(4));
        assert_eq!(facts.context_window, None, "remembering says nothing about where it ends");
        let count = server.requests().len() as u32;
        let estimate = probe::estimate(2_000);
        assert!(count <= estimate.requests, "{count} requests, {} were announced", estimate.requests);
        server.wait_for_disconnect().await;
    }
}

/// An old server: no images, no schemas, one system message, a small context that it cuts, calls as text.
fn bad(asked: &RecordedRequest) -> Turn {
    let refuse = |message: &str| Turn::status(400).message(message);
    let body = &asked.body;
    let text = last_user(asked);
    let raw = body.to_string();
    if raw.contains("iVBORw0") {
        return Turn::status(500).message("image input is not supported");
    }
    if sends(body, SCHEMA) {
        return refuse("response schemas are not supported");
    }
    if sends(body, &["temperature"]) {
        return refuse("temperature is not supported with this model");
    }
    if sends(body, &["reasoning_effort", "reasoning"]) {
        return refuse("unknown parameter: reasoning_effort");
    }
    if sends(body, &["thinking", "think", "thinkingConfig"]) {
        return refuse("this model does not think");
    }
    if raw.contains("be very polite") {
        return refuse("only one system message is allowed");
    }
    if sends(body, &["tool_choice", "toolConfig"]) {
        return Turn::new().text("Good morning!").without_usage();
    }
    if text.contains("Use the tool") {
        return Turn::new()
            .text(r#"<tool_call>{"name": "get_code", "arguments": {"city": "Oslo"}}</tool_call>"#);
    }
    if sends(body, STOP) {
        return Turn::new().text("1 2 3 4 5 6 7 8 9");
    }
    if text.contains("very beginning") {
        return Turn::new().text("I do not know.").usage(512, 5);
    }
    Turn::new().text("one two three").without_usage()
}

#[tokio::test]
async fn a_bad_endpoint_is_found_out() {
    for dialect in DIALECTS {
        let server = ModelServer::with(bad).await;
        let config = config(&server, dialect, model(dialect));
        let profile = probed(&config, 2_000).await;
        let outcome = |name: &str| profile.outcome(name).unwrap_or_else(|| panic!("{name} was not checked"));
        assert!(profile.talks());
        for name in [
            "streaming",
            "usage_in_stream",
            "tool_calls",
            "tool_choice_required",
            "tool_choice_named",
            "reasoning",
            "several_system_messages",
            "images",
            "structured_output",
            "stop_sequences",
            "temperature",
            "long_context",
        ] {
            assert_eq!(outcome(name), Outcome::No, "{dialect:?} {name}: {:#?}", profile.checks);
        }
        assert_eq!(outcome("reasoning_replay"), Outcome::Unclear);
        let facts = &profile.facts;
        assert_eq!(facts.context_window, Some(512), "what was read is what fits");
        assert_eq!(
            (facts.vision, facts.text_tool_calls, facts.single_system_message),
            (Some(false), Some(true), Some(true))
        );
        let free = (dialect != Dialect::Ollama).then(|| vec![Choice::Auto, Choice::None]);
        assert_eq!(facts.tool_choice, free);
        let config = config.with_profile(&profile);
        assert_eq!(config.context_window, Some(512));
        assert!(!config.profile().vision);
    }
}

#[tokio::test]
async fn an_overflow_tells_the_window() {
    let server = ModelServer::with(|asked| {
        if last_user(asked).contains("very beginning") {
            let told = "This model's maximum context length is 1024 tokens, but the request has 2100 tokens.";
            return Turn::status(400).message(told);
        }
        good(asked)
    })
    .await;
    let profile = probed(&config(&server, Dialect::OpenAi, json!({})), 2_000).await;
    assert_eq!(profile.outcome("long_context"), Some(Outcome::No));
    assert_eq!(profile.facts.context_window, Some(1024));
}

#[tokio::test]
async fn reasoning_that_must_not_come_back_is_not_sent_back() {
    let server = ModelServer::with(|asked| {
        if asked.body.to_string().contains("reasoning_content") {
            return Turn::status(400).message("unknown field reasoning_content");
        }
        good(asked)
    })
    .await;
    let config = config(&server, Dialect::OpenAi, json!({"use": "deepseek"}));
    assert!(config.send_reasoning);
    let profile = probed(&config, 500).await;
    assert_eq!(profile.outcome("reasoning_replay"), Some(Outcome::No));
    assert!(!config.with_profile(&profile).send_reasoning);
}

#[tokio::test]
async fn trouble_that_says_nothing_is_not_held_against_the_model() {
    let server = ModelServer::with(|asked| {
        if last_user(asked).contains("colour") { Turn::status(503).message("busy") } else { good(asked) }
    })
    .await;
    let profile = probed(&config(&server, Dialect::OpenAi, json!({})), 500).await;
    assert_eq!(profile.outcome("images"), Some(Outcome::Unclear));
    assert_eq!(profile.facts.vision, None);
}

#[tokio::test]
async fn an_endpoint_that_does_not_talk_is_asked_once() {
    for (turn, words) in [
        (Turn::status(401).message("bad key sk-test-very-secret"), "refused the API key"),
        (
            Turn::new().body(json!({"choices": [{"message": {"content": "hi"}}]})),
            "JSON instead of an event stream",
        ),
        (Turn::new().body_text("<html>"), "interrupted"),
    ] {
        for dialect in DIALECTS {
            let server = ModelServer::start().await;
            server.push(turn.clone());
            let profile = probed(&config(&server, dialect, json!({})), 500).await;
            assert!(!profile.talks());
            assert_eq!((profile.checks.len(), server.requests().len()), (1, 1));
            let evidence = &profile.checks[0].evidence;
            assert!(words == "interrupted" || evidence.contains(words), "{evidence}");
        }
    }
}

#[test]
fn a_profile_survives_its_file() {
    let value: Value = json!({"base_url": "http://h", "model": "m", "provider": "openai",
        "probed_at": "2026-11-02T10:00:00Z", "checks": [{"name": "answers", "outcome": "yes", "evidence": "x"}],
        "facts": {"vision": true, "tool_choice": ["auto"], "thinking": "always"}});
    let profile: Profile = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&profile).unwrap(), value);
    assert_eq!((profile.day(), profile.talks()), ("2026-11-02", true));
}
