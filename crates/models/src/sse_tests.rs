use proptest::prelude::*;

use super::*;

type Owned = (String, String, String);

fn all(chunks: &[&[u8]]) -> Vec<Owned> {
    let mut sse = SseDecoder::new();
    let mut out = Vec::new();
    for chunk in chunks {
        sse.push(chunk);
        while let Some(event) = sse.next_event().unwrap() {
            out.push((event.event.to_owned(), event.data.to_owned(), event.id.to_owned()));
        }
    }
    out
}

fn data(text: &str) -> Vec<String> {
    all(&[text.as_bytes()]).into_iter().map(|(_, data, _)| data).collect()
}

#[test]
fn every_line_end_is_understood() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["data: one", "", "data: two", "data:three", "", ""].join(end);
        assert_eq!(data(&text), ["one", "two\nthree"], "{end:?}");
    }
}

#[test]
fn a_cr_ends_its_line_at_once_and_a_late_lf_is_no_second_one() {
    let mut sse = SseDecoder::new();
    sse.push(b"data: x\r\r");
    assert_eq!(sse.next_event().unwrap().unwrap().data, "x");
    sse.push(b"\ndata: y\n\n");
    assert_eq!(sse.next_event().unwrap().unwrap().data, "y");
}

#[test]
fn fields_are_read_as_the_standard_says() {
    let text = "\u{feff}: a comment\nevent: note\nid: 7\nretry: 1500\nunknown: x\ndata\ndata:  two\n\ndata: z\nid: a\0b\n\n";
    let mut sse = SseDecoder::new();
    sse.push(text.as_bytes());
    let first = sse.next_event().unwrap().unwrap();
    assert_eq!((first.event, first.data, first.id), ("note", "\n two", "7"));
    let second = sse.next_event().unwrap().unwrap();
    assert_eq!((second.event, second.data, second.id), ("message", "z", "7"));
    assert_eq!(sse.retry(), Some(Duration::from_millis(1500)));
}

#[test]
fn an_event_without_data_is_none() {
    assert_eq!(data("event: x\n\n\n\nid: 1\n\n: ping\n\ndata: y\n\n"), ["y"]);
    // … and its name does not leak into the next one.
    assert_eq!(all(&[b"event: x\n\ndata: y\n\n"])[0].0, "message");
}

#[test]
fn an_empty_data_line_is_an_event() {
    assert_eq!(data("data:\n\n"), [""]);
}

#[test]
fn what_the_end_cuts_off_can_be_had() {
    let mut sse = SseDecoder::new();
    sse.push(b"data: a\n\ndata: b");
    assert_eq!(sse.next_event().unwrap().unwrap().data, "a");
    assert!(sse.next_event().unwrap().is_none());
    assert_eq!(sse.finish().unwrap().data, "b");
    assert!(sse.finish().is_none());
}

#[test]
fn broken_utf8_is_replaced() {
    assert_eq!(all(&[b"data: a\xffb\n\n"])[0].1, "a\u{fffd}b");
}

#[test]
fn a_line_or_event_above_the_limit_is_an_error_that_stays() {
    let endings: [&[u8]; 3] = [b"data: 0123456789", b"data: 01234\ndata: 56789\n", b": 0123456789\n\n"];
    for text in endings {
        let mut sse = SseDecoder::with_limit(10);
        sse.push(b"data: ok\n\n");
        assert_eq!(sse.next_event().unwrap().unwrap().data, "ok");
        sse.push(text);
        assert_eq!(sse.next_event(), Err(SseTooLong { limit: 10 }));
        sse.push(b"\n\n");
        assert_eq!(sse.next_event(), Err(SseTooLong { limit: 10 }));
        assert!(sse.finish().is_none());
    }
}

/// Lines as a stream has them, among others.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data: ".to_vec()),
        Just(b"data:".to_vec()),
        Just(b"event: e".to_vec()),
        Just(b"id: 1".to_vec()),
        Just(b"retry: 10".to_vec()),
        Just(b": comment".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just("wörter 🦌".as_bytes().to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn outcome(limit: usize, chunks: &[&[u8]]) -> (Vec<Owned>, bool, Option<String>, Option<Duration>) {
    let mut sse = SseDecoder::with_limit(limit);
    let mut out = Vec::new();
    for chunk in chunks {
        sse.push(chunk);
        loop {
            match sse.next_event() {
                Ok(Some(event)) => {
                    out.push((event.event.to_owned(), event.data.to_owned(), event.id.to_owned()));
                }
                Ok(None) => break,
                Err(_) => return (out, true, None, None),
            }
        }
    }
    let last = sse.finish().map(|event| event.data.to_owned());
    (out, false, last, sse.retry())
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(
        bytes in stream(),
        cuts in proptest::collection::vec(0usize..200, 0..12),
        limit in prop_oneof![Just(MAX_EVENT), 4usize..40],
    ) {
        let whole = outcome(limit, &[&bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&outcome(limit, &single), &whole);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut chunks: Vec<&[u8]> = Vec::new();
        let mut at = 0;
        for cut in cuts {
            chunks.push(&bytes[at..cut]);
            at = cut;
        }
        chunks.push(&bytes[at..]);
        prop_assert_eq!(&outcome(limit, &chunks), &whole);
    }
}
