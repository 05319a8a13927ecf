//! The message decoder over a kept corpus and mutations of it.

use std::path::Path;

use hart_types::Message;

#[test]
fn whatever_is_accepted_is_written_back_the_same() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/message");
    let words: [&[u8]; 8] =
        [b"\"type\":", b"\"content\":", b"\"tool_calls\":", b"null", b"{}", b"[]", b"\"role\":", b"\\u0000"];
    hart_testkit::fuzz::run(&corpus, 20_000, 3, &words, |bytes| {
        if let Ok(message) = serde_json::from_slice::<Message>(bytes) {
            let json = serde_json::to_vec(&message).unwrap();
            assert_eq!(serde_json::from_slice::<Message>(&json).unwrap(), message);
            message.text();
        }
    });
}
