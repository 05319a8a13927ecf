//! Tool arguments that are not JSON: the public test suite, every truncation, and valid objects that must not change.

use std::fs;
use std::path::Path;

use hart_models::{Closing, Dialect, parse_tool_arguments, repair, repair_with};
use hart_testkit::{ModelServer, Turn};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{WITH_TEXT_ARGUMENTS, ask, config, http, human};

fn decoded(base64: &str) -> Vec<u8> {
    let digit = |byte| {
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|d| *d == byte)
    };
    let mut out = Vec::new();
    let (mut bits, mut count) = (0usize, 0);
    for digit in base64.bytes().filter_map(digit) {
        bits = (bits << 6 | digit) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    out
}

#[test]
fn the_json_test_suite() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts/corpora/jsontestsuite.json");
    let suite: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let cases = suite["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 318);
    let mut objects = 0;
    for case in cases {
        let (name, bytes) = (case["name"].as_str().unwrap(), decoded(case["base64"].as_str().unwrap()));
        let text = String::from_utf8_lossy(&bytes);
        let parsed = parse_tool_arguments(&text);
        for closing in [Closing::All, Closing::Brackets, Closing::Never] {
            match repair_with(&text, closing) {
                Ok(read) if case["expect"] == "accept" => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    assert!(read.value == value && !read.repaired, "{name}");
                    objects += usize::from(value.is_object());
                    assert_eq!(parsed.is_ok(), value.is_object(), "{name}");
                }
                Ok(read) => assert!(read.value.to_string().len() <= 2 * text.len() + 64, "{name} grew"),
                Err(error) => {
                    assert_ne!(case["expect"], "accept", "{name}: {error}");
                    assert!(error.to_string().contains("line"), "{name}");
                }
            }
        }
        if case["expect"] == "reject" {
            // Nothing but white space stands for no arguments.
            assert!(parsed.is_err() || text.trim().is_empty(), "{name}");
        }
    }
    assert!(objects > 30, "only {objects} objects");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Only what survives being written and read.
        (-1_000_000i32..1_000_000).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        any::<String>().prop_map(Value::from),
        Just(json!("{\"a\": 1}")),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_valid_object_is_never_changed(pairs in prop::collection::vec((any::<String>(), value()), 0..6)) {
        let object = Value::Object(pairs.into_iter().collect::<Map<_, _>>());
        let read = repair(&object.to_string()).unwrap();
        prop_assert!(!read.repaired);
        prop_assert_eq!(&read.value, &object);
        let pretty = serde_json::to_string_pretty(&object).unwrap();
        prop_assert_eq!(repair(&pretty).unwrap().value, object);
    }

    #[test]
    fn a_cut_object_is_completed_without_new_keys(
        pairs in prop::collection::vec(("[a-z]{1,6}", value()), 1..5),
        share in 0.0f64..1.0,
    ) {
        let object: Map<String, Value> = pairs.into_iter().collect();
        let text = Value::Object(object.clone()).to_string();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short text")]
        let at = (1 + (share * (text.len() - 1) as f64) as usize..text.len()).find(|at| text.is_char_boundary(*at));
        let Some(cut) = at.map(|at| text.split_at(at).0) else { return Ok(()) };
        let read = repair(cut).unwrap();
        for key in read.value.as_object().unwrap().keys() {
            prop_assert!(object.contains_key(key));
        }
        prop_assert!(repair_with(cut, Closing::Never).is_err());
        if let Ok(read) = repair_with(cut, Closing::Brackets) {
            for (key, value) in read.value.as_object().unwrap() {
                prop_assert!(begins(&object[key], value), "{} gave {}", cut, value);
            }
        }
    }

    #[test]
    fn any_text_is_a_value_or_an_error(text in "[\\[\\]{}:,'\"a-c0-2.\\\\eE+\\- \\n/*#\u{201c}\u{201d}]{0,64}") {
        if let Err(error) = repair(&text) {
            prop_assert!(error.line >= 1 && error.column >= 1);
        }
    }
}

/// Whether `part` is `whole` without its end: no value in it is half of itself.
fn begins(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|meant| begins(meant, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            part.len() <= whole.len() && whole.iter().zip(part).all(|(whole, part)| begins(whole, part))
        }
        _ => whole == part,
    }
}

#[test]
fn large_and_deep_texts_are_no_trouble() {
    let long = format!("{{'a': '{}', }}", "x\n".repeat(5_000_000));
    assert_eq!(repair(&long).unwrap().value["a"].as_str().unwrap().len(), 10_000_000);
    for hostile in ["[", "{\"a\":", "{'", "\\u", "\"", "/*", "#", "{a:[", "“", "```", "\"{\\\""] {
        let _ = repair(&hostile.repeat(200_000));
    }
}

#[tokio::test]
async fn a_native_call_is_mended_and_marked_unless_it_was_cut() {
    let server = ModelServer::start().await;
    for dialect in WITH_TEXT_ARGUMENTS {
        let model = hart_models::build(&config(&server, dialect, json!({})), &http());
        for text in [
            "{'path': '/a',}",
            "```json\n{\"path\": \"/a\"}\n```",
            "{path: \"/a\"",
            "\"{\\\"path\\\": \\\"/a\\\"}\"",
        ] {
            server.push(Turn::new().tool_call_raw_args("call_1", "ls", text));
            let answer = ask(&*model, human("look")).await;
            let call = &answer.tool_calls()[0];
            assert_eq!((&call.args["path"], &call.extra["repaired"]), (&json!("/a"), &json!(true)), "{text}");
        }
        let limit = if dialect == Dialect::Anthropic { "max_tokens" } else { "length" };
        server.push(Turn::new().tool_call_raw_args("call_1", "ls", "{path: \"/a\"").stop(limit));
        let answer = ask(&*model, human("look")).await;
        assert!(answer.tool_calls().is_empty());
        let invalid = &answer.as_ai().unwrap().invalid_tool_calls[0];
        assert!(invalid.error.as_deref().unwrap().contains("cut off"), "{invalid:?}");
    }
}
