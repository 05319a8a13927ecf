//! The order of the chain is the architecture: it is held here as well as written in `chain.rs`.

use std::sync::Arc;

use hart_agent::Features;
use hart_agent::approval::InterruptOn;
use hart_agent::middleware::{HumanInTheLoop, RemoteSubagents, Skills};
use hart_agent::{RemoteAgents, RemoteError, RemoteStanding};
use hart_kernel::{Toggle, async_trait};

use crate::support::{DIALECTS, World};

#[tokio::test]
async fn the_lead_chain_has_this_order() {
    let world = World::new(DIALECTS[0], []).await;
    let chain: Vec<_> = world.agent.chain().collect();
    let expected = [
        "InputSanitization",
        "ToolOutputBudget",
        "UntrustedContent",
        "ThreadData",
        "Uploads",
        "Sandbox",
        "DanglingToolCall",
        "ModelError",
        "SandboxAudit",
        "ReadBeforeWrite",
        "ToolError",
        "DynamicContext",
        "Summarization",
        "Goals",
        "TokenUsage",
        "Budget",
        "Title",
        "ViewImage",
        "UnsupportedContent",
        "CallLimits",
        "LoopDetection",
        "FinishReason",
        "Clarification",
    ];
    assert_eq!(chain, expected);
}

#[tokio::test]
async fn plan_mode_has_its_place() {
    let features = Features { todo: true.into(), ..Features::default() };
    let world = World::with(DIALECTS[0], [], features).await;
    let chain: Vec<_> = world.agent.chain().collect();
    let at = |name: &str| chain.iter().position(|have| *have == name).unwrap();
    assert!(at("Summarization") < at("Todo") && at("Todo") < at("TokenUsage"), "{chain:?}");
}

#[tokio::test]
async fn delegation_has_its_place() {
    let features = Features { subagents: true.into(), ..Features::default() };
    let world = World::with(DIALECTS[0], [], features).await;
    let chain: Vec<_> = world.agent.chain().collect();
    let at = |name: &str| chain.iter().position(|have| *have == name).unwrap();
    assert!(at("Summarization") < at("Subagents") && at("Subagents") < at("CallLimits"), "{chain:?}");
    assert!(world.agent.tools().iter().any(|tool| tool.name == "task"));
}

#[tokio::test]
async fn the_lead_agent_has_these_tools() {
    let world = World::new(DIALECTS[0], []).await;
    let tools: Vec<_> = world.agent.tools().iter().map(|spec| spec.name.as_str()).collect();
    let expected = [
        "list_uploaded_files",
        "bash",
        "background",
        "ls",
        "glob",
        "grep",
        "read_file",
        "write_file",
        "str_replace",
        "delete",
        "present_files",
        "view_image",
        "ask_clarification",
    ];
    assert_eq!(tools, expected);
}

#[tokio::test]
async fn what_is_switched_off_is_not_in_the_chain() {
    let world = World::with(DIALECTS[0], [], Features::none()).await;
    let chain: Vec<_> = world.agent.chain().collect();
    assert_eq!(chain, ["Sandbox", "DanglingToolCall", "Clarification"]);
}

async fn everything() -> Vec<String> {
    let on = || Toggle::On;
    let asked = serde_json::from_value::<InterruptOn>(serde_json::json!({"bash": true})).unwrap();
    let features = Features {
        todo: on(),
        goals: on(),
        subagents: on(),
        remote_subagents: Some(RemoteSubagents::new(Arc::new(Nobody))),
        tool_retry: on(),
        context_editing: on(),
        tool_selection: on(),
        pii: on(),
        guardrail: on(),
        skills: Some(Skills::default()),
        human_in_the_loop: Some(HumanInTheLoop::new(asked)),
        ..Features::default()
    };
    let world = World::with(DIALECTS[0], [], features).await;
    world.agent.chain().map(str::to_owned).collect()
}

fn guide() -> String {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/middleware.md");
    std::fs::read_to_string(page).unwrap()
}

#[tokio::test]
async fn the_guide_lists_the_chain_in_its_order() {
    let (page, chain) = (guide(), everything().await);
    let table = page.split("\n## ").find(|part| part.starts_with("The chain")).unwrap();
    let name = |row: &str| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    assert_eq!(table.lines().filter_map(name).collect::<Vec<_>>(), chain);
}

/// `SkillActivation` is not missing where there is a middleware `Skills`.
#[tokio::test]
async fn what_the_guide_says_is_missing_is_missing() {
    let (page, chain) = (guide(), everything().await);
    let rows = page.lines().filter_map(|row| row.strip_prefix("| ")?.split_once(" | "));
    let missing: Vec<&str> = rows
        .filter(|(_, here)| here.starts_with("not there"))
        .filter_map(|(there, _)| there.split([' ', '`', ',']).find(|word| word.contains(char::is_uppercase)))
        .collect();
    assert!(missing.contains(&"ToolProgress"), "{missing:?}");
    for name in missing {
        let same = |have: &&String| name.starts_with(have.trim_end_matches('s')) || have.starts_with(name);
        assert_eq!(chain.iter().find(same), None, "{name}");
    }
}

/// There are no servers.
struct Nobody;

#[async_trait]
impl RemoteAgents for Nobody {
    fn agents(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    async fn start(&self, _: &str, _: &str, _: &str) -> Result<String, RemoteError> {
        Err(RemoteError("nobody is there".into()))
    }
    async fn newest(&self, _: &str, _: &str) -> Result<Option<String>, RemoteError> {
        Ok(None)
    }
    async fn check(&self, _: &str, _: &str, _: &str) -> Result<RemoteStanding, RemoteError> {
        Err(RemoteError("nobody is there".into()))
    }
    async fn update(&self, _: &str, _: &str, _: &str) -> Result<String, RemoteError> {
        Err(RemoteError("nobody is there".into()))
    }
    async fn cancel(&self, _: &str, _: &str, _: &str) -> Result<(), RemoteError> {
        Ok(())
    }
}
