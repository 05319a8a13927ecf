//! Whatever bytes a stranger sends: an answer, never a panic, and nothing beyond the limits.

use std::fs;

use hart_knowledge::skills::{Document, Inspected, Limits, Package};
use hart_testkit::zip::Zip;

use crate::shelf::manifest;

const ITERATIONS: u32 = 1500;

#[test]
fn archives() {
    let corpus = tempfile::tempdir().unwrap();
    let inner = Zip::new().file("word/document.xml", "<w/>").finish();
    let whole = Zip::new()
        .file("a/SKILL.md", manifest("a", "b"))
        .script("a/scripts/x.sh", "echo\n")
        .file("a/assets/d.docx", inner);
    fs::write(corpus.path().join("whole"), whole.finish()).unwrap();
    fs::write(corpus.path().join("empty"), Zip::new().finish()).unwrap();
    let words: [&[u8]; 6] =
        [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"../", b"\xff\xff\xff\xff", b"\0\0"];
    let limits = Limits { total_bytes: 1 << 20, ..Limits::default() };
    hart_testkit::fuzz::run(corpus.path(), ITERATIONS, 1, &words, |bytes| {
        if let Ok(package) = Package::read_archive(bytes, &limits) {
            assert!(package.bytes() <= limits.total_bytes);
            assert!(package.files().all(|(path, _)| !path.split('/').any(|part| part == "..")));
            let files = package.bytes();
            if let Ok(inspected) = Inspected::of(package, None) {
                assert_eq!(inspected.scan.bytes, files, "all of it was looked at");
            }
        }
    });
}

#[test]
fn front_matter() {
    let corpus = tempfile::tempdir().unwrap();
    let text =
        "---\nname: a\ndescription: >-\n  b\n  c\nmetadata: {x: [1, 2]}\nallowed-tools: [bash]\n---\nBody\n";
    fs::write(corpus.path().join("whole"), text).unwrap();
    fs::write(corpus.path().join("plain"), manifest("a", "b")).unwrap();
    let words: [&[u8]; 7] = [b"---\n", b": ", b"[[[[", b"&a *a", b"name:", b"\xf0\x9f\xa6\x8c", b"!!binary"];
    hart_testkit::fuzz::run(corpus.path(), ITERATIONS, 2, &words, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let document = Document::read(&text, Some("a"));
        assert!(text.is_char_boundary(document.body));
        assert!(document.manifest.is_some() || !document.mistakes.is_empty(), "a refusal has a reason");
    });
}
