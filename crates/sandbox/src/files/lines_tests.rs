use super::*;

fn lines(content: &[u8], first: u64, last: u64, max_bytes: usize) -> Lines {
    scan(content, content.len() as u64, LineQuery { first, last, max_bytes }).unwrap()
}

/// Hands out its content in pieces of a few bytes.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.1.min(self.0.len()).min(buffer.len());
        let (now, later) = self.0.split_at(length);
        buffer[..length].copy_from_slice(now);
        self.0 = later;
        Ok(length)
    }
}

#[test]
fn a_range_is_what_lies_between_its_ends() {
    let content = b"one\ntwo\r\n\nfour\nlast";
    for (first, last, text) in [
        (1, u64::MAX, &content[..]),
        (2, 2, b"two\r\n"),
        (2, 4, b"two\r\n\nfour\n"),
        (3, 3, b"\n"),
        (5, 9, b"last"),
        (6, 9, b""),
    ] {
        let found = lines(content, first, last, 1000);
        assert_eq!(found.text, text, "{first}-{last}");
        assert_eq!((found.total, found.cut), (Some(5), false));
    }
    assert_eq!(lines(b"", 1, 9, 10).total, Some(0));
    assert_eq!(lines(b"\n", 1, 9, 10).total, Some(1));
    assert_eq!(lines(b"a\nb\n", 1, 9, 10).total, Some(2));
}

#[test]
fn the_pieces_it_is_read_in_do_not_matter() {
    let content: Vec<u8> = (0..500).flat_map(|n| format!("line {n} äö\n").into_bytes()).collect();
    let query = LineQuery { first: 37, last: 420, max_bytes: 3000 };
    let whole = scan(&content[..], 0, query).unwrap();
    for size in [1, 2, 3, 7, 100, 4096] {
        assert_eq!(scan(Trickle(&content, size), 0, query).unwrap(), whole, "pieces of {size}");
    }
    assert!(whole.cut && whole.text.len() == 3000);
    assert_eq!(whole.total, Some(500));
    assert!(whole.text.starts_with(b"line 36 "));
}

#[test]
fn a_long_line_is_measured_in_characters() {
    let content = format!("x\n{}\nend\n", "ä".repeat(5000));
    let found = lines(content.as_bytes(), 2, 9, 100);
    assert_eq!((found.first_line_chars, found.cut, found.text.len()), (5001, true, 100));
    assert_eq!(found.total, Some(3));
}

#[test]
fn a_cut_exactly_at_the_end_is_no_cut() {
    assert!(!lines(b"a\nb\n", 1, 9, 4).cut);
    assert!(!lines(b"a\nb\nc\n", 1, 2, 4).cut);
    assert!(lines(b"a\nb\nc\n", 1, 3, 4).cut);
}

#[test]
fn counting_ends_somewhere() {
    let endless = std::io::repeat(b'\n').take(COUNTED + (4 << 20));
    let found = scan(endless, 0, LineQuery { first: 1, last: 2, max_bytes: 10 }).unwrap();
    assert_eq!((found.total, found.text.as_slice()), (None, &b"\n\n"[..]));
    assert!(found.at_least >= COUNTED);
}

#[test]
fn hex_is_hex() {
    assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
}
