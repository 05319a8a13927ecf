use serde_json::json;

use super::*;

fn mended(text: &str) -> Value {
    let read = repair(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert!(read.repaired, "{text} was valid");
    read.value
}

#[test]
fn what_models_get_wrong_is_mended() {
    for (text, value) in [
        (r#"{"a": 1,}"#, json!({"a": 1})),
        (r#"{"a": [1, 2,], }"#, json!({"a": [1, 2]})),
        (r"{'a': 'it'}", json!({"a": "it"})),
        (r"{'a': 'it\'s'}", json!({"a": "it's"})),
        (r#"{a: 1, b_c: "x", $d: 2}"#, json!({"a": 1, "b_c": "x", "$d": 2})),
        ("{1: 'x'}", json!({"1": "x"})),
        ("{\"a\": \"one\ntwo\tthree\u{1}\"}", json!({"a": "one\ntwo\tthree\u{1}"})),
        (r#"{"a": True, "b": False, "c": None}"#, json!({"a": true, "b": false, "c": null})),
        (r#"{"a": NaN, "b": -Infinity, "c": undefined}"#, json!({"a": null, "b": null, "c": null})),
        ("{\"a\": 1, // one\n \"b\": /* two */ 2 # three\n}", json!({"a": 1, "b": 2})),
        ("```json\n{\"a\": 1}\n```", json!({"a": 1})),
        ("```\n{'a': 1}\n```", json!({"a": 1})),
        (r#""{\"a\": 1}""#, json!({"a": 1})),
        (r#""\"{\\\"a\\\": 1}\"""#, json!({"a": 1})),
        (r#""{\"a\": 1,}""#, json!({"a": 1})),
        ("{“a”: “b \"c\"”, ‘d’: ‘e’}", json!({"a": "b \"c\"", "d": "e"})),
        (r#"{"a": +1, "b": .5, "c": 2., "d": -.5}"#, json!({"a": 1, "b": 0.5, "c": 2.0, "d": -0.5})),
        (
            r#"{"a": "\d+\.rs", "b": "C:\windows", "c": "\x41"}"#,
            json!({"a": "\\d+\\.rs", "b": "C:\\windows", "c": "A"}),
        ),
        (r#"{"a": "\ud83e\udd8c \ud83e"}"#, json!({"a": "🦌 \u{fffd}"})),
        (r#"{"a": {"b": 1}}}"#, json!({"a": {"b": 1}})),
        (r#"{"a": 1}]};"#, json!({"a": 1})),
        ("\u{feff}{\"a\": 1}", json!({"a": 1})),
    ] {
        assert_eq!(mended(text), value, "{text}");
    }
}

#[test]
fn a_text_that_ends_early_is_completed_as_far_as_allowed() {
    let whole = r#"{"path": "a\n\u00e4b", "n": [12, -3.5e2, {"deep": true}], "end": null}"#;
    for at in 1..whole.len() {
        let Some(cut) = whole.get(..at) else { continue };
        let all = repair(cut).unwrap_or_else(|error| panic!("{cut}: {error}"));
        assert!(all.repaired && all.value.is_object(), "{cut}");
        assert!(repair_with(cut, Closing::Never).is_err(), "{cut}");
        if let Ok(read) = repair_with(cut, Closing::Brackets) {
            // Whatever is there is whole: each member is the one that was meant.
            let meant: Value = serde_json::from_str(whole).unwrap();
            for (key, value) in read.value.as_object().unwrap() {
                assert!(key == "n" || &meant[key] == value, "{cut} gave {key}: {value}");
            }
        }
    }
    assert_eq!(mended(r#"{"a": 1, "b": "x"#), json!({"a": 1, "b": "x"}));
    assert_eq!(mended(r#"{"a": 1, "b"#), json!({"a": 1}));
    assert_eq!(mended(r#"{"a": 1, "b":"#), json!({"a": 1}));
    assert_eq!(mended(r#"{"a": 1, "b": tr"#), json!({"a": 1}));
    assert_eq!(mended(r#"{"a": [1, 2"#), json!({"a": [1, 2]}));
    let brackets = |text: &str| repair_with(text, Closing::Brackets).map(|read| read.value);
    assert_eq!(brackets(r#"{"a": ["x""#), Ok(json!({"a": ["x"]})));
    assert_eq!(brackets(r#"{"a": true"#), Ok(json!({"a": true})));
    assert!(brackets(r#"{"a": "x"#).is_err());
    assert!(brackets(r#"{"a": 12"#).is_err());
    assert!(brackets(r#"{"a": 1, "b": "#).is_err());
}

#[test]
fn what_cannot_be_known_is_an_error_that_says_where() {
    for (text, error) in [
        ("", "there is no value at line 1 column 1"),
        ("{\"a\": hello}", "a text needs quotes at line 1 column 7"),
        ("{\"a\"\n  \"b\"}", "expected `:` at line 2 column 3"),
        ("{\"a\": 1}\n{\"b\": 2}", "something follows the value at line 2 column 1"),
        ("{\"a\": 1 \"b\": 2}", "expected `,` or a closing bracket at line 1 column 9"),
        ("{\"a\": 0x10}", "expected `,` or a closing bracket at line 1 column 8"),
        ("{\"a\": 1e999}", "this is not a number at line 1 column 7"),
        ("{,}", "expected a key at line 1 column 2"),
        ("{\"a\": }", "expected a value at line 1 column 7"),
        ("Sure! {\"a\": 1}", "a text needs quotes at line 1 column 1"),
        ("```json\n{\"a\": ?}\n```", "expected a value at line 2 column 7"),
    ] {
        assert_eq!(repair(text).unwrap_err().to_string(), error, "{text}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(repair(&deep).unwrap_err().message, "the nesting is too deep");
}

#[test]
fn valid_values_stay_as_they_are() {
    for text in [r#"{"a": "{\"b\": 1}"}"#, "[1, 2]", "\"plain\"", "null", "{}", "\"[1]\"", r#""{no json}""#] {
        let read = repair(text).unwrap();
        assert_eq!(read, Repaired { value: serde_json::from_str(text).unwrap(), repaired: false });
    }
}
