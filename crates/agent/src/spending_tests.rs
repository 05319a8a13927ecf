use std::sync::Arc;

use hart_kernel::{ChatStream, ModelError, ModelProfile, ModelSettings, async_trait};
use hart_types::Message;
use serde_json::json;

use super::*;

struct Priced(ModelProfile);

#[async_trait]
impl ChatModel for Priced {
    fn profile(&self) -> &ModelProfile {
        &self.0
    }

    async fn stream(
        &self,
        _: ChatRequest,
        _: &tokio_util::sync::CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        Err(ModelError::cancelled())
    }
}

/// A model that costs 1 per million tokens in and 10 out, and says at most 8000 tokens.
fn priced() -> Priced {
    let price = Some(Price { input: 1.0, output: 10.0, cached_input: None });
    Priced(ModelProfile { price, max_output_tokens: Some(8000), ..ModelProfile::default() })
}

fn request(messages: MessageList) -> ChatRequest {
    let (caller, settings) = ("test".into(), ModelSettings::default());
    ChatRequest { caller, system: None, messages, tools: [].into(), settings }
}

fn planned(limits: &Limits, input: u64, keeps_last: bool) -> Result<(u64, Option<u32>, bool), Exhausted> {
    let budget = Budget::new(limits);
    let plan = plan(&budget, &priced(), &request(MessageList::default()), input, Duration::ZERO, keeps_last)?;
    Ok((budget.used().tokens, plan.max_tokens, plan.is_last))
}

#[test]
fn a_call_is_planned_for_its_worst_case_and_made_shorter_where_that_does_not_fit() {
    let tokens = |tokens| Limits { tokens: Some(tokens), ..Limits::default() };
    let cost = |cost| Limits { cost: Some(cost), ..Limits::default() };
    assert_eq!(planned(&Limits::default(), 1000, true).unwrap(), (9000, None, false));
    assert_eq!(planned(&tokens(9000), 1000, false).unwrap(), (9000, None, false));
    assert_eq!(planned(&tokens(4000), 1000, false).unwrap(), (4000, Some(3000), false));
    assert_eq!(planned(&tokens(1256), 1000, false).unwrap(), (1256, Some(256), false));
    let refused = planned(&tokens(1255), 1000, false).unwrap_err();
    assert_eq!((refused.resource, refused.wanted), (Resource::Tokens, 1256));
    // 0.05 pays for 1000 tokens in and 4900 out.
    assert_eq!(planned(&cost(0.05), 1000, false).unwrap(), (5900, Some(4900), false));
    assert_eq!(planned(&cost(0.003), 1000, false).unwrap_err().resource, Resource::Cost);
    // For a final answer 1000 + 1024 in and 256 out are kept.
    assert_eq!(planned(&tokens(5280), 1000, true).unwrap(), (3000, Some(2000), false));
    assert_eq!(planned(&tokens(4303), 1000, true).unwrap(), (4303, Some(3303), true));
    let calls = |calls| Limits { model_calls: Some(calls), ..Limits::default() };
    assert!(!planned(&calls(2), 1000, true).unwrap().2 && planned(&calls(1), 1000, true).unwrap().2);
    assert_eq!(planned(&calls(0), 1000, true).unwrap_err().resource, Resource::ModelCalls);
}

#[test]
fn only_what_is_new_is_counted() {
    let (model, mut counted) = (priced(), Counted::default());
    let mut messages: MessageList = (0..100).map(|_| Arc::new(Message::human("x".repeat(40)))).collect();
    let first = counted.count(&model, &request(messages.clone()));
    assert_eq!(first, model.count_request(&request(messages.clone())));
    counted.correct(5000);
    messages.push(Arc::new(Message::human("y".repeat(40))));
    assert_eq!(counted.count(&model, &request(messages)), 5000 + first / 100);
    let other: MessageList = [Arc::new(Message::human("z"))].into_iter().collect();
    assert!(counted.count(&model, &request(other)) < 10, "another conversation");
}

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
