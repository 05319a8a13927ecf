//! What a file really is, by its bytes; its name is only asked where the bytes leave it open.
//!
//! Invariant: a name never makes a file more harmless than its bytes are.

use super::extension;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// Pictures, sounds, fonts, PDF.
    Media,
    /// An office document: an archive with a known inside.
    Document,
    Archive(&'static str),
    Program(&'static str),
    Bytecode,
    Pickle,
    Binary,
}

impl Kind {
    pub(super) fn of(path: &str, bytes: &[u8]) -> Self {
        let starts = |magic: &[u8]| bytes.starts_with(magic);
        let ext = extension(path).unwrap_or_default();
        if let Some(what) = program(bytes) {
            return Self::Program(what);
        }
        if matches!(ext.as_str(), "pyc" | "pyo" | "pyd") || is_bytecode(bytes) {
            return Self::Bytecode;
        }
        if matches!(ext.as_str(), "pkl" | "pickle" | "joblib" | "pt" | "pth") || is_pickle(bytes) {
            return Self::Pickle;
        }
        if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
            let office =
                ["docx", "xlsx", "pptx", "dotx", "xltx", "potx", "odt", "ods", "odp", "ott", "otp", "epub"];
            return if office.contains(&ext.as_str()) { Self::Document } else { Self::Archive("zip") };
        }
        if let Some(what) = archive(bytes) {
            return Self::Archive(what);
        }
        if is_media(bytes) {
            return Self::Media;
        }
        // UTF-16 is text too, and is read as such by whoever runs it.
        let utf16 = starts(b"\xff\xfe") || starts(b"\xfe\xff");
        if utf16 || (std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0)) {
            return Self::Text;
        }
        Self::Binary
    }
}

fn program(bytes: &[u8]) -> Option<&'static str> {
    const PROGRAMS: [(&[u8], &str); 10] = [
        (b"\x7fELF", "Linux"),
        (b"\xfe\xed\xfa\xce", "macOS"),
        (b"\xfe\xed\xfa\xcf", "macOS"),
        (b"\xce\xfa\xed\xfe", "macOS"),
        (b"\xcf\xfa\xed\xfe", "macOS"),
        (b"\xca\xfe\xba\xbe", "macOS or Java"),
        (b"\0asm", "WebAssembly"),
        (b"dex\n", "Android"),
        (b"!<arch>\n", "a library"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office or installer file"),
    ];
    // Two letters alone begin many texts; a program has its second header where the first says.
    let windows = bytes.starts_with(b"MZ") && bytes.len() > 0x40 && std::str::from_utf8(bytes).is_err();
    let known = PROGRAMS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, what)| *what);
    known.or(windows.then_some("Windows"))
}

fn archive(bytes: &[u8]) -> Option<&'static str> {
    const ARCHIVES: [(&[u8], &str); 9] = [
        (b"\x1f\x8b", "gzip"),
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"Rar!\x1a\x07", "rar"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"MSCF", "cab"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"xar!", "xar"),
    ];
    let tar = bytes.get(257..262) == Some(b"ustar");
    let known = ARCHIVES.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, what)| *what);
    known.or(tar.then_some("tar"))
}

/// CPython marks it with two bytes of its version and a line end.
fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.get(2..4) == Some(b"\r\n") && bytes.len() > 16 && std::str::from_utf8(bytes).is_err()
}

fn is_pickle(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..]) && bytes.ends_with(b".")
}

fn is_media(bytes: &[u8]) -> bool {
    const MEDIA: [&[u8]; 15] = [
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        b"GIF8",
        b"BM",
        b"%PDF-",
        b"RIFF",
        b"OggS",
        b"ID3",
        b"fLaC",
        b"\0\0\x01\0",
        b"wOFF",
        b"wOF2",
        b"OTTO",
        b"\0\x01\0\0",
        b"SQLite format 3\0",
    ];
    // A text that begins like a picture is a text.
    let text = std::str::from_utf8(bytes).is_ok() && !bytes.starts_with(b"%PDF-");
    !text && (MEDIA.iter().any(|magic| bytes.starts_with(magic)) || bytes.get(4..8) == Some(b"ftyp"))
}

/// Where an archive begins that stands behind or within something else.
pub(super) fn archive_within(bytes: &[u8]) -> Option<usize> {
    let marks: [&[u8]; 3] = [b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"];
    marks.iter().filter_map(|mark| bytes.windows(mark.len()).position(|window| window == *mark)).min()
}
