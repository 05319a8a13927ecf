use super::{first_chars, last_chars, middle, whole_lines};

fn note(skipped: usize) -> String {
    format!("[{skipped} skipped]")
}

#[test]
fn what_fits_is_left_alone() {
    assert_eq!(middle("äöü".into(), 3, note), "äöü");
    assert_eq!(middle("äöü".repeat(100), 0, note), "äöü".repeat(100), "zero means no limit");
}

#[test]
fn the_middle_goes_and_the_note_counts() {
    let cut = middle("ä".repeat(50) + &"ö".repeat(50), 33, note);
    assert_eq!(cut, format!("{}[80 skipped]{}", "ä".repeat(10), "ö".repeat(10)));
    assert!(cut.chars().count() <= 33);
}

#[test]
fn a_limit_smaller_than_the_note_leaves_the_note() {
    assert_eq!(middle("x".repeat(100), 5, note), "[100 skipped]");
}

#[test]
fn lines_stay_whole() {
    assert_eq!(whole_lines("one\ntwo\nthree", 8), ("one\ntwo\n", 2));
    assert_eq!(whole_lines("one\ntwo\nthree", 13), ("one\ntwo\nthree", 3));
    assert_eq!(whole_lines("one\n", 3), ("", 0));
    assert_eq!(whole_lines("", 3), ("", 0));
}

#[test]
fn ends_are_counted_in_characters() {
    assert_eq!(first_chars("äöü", 2), "äö");
    assert_eq!(first_chars("äöü", 9), "äöü");
    assert_eq!(last_chars("äöü", 2), "öü");
    assert_eq!(last_chars("äöü", 9), "äöü");
    assert_eq!(last_chars("äöü", 0), "");
}
