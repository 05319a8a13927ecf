use proptest::prelude::*;

use super::*;
use crate::files::Root;
use crate::path::{HostPath, VPath};

fn mask(roots: &[(&str, &str)]) -> HostMask {
    let root = |(shown, host): &(&str, &str)| Root {
        shown_at: VPath::root(shown),
        host: HostPath::new(host.into()),
        writable: true,
    };
    HostMask::new(&Roots(roots.iter().map(root).collect()))
}

fn usual() -> HostMask {
    mask(&[
        (WORKSPACE, "/srv/hart/users/u/threads/t/user-data/workspace"),
        ("/mnt/user-data/uploads", "/srv/hart/users/u/threads/t/user-data/uploads"),
        ("/mnt/skills", "/srv/hart/skills"),
        ("/mnt/data", "/data"),
    ])
    .also(Path::new("/srv/hart/users/u/threads/t/tmp"), "/tmp")
}

fn in_pieces<'a>(mask: &HostMask, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut shown = Vec::new();
    let mut stream = MaskStream::new(mask.clone());
    for piece in pieces {
        stream.push(piece, |bytes| shown.extend_from_slice(bytes));
    }
    stream.finish(|bytes| shown.extend_from_slice(bytes));
    shown
}

fn whole(mask: &HostMask, text: &str) -> String {
    String::from_utf8(in_pieces(mask, [text.as_bytes()])).unwrap()
}

#[test]
fn host_paths_become_what_the_model_knows() {
    for (text, masked) in [
        ("/srv/hart/users/u/threads/t/user-data/workspace/a b", "/mnt/user-data/workspace/a b"),
        ("1 2 /hart/users/u/threads/t/user-data/uploads /mnt rw", "1 2 /mnt/user-data/uploads /mnt rw"),
        ("/overlay/é/hart/users/u/threads/t/user-data:rw", "/mnt/user-data:rw"),
        ("-I/srv/hart/users/u/threads/t/user-data/x", "-I/mnt/user-data/x"),
        ("x='/srv/hart/users/u/threads/t/user-data'", "x='/mnt/user-data'"),
        ("/srv/hart/users/u/threads/t/user-data2", "/srv/hart/users/u/threads/t/user-data2"),
        ("/srv/hart/skills/x /srv/hart/skills", "/mnt/skills/x /mnt/skills"),
        ("/data/x /data2 a/data '/data'", "/mnt/data/x /data2 a/data '/mnt/data'"),
        ("/srv/hart/users/u/threads/t/tmp/f", "/tmp/f"),
        ("/mnt/user-data/workspace", "/mnt/user-data/workspace"),
        ("", ""),
    ] {
        assert_eq!(whole(&usual(), text), masked);
    }
}

#[test]
fn what_no_path_can_begin_with_is_shown_at_once() {
    for text in ["done", "50 %", "word\n", "a=b", "é", "user@host:"] {
        let mut shown = Vec::new();
        let mut stream = MaskStream::new(usual());
        stream.push(text.as_bytes(), |bytes| shown.extend_from_slice(bytes));
        assert_eq!(shown, text.as_bytes());
    }
}

#[test]
fn what_is_held_back_is_bounded() {
    let mut stream = MaskStream::new(usual());
    let (mut given, mut shown) = (0, 0);
    let longest = MAX_BACK + "/users/u/threads/t/user-data".len();
    for _ in 0..100 {
        let piece = "/aaaaaaaaa".repeat(100);
        given += piece.len();
        stream.push(piece.as_bytes(), |bytes| shown += bytes.len());
        assert!(given - shown <= longest, "{} bytes are held back", given - shown);
    }
    stream.finish(|bytes| shown += bytes.len());
    assert_eq!(given, shown);
}

/// Needles that begin with, end with and contain each other, over letters that make chance hits likely.
fn tangled() -> HostMask {
    let mut mask = mask(&[
        (WORKSPACE, "/a/b/ab/workspace"),
        ("/mnt/x", "/a"),
        ("/mnt/y", "/b/a b/a"),
        ("/mnt/z", "/b/a"),
    ]);
    mask.back = 7;
    mask
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]
    #[test]
    fn any_pieces_give_the_same_text(
        parts in proptest::collection::vec(prop_oneof![
            Just("/a"), Just("/b"), Just("a"), Just("b"), Just("/"), Just(" "), Just("é"), Just(":"),
            Just("/a/b/ab"), Just("/b/a b/a"), Just("/b/a"),
        ], 0..30),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let text = parts.concat().into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        let mask = tangled();
        let (cut, uncut) = (in_pieces(&mask, pieces), in_pieces(&mask, [text.as_slice()]));
        prop_assert_eq!(String::from_utf8_lossy(&cut), String::from_utf8_lossy(&uncut));
    }

    #[test]
    fn real_paths_are_masked_in_any_pieces(
        words in proptest::collection::vec(prop_oneof![
            Just("/srv/hart/users/u/threads/t/user-data/workspace/f"), Just("/data"), Just("/srv/hart/skills"),
            Just("/srv/hart/users/u/threads/t/user-data2"), Just("/deep/hart/users/u/threads/t/user-data"),
            Just("plain"), Just("\u{e9}\n"), Just("/"),
        ], 0..12),
        size in 1_usize..40,
    ) {
        let text = words.join(" ").into_bytes();
        let (cut, uncut) = (in_pieces(&usual(), text.chunks(size)), in_pieces(&usual(), [text.as_slice()]));
        prop_assert_eq!(&cut, &uncut);
        let shown = String::from_utf8_lossy(&cut).replace("/srv/hart/users/u/threads/t/user-data2", "");
        prop_assert!(!shown.contains("/srv") && !shown.contains("/deep"), "{}", shown);
    }
}
