//! The account is kept, whatever becomes of a call, and the conversation is none the wiser.

use std::sync::{Arc, Mutex};

use audit_middleware::{Audit, Calls, Outcome};
use hart_agent::SuperAgent;
use hart_agent::middleware::{Clarification, ToolOutputBudget};
use hart_kernel::types::{Message, ThreadId};
use hart_kernel::{BuildError, PlaceExt, RunContext, Update};
use hart_models::{ScriptedModel, ScriptedTurn};
use serde_json::json;

#[tokio::test]
async fn every_call_is_in_the_account_and_in_the_thread() {
    let ask = json!({"question": "Which one?", "clarification_type": "missing_info"});
    let model = Arc::new(ScriptedModel::new([
        ScriptedTurn::call("c1", "no_such_tool", json!({})),
        ScriptedTurn::call("c2", "ask_clarification", ask),
    ]));
    let book = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&book);
    let audit = Audit::new(move |entry| written.lock().unwrap().push(entry.clone()));
    let agent = SuperAgent::builder(model.clone()).with(audit).build().unwrap();
    let cx = RunContext::new(ThreadId::from("t1"));
    let report = agent.run(Update::none().messages(Message::human("go")), &cx).await;
    report.outcome.unwrap();
    let book = book.lock().unwrap();
    let entries: Vec<_> = book.iter().map(|entry| (entry.tool.as_str(), entry.outcome)).collect();
    assert_eq!(entries, [("no_such_tool", Outcome::Refused), ("ask_clarification", Outcome::Done)]);
    assert_eq!(report.values.to_json()["audit"], json!({"ask_clarification": 1, "no_such_tool": 1}));
    assert_eq!(report.values.state().get::<Calls>().map(|calls| calls.len()), Some(2));
    assert!(model.requests()[1].messages.last().unwrap().text().contains("there is no tool"));
}

#[test]
fn whoever_installs_it_has_the_last_word_about_its_place() {
    let build = |placed: hart_kernel::Placed| {
        let model = Arc::new(ScriptedModel::new(Vec::<Message>::new()));
        SuperAgent::builder(model).with(placed).build()
    };
    let agent = build(Audit::new(|_| ()).before::<ToolOutputBudget>()).unwrap();
    let chain: Vec<_> = agent.chain().collect();
    assert!(chain.windows(2).any(|pair| pair == ["Audit", "ToolOutputBudget"]), "{chain:?}");
    let error = build(Audit::new(|_| ()).after::<Clarification>()).unwrap_err();
    assert!(matches!(error, BuildError::Chain(_)), "{error}");
}
