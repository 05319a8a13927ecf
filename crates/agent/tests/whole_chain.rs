//! The default chain, all of it, over a long conversation.

use hart_agent::Features;
use hart_testkit::{RecordedRequest, Turn};
use serde_json::json;

use crate::long_world::{LongWorld, Setting, assert_pairs_are_whole, is_summary, padding, summary_of};

const FACT: &str = "the vault code is 7-41-9";
const QUESTION: &str = "What is the code of the vault?";
const WINDOW: u32 = 20_000;

#[tokio::test]
async fn fifty_turns_near_the_window_go_on_and_an_early_fact_can_be_read_back() {
    let setting = Setting { window: Some(WINDOW), features: Features::default(), ..Setting::default() };
    let world = LongWorld::new(setting, agent).await;
    for turn in 1..=50 {
        let text = if turn == 2 { format!("Remember: {FACT}. {}", padding(turn)) } else { padding(turn) };
        world.ask(&text).await.outcome.unwrap();
    }
    let compacted = world.events.of("context_compacted");
    assert!((1..8).contains(&compacted.len()), "{compacted:?}");
    assert!(compacted.iter().all(|event| event["step"] == "summary" && event["reason"] == "budget"));
    let sizes: Vec<usize> = world.turns().iter().map(|request| request.raw.len()).collect();
    let most = sizes.iter().max().unwrap() / 4;
    assert!((WINDOW as usize / 2..WINDOW as usize).contains(&most), "near the window, not beyond: {most}");
    let last = world.turns().pop().unwrap();
    let said = String::from_utf8_lossy(&last.raw);
    assert!(!said.contains(FACT), "the view still has it");
    // The whole chain is there: the user's words are marked, the date is told, the tools are the default ones.
    assert!(said.contains("--- BEGIN USER INPUT ---") && said.contains("<current_date>"), "{said}");
    assert!(last.tool_names().contains(&"ask_clarification"), "{:?}", last.tool_names());

    let report = world.ask(QUESTION).await;
    assert!(report.answer().unwrap().contains(FACT), "{:?}", report.answer());
    assert_eq!(
        report.values.to_json()["title"].as_str().map(|title| title.starts_with("1 word")),
        Some(true)
    );
    world.turns().iter().for_each(|request| assert_pairs_are_whole(request));
    let history = world.history();
    assert_eq!(history.matches(FACT).count(), 1, "as the user said it: {}", history.len());
    assert!(!history.contains("BEGIN USER INPUT"), "markers are for the model");
}

/// Answers shortly; asked for the code, it looks where the summary says that the rest is.
fn agent(request: &RecordedRequest) -> Turn {
    if is_summary(request) {
        return Turn::new().text("## Task\nTalk about many things.");
    }
    if !request.texts_of("user").iter().any(|text| text.contains(QUESTION)) {
        return Turn::new().text(format!("Answer. {}", "And so on. ".repeat(40)));
    }
    let summary = summary_of(request).unwrap();
    let path = summary.split_once("are in ").unwrap().1.split_once(':').unwrap().0;
    let result = |id: &str| request.tool_result(id).map(|result| result.content);
    match (result("g1"), result("r1")) {
        (None, _) => Turn::new().tool_call("g1", "grep", json!({"path": path, "pattern": "vault code"})),
        (Some(found), None) => {
            let line = found.lines().find(|line| line.contains("vault")).unwrap();
            let line: usize = line.split(':').nth(1).unwrap().parse().unwrap();
            Turn::new().tool_call(
                "r1",
                "read_file",
                json!({"path": path, "start_line": line, "end_line": line}),
            )
        }
        (_, Some(read)) => Turn::new().text(format!("I read: {read}")),
    }
}
