use proptest::prelude::*;

use super::*;

fn captured(limit: usize, chunks: &[&[u8]]) -> (String, bool) {
    let mut capture = Capture::new(limit);
    for chunk in chunks {
        capture.push(chunk);
    }
    capture.finish()
}

#[test]
fn what_fits_is_kept_as_it_is() {
    assert_eq!(captured(6, &[b"ab", b"", b"cdef"]), ("abcdef".to_owned(), false));
    assert_eq!(captured(0, &[]), (String::new(), false));
}

#[test]
fn what_does_not_fit_loses_its_middle() {
    let expected = ("abc\n… 4 bytes omitted …\nhij".to_owned(), true);
    assert_eq!(captured(6, &[b"abcdefghij"]), expected);
    assert_eq!(captured(6, &[b"a", b"bcde", b"f", b"ghi", b"j"]), expected);
    assert_eq!(captured(0, &[b"abc"]), ("\n… 3 bytes omitted …\n".to_owned(), true));
}

proptest! {
    #[test]
    fn capture_depends_on_the_bytes_not_on_their_pieces(
        bytes in prop::collection::vec(any::<u8>(), 0..200), limit in 0..100_usize, piece in 1..50_usize,
    ) {
        let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
        let whole = captured(limit, &[&bytes]);
        prop_assert_eq!(&whole, &captured(limit, &pieces));
        prop_assert_eq!(whole.1, bytes.len() > limit);
    }

    #[test]
    fn streamed_text_is_the_lossy_text(bytes in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        ".{0,20}".prop_map(String::into_bytes),
    ], piece in 1..7_usize) {
        let mut text = String::new();
        let mut stream = TextStream::default();
        for chunk in bytes.chunks(piece) {
            stream.push(chunk, |part| text.push_str(part));
        }
        stream.finish(|part| text.push_str(part));
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }
}
