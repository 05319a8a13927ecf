use serde_json::json;

use super::*;

#[test]
fn answers_are_read_or_explained() {
    let extend = |tokens| Answered::Extend(Limits { tokens: Some(tokens), ..Limits::default() });
    assert_eq!(Answered::from_json(&json!({"extend": {"tokens": 5}})), extend(5));
    assert_eq!(Answered::from_json(&json!("Stop")), Answered::Stop);
    assert_eq!(Answered::from_json(&json!({"stop": true})), Answered::Stop);
    for unclear in
        [json!(null), json!("yes"), json!({}), json!({"extend": {}}), json!({"extend": {"tokns": 1}})]
    {
        assert!(matches!(Answered::from_json(&unclear), Answered::Unclear(_)), "{unclear}");
    }
}

#[test]
fn the_settings_hold_only_when_they_are_on() {
    let config = |json| serde_json::from_value::<BudgetConfig>(json).unwrap();
    assert_eq!(config(json!({})).limits(), Limits::default());
    let on = config(json!({"enabled": true, "hard_stop_threshold": 0.5, "on_limit": "end"}));
    assert_eq!((on.limits().tokens, on.on_limit), (Some(100_000), OnLimit::End));
}

#[test]
fn a_warning_names_what_is_nearly_gone() {
    let budget = Budget::new(&Limits { tokens: Some(1000), tool_calls: Some(10), ..Limits::default() });
    budget.charge(Amount { input_tokens: 799, ..Amount::default() });
    assert_eq!(warning(&budget, 0.8), None);
    budget.charge(Amount { input_tokens: 1, ..Amount::default() });
    let text = warning(&budget, 0.8).unwrap();
    assert!(text.starts_with("[BUDGET] ") && text.contains("800 of 1000 tokens."), "{text}");
}
