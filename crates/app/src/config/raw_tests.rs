use serde_json::json;

use super::*;

fn json_of(text: &str) -> Value {
    parse(text, "config.yaml").unwrap().to_json()
}

fn error_of(text: &str) -> String {
    parse(text, "config.yaml").unwrap_err().to_string()
}

#[test]
fn scalars_lists_and_maps() {
    let value = json_of("a: 1\nb: [x, 1.5, true, ~]\nc:\n  d: \"1\"\n  e: 2026-01-01\n  f:\n");
    assert_eq!(
        value,
        json!({"a": 1, "b": ["x", 1.5, true, null], "c": {"d": "1", "e": "2026-01-01", "f": null}})
    );
}

#[test]
fn nothing_is_an_empty_map() {
    for text in ["", "\n\n", "# only a comment\n", "---\n...\n", "~\n", "\u{feff}"] {
        assert_eq!(json_of(text), json!({}), "{text:?}");
    }
}

#[test]
fn values_know_their_place() {
    let node = parse("a: 1\nb:\n  - c: x\n    d: y\n", "f").unwrap();
    let d = node.find(&super::super::node::Path::parse("b[0].d").unwrap()).unwrap();
    assert_eq!(d.mark, Mark::at(4, 8));
}

#[test]
fn anchors_and_merge_keys_work() {
    let value = json_of("base: &b {k: 1, l: two}\nuse:\n  <<: *b\n  l: 3\nagain: *b\n");
    assert_eq!(value["use"], json!({"l": 3, "k": 1}));
    assert_eq!(value["again"], json!({"k": 1, "l": "two"}));
}

#[test]
fn a_syntax_error_points_at_the_character() {
    let shown = error_of("models:\n  - name: a: b\n");
    let expected = "error: mapping values are not allowed in this context\n  --> config.yaml:2:12\n  |\n2 |   - name: a: b\n  |            ^\n  help: check the indentation; a value that contains `: ` needs quotes";
    assert_eq!(shown, expected);
}

#[test]
fn duplicate_keys_are_refused() {
    let shown = error_of("a: 1\nb: 2\na: 3\n");
    assert!(
        shown.contains("`a` is here for the second time") && shown.contains("config.yaml:3:1"),
        "{shown}"
    );
    assert!(parse("1: a\n\"1\": b\n", "f").is_err());
}

#[test]
fn a_file_that_is_no_map_is_refused() {
    assert!(error_of("- a\n").contains("not a list"));
    assert!(error_of("just words\n").contains("not a string"));
    assert!(error_of("a: 1\n---\nb: 2\n").contains("second document"));
    assert!(error_of("~: 1\n").contains("key is empty"));
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(error_of(&text).contains("expands to more than"), "{}", error_of(&text));
    let deep = format!("a: {}{}", "[".repeat(200), "]".repeat(200));
    assert!(error_of(&deep).contains("expands to more than"), "{}", error_of(&deep));
    assert!(parse(&"[".repeat(100_000), "f").is_err());
    let block: String = (0..500).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(parse(&block, "f").is_err());
    assert!(error_of(&format!("a: \"{}\"", "x".repeat(MAX_BYTES))).contains("4 MiB"));
}

#[test]
fn depth_through_aliases_is_depth() {
    for open in ["[*a{}]", "{<<: *a{}, k{}: 1}", "{x: *a{}}"] {
        let mut text = "a0: &a0 {x: 1}\n".to_owned();
        for level in 1..2000 {
            let value =
                open.replacen("{}", &(level - 1).to_string(), 1).replacen("{}", &level.to_string(), 1);
            text.push_str(&format!("a{level}: &a{level} {value}\n"));
        }
        assert!(parse(&text, "f").is_err(), "{open}");
    }
    // An anchor that holds itself.
    assert!(parse("a: &a [*a]\n", "f").is_err());
    assert!(parse("a: &a\n  <<: *a\n", "f").is_err());
}

#[test]
fn no_secret_in_a_syntax_error() {
    for text in [
        "models:\n  - api_key: 'sk-live'abc'\n",
        "models:\n  - {name: a, api_key: sk-live: x}\n",
        "models:\n  - api_key: |\n      sk-live\n     sk-live\n  x\n",
        "sandbox:\n  environment:\n    A: sk-live: x\n",
        "api_key: sk-live: x",
        "api_key: 1e999",
    ] {
        let shown = error_of(text);
        assert!(!shown.contains("sk-live") && !shown.contains("1e999"), "{shown}");
    }
}

#[test]
fn a_long_line_is_cut_around_the_caret() {
    let shown = error_of(&format!("a: {}: b\n", "x".repeat(5000)));
    assert!(shown.lines().all(|line| line.chars().count() < 130), "{shown}");
}
