//! The mutation runner.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hart_testkit::fuzz;

fn corpus() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("b"), b"second").unwrap();
    fs::write(dir.path().join("a"), b"first input").unwrap();
    fs::write(dir.path().join("empty"), b"").unwrap();
    dir
}

fn inputs(seed: u64) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    fuzz::run(corpus().path(), 500, seed, &[b"TOKEN"], |bytes| seen.push(bytes.to_vec()));
    seen
}

#[test]
fn the_corpus_comes_first_and_the_same_seed_gives_the_same_inputs() {
    let seen = inputs(7);
    assert_eq!(&seen[..3], [&b"first input"[..], b"second", b""]);
    assert_eq!(seen.len(), 503);
    assert_eq!(seen, inputs(7));
    assert_ne!(seen, inputs(8));
}

#[test]
fn mutations_reach_the_dictionary_splices_growth_and_emptiness() {
    let seen = inputs(1);
    let holds = |needle: &[u8]| seen.iter().any(|input| input.windows(needle.len()).any(|w| w == needle));
    assert!(holds(b"TOKEN"));
    assert!(seen.iter().any(|input| input.starts_with(b"fir") && input.ends_with(b"ond")));
    assert!(seen.iter().any(|input| input.len() > 100));
    assert!(seen[3..].iter().any(Vec::is_empty));
    assert!(seen[3..].iter().any(|input| std::str::from_utf8(input).is_err()));
}

#[test]
fn a_panic_goes_on_to_the_caller() {
    let dir = corpus();
    let result = catch_unwind(AssertUnwindSafe(|| {
        fuzz::run(dir.path(), 1000, 3, &[], |bytes| assert!(bytes.len() < 100, "too long"));
    }));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"too long"));
}

#[test]
#[should_panic(expected = "is empty")]
fn an_empty_corpus_is_an_error() {
    fuzz::run(tempfile::tempdir().unwrap().path(), 1, 0, &[], |_| {});
}
