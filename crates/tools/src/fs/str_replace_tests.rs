use super::{hint, line_numbers, nearest_line};

const CODE: &str = "\
def area(r):
    pi = 3.14
    return pi * r * r


def volume(r):
    return 4 / 3 * pi * r ** 3
";

#[test]
fn other_whitespace_is_recognised() {
    assert_eq!(
        hint(CODE, "pi = 3.14\nreturn pi * r * r"),
        "The same text with different whitespace is at line 2; read the file from there and copy it exactly"
    );
    assert_eq!(
        hint("a\r\nb\r\nc\r\n", "b\nc\n"),
        "The same text with different whitespace is at line 2 (the file has Windows line ends); read the \
         file from there and copy it exactly"
    );
}

#[test]
fn a_known_first_line_is_recognised() {
    assert_eq!(
        hint(CODE, "def volume(r):\n    return 1\n"),
        "Its first line is at line 6, but what follows differs; read the file from there and copy it exactly"
    );
}

#[test]
fn the_nearest_line_is_shown() {
    assert_eq!(
        hint(CODE, "def volume(radius):"),
        "The nearest line is 6: `def volume(r):`; read the file there and copy it exactly"
    );
    assert_eq!(nearest_line("same\nsame\n", "sane same"), Some((1, "same")));
}

#[test]
fn a_stranger_is_a_stranger() {
    let nothing = "Nothing like it is there; read the file, and check that it is the one you mean";
    assert_eq!(hint(CODE, "SELECT * FROM users;"), nothing);
    assert_eq!(hint(&"x\n".repeat(1 << 20), "xyz = 1"), nothing, "a huge file is not compared line by line");
    assert_eq!(hint("", "x"), "The file is empty; use write_file");
    assert_eq!(hint("x", " \n\n"), "It is only whitespace; include text around it");
}

#[test]
fn long_lists_of_lines_are_cut() {
    let text = "x\n".repeat(30);
    let places: Vec<usize> = (0..30).map(|index| index * 2).collect();
    assert_eq!(line_numbers(&text, &places[..3]), "1, 2, 3");
    assert!(line_numbers(&text, &places).ends_with("19, 20, …"));
}
