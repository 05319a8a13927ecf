use hart_kernel::Toggle;
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};

use super::*;
use crate::approval::InterruptOn;

fn model() -> Arc<dyn ChatModel> {
    Arc::new(hart_models::ScriptedModel::new(Vec::<hart_types::Message>::new()))
}

fn with_sandbox(features: Features) -> (tempfile::TempDir, Features) {
    let home = tempfile::tempdir().unwrap();
    let config = SandboxConfig::default();
    let provider = LocalSandboxProvider::new(config.clone(), home.path().into(), None).unwrap();
    let sandbox = Some(Sandbox::new(Arc::new(provider), config));
    (home, Features { sandbox, ..features })
}

fn names(chain: &[Arc<dyn Middleware>]) -> Vec<&str> {
    chain.iter().map(|middleware| middleware.name()).collect()
}

/// What a subagent may have; whatever speaks to the user, plans, names or delegates is not among it.
const CHILD: [&str; 25] = [
    "EditedToolCall",
    "ToolOutputBudget",
    "UntrustedContent",
    "Pii",
    "ThreadData",
    "Sandbox",
    "DanglingToolCall",
    "ModelError",
    "Guardrail",
    "SandboxAudit",
    "ReadBeforeWrite",
    "ToolError",
    "ToolRetry",
    "DynamicContext",
    "Summarization",
    "ContextEditing",
    "TokenUsage",
    "Budget",
    "ViewImage",
    "ToolSelection",
    "UnsupportedContent",
    "CallLimits",
    "LoopDetection",
    "FinishReason",
    "HumanInTheLoop",
];

fn everything() -> Features {
    let on = || Toggle::On;
    let asked = serde_json::from_value::<InterruptOn>(serde_json::json!({"bash": true})).unwrap();
    Features {
        todo: on(),
        goals: on(),
        tool_retry: on(),
        context_editing: on(),
        tool_selection: on(),
        pii: on(),
        guardrail: on(),
        human_in_the_loop: Some(HumanInTheLoop::new(asked)),
        ..Features::default()
    }
}

#[test]
fn a_subagents_chain_has_this_order() {
    let (_home, features) = with_sandbox(everything());
    let chain = child(&model(), features, true, Vec::new()).unwrap();
    assert_eq!(names(&chain), CHILD);
    let blind = child(&model(), with_sandbox(everything()).1, false, Vec::new()).unwrap();
    assert!(!names(&blind).contains(&"ViewImage"));
}

#[test]
fn a_subagent_has_the_leads_order() {
    let (_home, features) = with_sandbox(everything());
    let chain = lead(&model(), features, None, Vec::new()).unwrap();
    let shared: Vec<&str> = names(&chain).into_iter().filter(|name| CHILD.contains(name)).collect();
    assert_eq!(shared, CHILD);
}

#[test]
fn limits_hold_for_a_subagent_whatever_holds_the_lead() {
    let features = Features { budget: Toggle::Off, ..Features::none() };
    let chain = child(&model(), features, false, Vec::new()).unwrap();
    assert_eq!(names(&chain), ["DanglingToolCall", "Budget"]);
}
