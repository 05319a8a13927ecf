//! What happens to a long conversation when there is no summary, or no end to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hart_kernel::{ModelErrorKind, RunError, Update};
use hart_testkit::{Dialect, RecordedRequest, Turn};
use hart_types::Message;
use serde_json::json;

use crate::long_world::{
    LongWorld, Setting, assert_pairs_are_whole, is_summary, padding, summary_of, talkative,
};

#[tokio::test]
async fn a_provider_that_finds_it_too_long_is_asked_again_with_less() {
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        // The window is not known, and the provider takes 40 000 bytes.
        let world = LongWorld::new(Setting { dialect, window: None, ..Setting::default() }, |request| {
            if request.raw.len() > 40_000 {
                return Turn::status(400).message("prompt is too long: 11000 tokens > 10000 maximum");
            }
            talkative(request)
        })
        .await;
        for turn in 1..=60 {
            world.ask(&padding(turn)).await.outcome.unwrap();
        }
        let compacted = world.events.of("context_compacted");
        assert_eq!(compacted[0]["reason"], "overflow", "{compacted:?}");
        let refused = world.turns().iter().filter(|request| request.raw.len() > 40_000).count();
        assert_eq!(refused, 1, "what the provider does not take was not learnt: {compacted:?}");
    }
}

#[tokio::test]
async fn without_a_summary_the_ladder_gets_the_next_call_through() {
    type Answer = fn() -> Turn;
    let answers: [(&str, Answer); 4] = [
        ("fails", || Turn::status(400).message("no")),
        ("refuses", || Turn::new().text("I'm sorry, but I can't help with that.")),
        ("says nothing", || Turn::new().text("")),
        ("finds it too long", || Turn::status(400).message("prompt is too long")),
    ];
    for (what, answer) in answers {
        let world = LongWorld::new(Setting::default(), move |request| {
            if is_summary(request) { answer() } else { talkative(request) }
        })
        .await;
        for turn in 1..=40 {
            world.ask(&padding(turn)).await.outcome.unwrap();
        }
        let compacted = world.events.of("context_compacted");
        assert!(
            compacted.iter().all(|event| event["step"] == "extract") && !compacted.is_empty(),
            "{what}: {compacted:?}"
        );
        assert!(world.turns().iter().all(|request| request.raw.len() / 4 < 12_000), "{what}");
        let summary = summary_of(&world.server.last_request()).unwrap();
        assert!(summary.contains("The user said:") && !summary.contains("sorry"), "{what}: {summary}");
        assert!(world.summaries().len() <= compacted.len(), "{what}: asked again and again");
    }
}

#[tokio::test]
async fn old_tool_output_is_the_first_to_go_without_a_summary() {
    let calls = Arc::new(AtomicUsize::new(0));
    let world = LongWorld::new(Setting::default(), move |request| {
        if is_summary(request) {
            return Turn::new().text("");
        }
        match calls.fetch_add(1, Ordering::Relaxed) {
            30 => Turn::new().text("done"),
            n => Turn::new().tool_call(
                format!("c{n}"),
                "bash",
                json!({"command": format!("seq {n} {}", n + 300)}),
            ),
        }
    })
    .await;
    world.ask("print").await.outcome.unwrap();
    let compacted = world.events.of("context_compacted");
    assert_eq!(compacted[0]["step"], "results", "{compacted:?}");
    let elided = |request: &&Arc<RecordedRequest>| {
        let first = request.tool_result("c0").map(|result| result.content).unwrap_or_default();
        first.starts_with("[1")
            && first.contains("of old tool output left out; it is in /conversation_history/")
    };
    assert!(world.turns().iter().filter(elided).count() > 3);
    world.turns().iter().for_each(|request| assert_pairs_are_whole(request));
    assert!(world.history().contains("\n300\n"));
}

#[tokio::test]
async fn what_never_fits_ends_in_a_clear_error_after_a_few_attempts() {
    let world = LongWorld::new(Setting { window: None, ..Setting::default() }, |_| {
        Turn::status(400).message("prompt is too long")
    })
    .await;
    let history: Vec<Message> = (0..20).map(|n| Message::human(padding(n))).collect();
    let report = world.run(Update::none().messages(history)).await;
    let Err(RunError::Model(error)) = report.outcome else { panic!("{:?}", report.outcome) };
    assert!(matches!(error.kind, ModelErrorKind::ContextOverflow { .. }));
    assert!(error.to_string().contains("made as short as it can be"), "{error}");
    let sizes: Vec<_> = world.turns().iter().map(|request| request.raw.len()).collect();
    assert!((3..=6).contains(&sizes.len()), "{sizes:?}");
    assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]), "an attempt was no shorter: {sizes:?}");
}

#[tokio::test]
async fn one_message_that_is_too_long_by_itself_is_shown_shortened() {
    let world = LongWorld::new(Setting::default(), |request| {
        if request.raw.len() / 4 > 12_000 {
            Turn::status(400).message("prompt is too long")
        } else {
            talkative(request)
        }
    })
    .await;
    let text = format!("BEGIN {} END", "filler ".repeat(20_000));
    let report = world.ask(&text).await;
    report.outcome.as_ref().unwrap();
    let shown = world.server.last_request().texts_of("user").pop().unwrap();
    assert!(
        shown.starts_with("BEGIN") && shown.ends_with("END") && shown.contains("characters left out to fit")
    );
    assert_eq!(report.state().messages().get(0).unwrap().text(), text, "the thread has all of it");
}

#[tokio::test]
async fn where_nothing_more_can_be_done_it_is_not_tried_at_every_call() {
    // The prompt and the tools alone are above the trigger.
    let setting = || Setting {
        summarization: json!({"trigger": {"tokens": 100}, "keep": {"messages": 2}}),
        ..Setting::default()
    };
    let world = LongWorld::new(setting(), talkative).await;
    for turn in 1..=10 {
        world.ask(&format!("short {turn}")).await.outcome.unwrap();
    }
    let compacted = world.events.of("context_compacted");
    assert!(compacted.len() <= 2, "{compacted:?}");
    assert!(world.summaries().len() <= 4, "the summariser was asked {} times", world.summaries().len());
}
