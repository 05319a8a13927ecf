//! Hostile bytes: the corpus as it is, and a few thousand deformations of it.

use std::path::Path;

use hart_models::{SseDecoder, parse_tool_arguments};

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
