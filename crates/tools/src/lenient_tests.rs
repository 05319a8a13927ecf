use serde_json::{Value, from_value, json};

use super::{Capped, Count, Flag, List};

#[test]
fn flags_in_every_spelling() {
    for (written, meant) in [
        (json!(true), true),
        (json!("True"), true),
        (json!(1), true),
        (json!("1"), true),
        (json!(false), false),
        (json!("false"), false),
        (json!(0.0), false),
        (json!(""), false),
        (Value::Null, false),
    ] {
        assert_eq!(from_value::<Flag>(written.clone()).unwrap().0, meant, "{written}");
    }
    for nonsense in [json!("maybe"), json!(2), json!([true])] {
        assert!(from_value::<Flag>(nonsense.clone()).is_err(), "{nonsense}");
    }
}

#[test]
fn counts_in_every_spelling() {
    for (written, meant) in
        [(json!(7), 7), (json!("7"), 7), (json!(" 7 "), 7), (json!(7.0), 7), (json!("7.00"), 7)]
    {
        assert_eq!(from_value::<Count>(written.clone()).unwrap(), Count(meant), "{written}");
    }
    for nonsense in [json!(-1), json!(7.5), json!("seven"), json!(""), json!([7]), json!(1e30)] {
        let error = from_value::<Count>(nonsense.clone()).unwrap_err().to_string();
        assert!(error.starts_with("expected a whole number from 0 up, not "), "{nonsense}: {error}");
    }
}

#[test]
fn a_cap_is_a_bound_and_not_a_refusal() {
    type Results = Capped<200, 1000>;
    for (written, meant) in
        [(json!(5), 5), (json!("5"), 5), (json!(0), 1), (json!(1_000_000), 1000), (Value::Null, 200)]
    {
        assert_eq!(from_value::<Results>(written.clone()).unwrap().get(), meant, "{written}");
    }
    assert_eq!(Results::default().get(), 200);
}

#[test]
fn lists_in_every_spelling() {
    for (written, meant) in [
        (json!(["a", "b"]), vec!["a", "b"]),
        (json!(r#"["a", "b"]"#), vec!["a", "b"]),
        (json!("a"), vec!["a"]),
        (json!("[a"), vec!["[a"]),
        (Value::Null, vec![]),
    ] {
        assert_eq!(from_value::<List<String>>(written.clone()).unwrap().0, meant, "{written}");
    }
    assert!(from_value::<List<String>>(json!([{"a": 1}])).is_err());
}
