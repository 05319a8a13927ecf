//! Hostile bytes: the corpus as it is, and a few thousand deformations of it.

use std::path::Path;

use hart_models::{CallsInText, SseDecoder, TextOptions, parse_tool_arguments, repair, scan_text};
use serde_json::Value;

use crate::text_calls::{WORDS, letters, tools};

const ITERATIONS: u32 = 3000;

fn corpus(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

fn events(chunks: impl Iterator<Item = impl AsRef<[u8]>>) -> Vec<String> {
    let mut sse = SseDecoder::with_limit(4096);
    let mut out = Vec::new();
    for chunk in chunks {
        sse.push(chunk.as_ref());
        loop {
            match sse.next_event() {
                Ok(Some(event)) => out.push(format!("{event:?}")),
                Ok(None) => break,
                Err(error) => {
                    out.push(error.to_string());
                    return out;
                }
            }
        }
    }
    out.extend(sse.finish().map(|event| format!("{event:?}")));
    out
}

#[test]
fn an_event_stream_never_breaks_the_decoder() {
    let words: [&[u8]; 8] =
        [b"data:", b"event:", b"id:", b"retry:", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\r"];
    hart_testkit::fuzz::run(&corpus("sse"), ITERATIONS, 1, &words, |bytes| {
        let whole = events(std::iter::once(bytes));
        assert_eq!(events(bytes.chunks(1)), whole);
        assert_eq!(events(bytes.chunks(7)), whole);
    });
}

#[test]
fn tool_arguments_are_an_object_or_an_error() {
    let words: [&[u8]; 8] = [b"{", b"}", b"[", b"\"", b"\\u0000", b":", b"null", b"1e999"];
    hart_testkit::fuzz::run(&corpus("tool_args"), ITERATIONS, 2, &words, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        match parse_tool_arguments(&text) {
            Ok(map) => {
                let again = serde_json::Value::Object(map.clone()).to_string();
                assert_eq!(parse_tool_arguments(&again).as_ref(), Ok(&map));
            }
            Err(error) => assert!(!error.is_empty()),
        }
    });
}

#[test]
fn repair_gives_a_value_or_a_place() {
    let words: [&[u8]; 12] =
        [b"{", b"}", b"[", b"\"", b"'", b"\\u", b":", b"None", b"//", b"```", b",", b"\xe2\x80\x9c"];
    hart_testkit::fuzz::run(&corpus("tool_args"), ITERATIONS, 3, &words, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let valid = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
        match (repair(&text), valid) {
            (Ok(read), Some(valid)) => assert!(!read.repaired && read.value == valid),
            (Ok(read), None) => {
                let again = repair(&read.value.to_string()).unwrap();
                assert!(!again.repaired || !read.value.is_object());
            }
            (Err(error), valid) => assert!(valid.is_none() && error.line > 0),
        }
    });
}

#[test]
fn calls_in_text_do_not_depend_on_how_it_is_cut() {
    let words = WORDS.map(str::as_bytes);
    let options = TextOptions { calls: CallsInText::UnlessNative, think: true, opened: false };
    for (seed, name) in [(4, "text_calls"), (5, "prose")] {
        hart_testkit::fuzz::run(&corpus(name), ITERATIONS, seed, &words, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let outcome = |message: hart_types::Message| {
                let ai = message.as_ai().unwrap();
                let calls: Vec<_> = ai.tool_calls.iter().map(|c| (c.name.clone(), c.args.clone())).collect();
                let invalid: Vec<_> = ai.invalid_tool_calls.iter().map(|c| c.args.clone()).collect();
                assert!(calls.iter().all(|(name, _)| tools().iter().any(|tool| tool.name == *name)));
                (message.content.clone(), calls, invalid)
            };
            for cut in [false, true] {
                let whole = outcome(scan_text(&tools(), [&*text], options, cut).1);
                assert_eq!(outcome(scan_text(&tools(), letters(&text), options, cut).1), whole);
            }
        });
    }
}
