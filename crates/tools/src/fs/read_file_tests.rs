use hart_sandbox::{Lines, VPath};

use super::{Range, UNLIMITED, as_text, kind_of, render};

/// As the tool shows a file with this content.
fn shown(text: &str, start: usize, end: usize, limit: usize) -> String {
    let wanted: String =
        text.split_inclusive('\n').skip(start - 1).take(end.saturating_sub(start - 1)).collect();
    let first = wanted.split_inclusive('\n').next().unwrap_or_default().chars().count();
    let total = text.split_inclusive('\n').count() as u64;
    let lines = Lines {
        text: wanted.clone().into_bytes(),
        first_line_chars: first as u64,
        total: Some(total),
        at_least: total,
        ..Lines::default()
    };
    let limit = if limit == 0 { UNLIMITED } else { limit };
    render(&path(), &wanted, &lines, Range { start, end }, limit).unwrap()
}

#[test]
fn a_character_cut_off_at_the_end_is_no_other_encoding() {
    let lines = |head: &[u8], text: &[u8]| Lines {
        head: head.into(),
        text: text.into(),
        size: 10_000,
        cut: true,
        ..Lines::default()
    };
    assert_eq!(as_text(&path(), &lines(b"caf\xc3", b"caf\xc3")).unwrap(), "caf");
    for (head, text, kind) in [
        (&b"text"[..], &b"caf\xe9!"[..], "text in another encoding"),
        (b"text", b"a\0b", "binary data"),
        (b"%PDF-1.4 plain", b"%PDF-1.4 plain", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n", b"IDAT", "a PNG image"),
    ] {
        let error = as_text(&path(), &lines(head, text)).unwrap_err().to_string();
        assert!(error.contains(kind), "{error}");
    }
}

fn path() -> VPath {
    VPath::parse("/mnt/user-data/workspace/notes.txt").unwrap()
}

#[test]
fn ranges_are_inclusive_and_keep_line_ends() {
    let text = "one\r\ntwo\nthree";
    assert_eq!(shown(text, 1, usize::MAX, 0), text);
    assert_eq!(shown(text, 2, 2, 0), "two\n");
    assert_eq!(shown(text, 1, 2, 0), "one\r\ntwo\n");
    assert_eq!(shown(text, 3, 99, 0), "three");
}

#[test]
fn long_files_are_cut_after_a_line_and_say_where_to_read_on() {
    let text = "123456789\n".repeat(1000);
    let head = shown(&text, 101, usize::MAX, 500);
    assert!(head.chars().count() <= 500);
    assert!(
        head.ends_with(
            "123456789\n... [truncated: showing lines 101-141 of 1000; read on with start_line=142] ..."
        ),
        "{head}"
    );
    assert_eq!(head.lines().count(), 41 + 1);
}

#[test]
fn a_line_longer_than_the_limit_is_cut_in_itself() {
    let text = format!("short\n{}\n", "ä".repeat(5000));
    let head = shown(&text, 2, usize::MAX, 400);
    assert!(head.chars().count() <= 400);
    let (line, note) = head.split_once('\n').unwrap();
    assert_eq!(
        note,
        format!(
            "... [truncated: line 2 alone has 5001 chars; read on in it with bash: `sed -n 2p \
             '/mnt/user-data/workspace/notes.txt' | tail -c +{} | head -c 20000`] ...",
            line.len() + 1
        ),
        "bytes, because that is what tail counts"
    );
    let followed = shown(&format!("{text}last"), 2, usize::MAX, 400);
    assert!(followed.ends_with("head -c 20000`; the line after it is start_line=3] ..."), "{followed}");
}

#[test]
fn what_cannot_be_seen_is_named() {
    assert_eq!(shown("\n \r\n\n", 1, usize::MAX, 0), "(only white space, 5 bytes)");
    assert_eq!(shown("\nx\n", 1, usize::MAX, 0), "\nx\n");
}

#[test]
fn binary_files_are_named() {
    for (content, kind) in [
        (&b"\x89PNG\r\n\x1a\n...."[..], "a PNG image"),
        (b"\xff\xd8\xff\xe0", "a JPEG image"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "a WebP image"),
        (b"BM\x36\0", "a BMP image"),
        (b"II*\0", "a TIFF image"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"%PDF-1.7\xff", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive or an Office document"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\0\0\0\x18ftypmp42", "an MPEG-4 or QuickTime video"),
        (b"\0\0\0\x18ftypheic", "a HEIC image"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "WAV audio"),
        (b"ID3\x04\0", "MP3 audio"),
        (b"OggS\0\x02", "Ogg audio or video"),
        (b"\xff\xfea\0", "UTF-16 text"),
        (b"\x01\x00\x02", "binary data"),
        (b"caf\xe9", "text in another encoding"),
    ] {
        assert_eq!(kind_of(content).0, kind);
    }
}
