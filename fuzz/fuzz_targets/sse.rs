#![no_main]
//! The SSE reader: however the bytes are cut into pieces, the events are the same.

use hart_models::SseDecoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = events([bytes]);
    let (left, right) = bytes.split_at(bytes.len() / 2);
    assert_eq!(whole, events([left, right]));
});

fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<String>> {
    let mut decoder = SseDecoder::new();
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().ok()? {
            seen.push(format!("{event:?}"));
        }
    }
    seen.extend(decoder.finish().map(|event| format!("{event:?}")));
    Some(seen)
}
