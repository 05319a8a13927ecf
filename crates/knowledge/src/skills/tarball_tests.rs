use std::io::Write as _;

use super::*;

/// An archive with these entries: name, kind, mode, content.
pub(crate) fn tar(entries: &[(&str, u8, &str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, kind, mode, content) in entries {
        let mut header = [0_u8; BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(format!("{mode:0>7}").as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = *kind;
        header[257..262].copy_from_slice(b"ustar");
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(content);
        out.resize(out.len().div_ceil(BLOCK) * BLOCK, 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    out
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn told(bytes: &[u8]) -> String {
    read(bytes, &Limits::default()).unwrap_err().to_string()
}

#[test]
fn plain_files_and_folders_are_read() {
    let pax: &[u8] = b"20 mtime=1759257600\n";
    let made = tar(&[
        ("./", b'5', "755", b""),
        ("parts/", b'5', "755", b""),
        ("x", b'x', "644", pax),
        ("parts/a.tsx", b'0', "644", b"export {}\n"),
        ("./run.sh", b'0', "755", b"#!/bin/sh\n"),
    ]);
    for bytes in [made.clone(), gzip(&made)] {
        let package = read(&bytes, &Limits::default()).unwrap();
        assert_eq!(package.text("parts/a.tsx"), Some("export {}\n"));
        assert!(package.get("run.sh").unwrap().executable && package.files().count() == 2);
    }
}

#[test]
fn what_deceives_or_bursts_is_refused() {
    for (entry, says) in [
        (("../evil", b'0', "644", &b"x"[..]), "leads out"),
        (("/etc/evil", b'0', "644", b"x"), "absolute"),
        (("link", b'2', "777", b""), "link"),
        (("hard", b'1', "777", b""), "link"),
        (("dev", b'3', "644", b""), "neither a file"),
        (("x", b'x', "644", b"18 path=../../e\n"), "not every reader"),
        (("././@LongLink", b'L', "644", b"../../evil"), "not every reader"),
    ] {
        let error = told(&tar(&[entry]));
        assert!(error.contains(says), "{entry:?}: {error}");
    }
    assert!(told(&tar(&[("a", b'0', "644", b"1"), ("A", b'0', "644", b"2")])).contains("one file"));
    let mut behind = tar(&[("a", b'0', "644", b"1")]);
    behind.extend_from_slice(b"payload");
    assert!(told(&behind).contains("behind its end"));
    assert!(told(&[gzip(&tar(&[])), b"payload".to_vec()].concat()).contains("behind its end"));
    let bomb = gzip(&tar(&[("a", b'0', "644", &vec![0; 30 << 20])]));
    assert!(told(&bomb).contains("larger than"), "{}", told(&bomb));
    assert!(told(&gzip(b"a,b\n1,2\n")).contains("no tar archive"));
    let many: Vec<String> = (0..5000).map(|n| format!("f{n}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), b'0', "644", &b""[..])).collect();
    assert!(told(&tar(&many)).contains("more than 4096 files"));
}

#[test]
fn whatever_bytes_come_there_is_an_answer() {
    let corpus = tempfile::tempdir().unwrap();
    let made =
        tar(&[("a/", b'5', "755", b""), ("a/b.txt", b'0', "644", b"text"), ("x", b'x', "644", b"9 a=b\n")]);
    std::fs::write(corpus.path().join("plain"), &made).unwrap();
    std::fs::write(corpus.path().join("packed"), gzip(&made)).unwrap();
    let limits = Limits { total_bytes: 1 << 20, ..Limits::default() };
    let words: [&[u8]; 4] = [b"../", b"77777777777", b"ustar", b"\0\0\0\0"];
    hart_testkit::fuzz::run(corpus.path(), 1500, 1, &words, |bytes| {
        if let Ok(package) = read(bytes, &limits) {
            assert!(package.bytes() <= limits.total_bytes);
            assert!(package.files().all(|(path, _)| !path.split('/').any(|part| part == "..")));
        }
    });
}
