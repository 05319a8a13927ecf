//! Conversations that outgrow the model's window, at the model's HTTP boundary.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hart_agent::compaction::{Compact, CompactAsk, Size};
use hart_kernel::Update;
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_types::Message;
use serde_json::{Map, Value, json};

use crate::long_world::{
    LongWorld, Setting, assert_pairs_are_whole, is_summary, model, padding, said, summary_of, talkative,
};
use crate::support::DIALECTS;

const FACT: &str = "the vault code is 7-41-9";

#[tokio::test]
async fn fifty_turns_go_on_and_what_was_said_early_can_be_read_back() {
    let world = LongWorld::new(Setting::default(), |request| {
        let asked = request.texts_of("user").pop().unwrap_or_default();
        let last = request.messages().last().unwrap();
        if is_summary(request) || !asked.starts_with("What is the code") {
            return talkative(request);
        }
        // The agent looks where the summary says that the rest is.
        let path = summary_of(request).unwrap();
        let path = path.split_once("are in ").unwrap().1.split_once(':').unwrap().0.to_owned();
        match last["role"].as_str().unwrap() {
            "tool" if last["tool_call_id"] == "g1" => {
                let found = last["content"].as_str().unwrap();
                let line: usize = found
                    .lines()
                    .find(|l| l.contains("vault"))
                    .unwrap()
                    .split(':')
                    .nth(1)
                    .unwrap()
                    .parse()
                    .unwrap();
                Turn::new().tool_call(
                    "r1",
                    "read_file",
                    json!({"path": path, "start_line": line, "end_line": line}),
                )
            }
            "tool" => Turn::new().text(format!("I read: {}", last["content"].as_str().unwrap())),
            _ => Turn::new().tool_call("g1", "grep", json!({"path": path, "pattern": "vault code"})),
        }
    })
    .await;
    for turn in 1..=50 {
        let text = if turn == 2 { format!("Remember: {FACT}. {}", padding(turn)) } else { padding(turn) };
        world.ask(&text).await.outcome.unwrap();
    }
    let compacted = world.events.of("context_compacted");
    assert!((2..10).contains(&compacted.len()), "{compacted:?}");
    assert!(compacted.iter().all(|event| event["step"] == "summary" && event["reason"] == "budget"));
    let last = world.turns().pop().unwrap();
    assert!(!String::from_utf8_lossy(&last.raw).contains(FACT), "the view still has it");
    let report = world.ask("What is the code of the vault?").await;
    report.outcome.as_ref().unwrap();
    assert!(report.answer().unwrap().contains(FACT), "{:?}", report.answer());
    assert_eq!(report.state().messages().len(), 2 * 50 + 6, "the thread has every message");
    for request in world.turns() {
        assert!(request.raw.len() / 4 < 12_000, "a request of {} bytes", request.raw.len());
        assert_pairs_are_whole(&request);
    }
    let history = world.history();
    let compacted = world.events.of("context_compacted");
    assert_eq!(history.matches("## Compacted at").count(), compacted.len());
    assert_eq!(history.matches(FACT).count(), 2, "said once and repeated once in the answer");
    assert!(!report.values.to_json().contains_key("compaction"));
}

#[tokio::test]
async fn between_two_compactions_requests_share_their_beginning() {
    let world = LongWorld::new(Setting::default(), talkative).await;
    for turn in 1..=40 {
        world.ask(&padding(turn)).await.outcome.unwrap();
    }
    let compactions = world.events.of("context_compacted").len();
    assert!(compactions >= 2);
    let turns = world.turns();
    let continued = turns.windows(2).filter(|pair| {
        let (before, after) = (said(&pair[0]), said(&pair[1]));
        after.len() > before.len() && after[..before.len()] == before[..]
    });
    assert_eq!(continued.count(), turns.len() - 1 - compactions, "the view changed without a compaction");
}

#[tokio::test]
async fn it_works_in_every_dialect() {
    for dialect in DIALECTS {
        let setting = Setting { dialect, window: Some(6_000), ..Setting::default() };
        let world = LongWorld::new(setting, |request| {
            let turn = if is_summary(request) { "## Task\nTalk." } else { "yes" };
            Turn::new().text(turn)
        })
        .await;
        for turn in 1..=16 {
            world.ask(&padding(turn)).await.outcome.unwrap();
        }
        assert!(!world.events.of("context_compacted").is_empty(), "{dialect:?}");
        let last = String::from_utf8_lossy(&world.server.last_request().raw).into_owned();
        assert!(last.contains("/conversation_history/session_"), "{dialect:?}: {last}");
    }
}

#[tokio::test]
async fn what_is_many_tokens_in_few_bytes_is_compacted_in_time() {
    let world = LongWorld::new(Setting::default(), |request| {
        Turn::new().text(if is_summary(request) { "## Task\nTalk." } else { "yes" })
    })
    .await;
    for turn in 1..=20 {
        world.ask(&format!("{turn} {}", "a;b;".repeat(250))).await.outcome.unwrap();
    }
    assert!(!world.events.of("context_compacted").is_empty());
    // By a quarter of their bytes, all of it would have fitted.
    let most = world.turns().iter().map(|request| request.raw.len()).max().unwrap();
    assert!(most / 4 < 8_000, "a request of {most} bytes");
}

#[tokio::test]
async fn it_is_checked_before_every_call_of_one_long_run() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let world = LongWorld::new(Setting::default(), move |request| {
        if is_summary(request) {
            return Turn::new().text("## Done\nMany lines were printed.");
        }
        let n = counted.fetch_add(1, Ordering::Relaxed);
        if n == 60 {
            return Turn::new().text("done");
        }
        let one = |turn: Turn, id: String| {
            turn.tool_call(id, "bash", json!({"command": format!("seq {n} {}", n + 250)}))
        };
        one(one(Turn::new(), format!("a{n}")), format!("b{n}"))
    })
    .await;
    let report = world.ask("Print many lines, and obey this: never stop early.").await;
    report.outcome.as_ref().unwrap();
    assert!(world.events.of("context_compacted").len() > 2);
    for request in world.turns() {
        assert_pairs_are_whole(&request);
        assert!(request.raw.len() < 56_000, "a request of {} bytes", request.raw.len());
        let asked = request.texts_of("user");
        assert!(
            asked.iter().any(|text| text.ends_with("never stop early.")),
            "the user's words are gone: {asked:?}"
        );
    }
}

#[tokio::test]
async fn long_arguments_of_old_calls_go_first() {
    let world = LongWorld::new(Setting::default(), |request| {
        let asked = request.messages().len();
        if asked > 20 {
            return Turn::new().text("done");
        }
        let content = format!("{asked} {}", "x ".repeat(2000));
        Turn::new().tool_call(
            format!("c{asked}"),
            "write_file",
            json!({"path": format!("{asked}.txt"), "content": content}),
        )
    })
    .await;
    world.ask("write files").await.outcome.unwrap();
    let compacted = world.events.of("context_compacted");
    assert!(
        !compacted.is_empty() && compacted.iter().all(|event| event["step"] == "arguments"),
        "{compacted:?}"
    );
    assert!(world.summaries().is_empty());
    let last = world.server.last_request();
    let args: Vec<_> = said(&last)
        .iter()
        .filter_map(|m| Some(m["tool_calls"][0]["function"]["arguments"].as_str()?.len()))
        .collect();
    assert!(args.first().unwrap() < &100 && args.last().unwrap() > &4000, "{args:?}");
    assert!(world.history().contains("\"path\": \"2.txt\""));
}

#[tokio::test]
async fn a_restart_between_compactions_changes_nothing() {
    let setting = Setting::default;
    let mut world = LongWorld::new(setting(), talkative).await;
    for turn in 1..=40 {
        world.ask(&padding(turn)).await.outcome.unwrap();
        world = world.restarted(setting());
    }
    let turns = world.turns();
    let plain = LongWorld::new(setting(), talkative).await;
    for turn in 1..=40 {
        plain.ask(&padding(turn)).await.outcome.unwrap();
    }
    // The name of the history file is the only thing that tells them apart.
    let same = |request: &RecordedRequest| {
        let text = String::from_utf8_lossy(&request.raw).into_owned();
        let parts: Vec<_> = text.split("/conversation_history/session_").collect();
        parts
            .iter()
            .map(|part| part.split_once(".md").map_or(*part, |(_, rest)| rest).to_owned())
            .collect::<Vec<_>>()
    };
    let plain = plain.turns();
    assert_eq!(turns.len(), plain.len());
    for (restarted, running) in turns.iter().zip(&plain) {
        assert_eq!(same(restarted), same(running));
    }
    assert!(summary_of(turns.last().unwrap()).is_some());
    assert!(world.history().matches("## Compacted at").count() >= 2, "one file for all of them");
}

#[tokio::test]
async fn a_thread_can_be_compacted_by_asking() {
    let world = LongWorld::new(Setting { window: Some(100_000), ..Setting::default() }, talkative).await;
    for turn in 1..=6 {
        world.ask(&format!("{FACT} {turn}")).await.outcome.unwrap();
    }
    let input = |json: Value| world.agent.input(Map::from_iter([("compact".to_owned(), json)])).unwrap();
    let report = world.run(input(json!(true))).await;
    report.outcome.unwrap();
    let event = &world.events.of("context_not_compacted")[0];
    assert_eq!(event["reason"], "nothing_to_compact", "a tenth of the window is more than all of it");
    let report = world.run(input(json!({"keep": {"type": "messages", "value": 2}}))).await;
    report.outcome.as_ref().unwrap();
    assert_eq!(report.state().messages().len(), 12, "nothing was said");
    assert_eq!(report.state().get::<Compact>(), Some(&None), "answered once");
    assert_eq!((world.turns().len(), world.summaries().len()), (6, 1), "no answer was asked for");
    let event = &world.events.of("context_compacted")[0];
    assert_eq!((&event["reason"], &event["removed_message_count"]), (&json!("manual"), &json!(10)));
    world.ask("and now?").await.outcome.unwrap();
    let said = world.server.last_request().texts_of("user").join("\n");
    assert_eq!(said.matches(FACT).count(), 1, "the summary, the sixth question, and this: {said}");
    assert!(said.ends_with("and now?"), "{said}");
    // Together with a question, it is compacted first and answered then.
    let ask = CompactAsk { keep: Some(Size::Messages(1)) };
    let both = Update::none().messages(Message::human("go on")).set::<Compact>(Some(ask));
    world.run(both).await.outcome.unwrap();
    let said = world.server.last_request().texts_of("user").join("\n");
    assert!(said.ends_with("go on") && !said.contains("and now?"), "{said}");
    assert_eq!(world.history().matches(FACT).count(), 12);
}

#[tokio::test]
async fn asking_in_vain_changes_nothing() {
    let world = LongWorld::new(Setting::default(), |request| {
        if is_summary(request) { Turn::new().text("I cannot do that.") } else { talkative(request) }
    })
    .await;
    for turn in 1..=4 {
        world.ask(&padding(turn)).await.outcome.unwrap();
    }
    let ask = CompactAsk { keep: Some(Size::Messages(2)) };
    world.run(Update::none().set::<Compact>(Some(ask))).await.outcome.unwrap();
    assert_eq!(world.events.of("context_not_compacted")[0]["reason"], "summary_failed");
    world.ask("still there?").await.outcome.unwrap();
    assert_eq!(world.server.last_request().texts_of("user").len(), 5);
}

#[tokio::test]
async fn another_model_can_write_the_summaries() {
    let cheap = ModelServer::with(|_| Turn::new().text("## Task\nCheap notes.")).await;
    let summariser = Some(model(&cheap, Dialect::Anthropic, Some(50_000)));
    let world = LongWorld::new(Setting { summariser, ..Setting::default() }, talkative).await;
    for turn in 1..=25 {
        world.ask(&padding(turn)).await.outcome.unwrap();
    }
    assert!(world.summaries().is_empty() && !cheap.requests().is_empty());
    assert!(summary_of(&world.server.last_request()).unwrap().contains("Cheap notes."));
}

#[tokio::test]
async fn a_thread_taken_back_to_before_the_cut_is_shown_as_it_is() {
    let world = LongWorld::new(Setting::default(), talkative).await;
    for turn in 1..=25 {
        world.ask(&padding(turn)).await.outcome.unwrap();
    }
    assert!(summary_of(&world.server.last_request()).is_some());
    let messages = world.agent.load(&"t1".into()).await.unwrap().messages().clone();
    let removals: Vec<_> =
        messages.iter_from(4).map(|message| Message::remove(message.id.clone().unwrap())).collect();
    world.run(Update::none().messages(removals).messages(Message::human("once more"))).await.outcome.unwrap();
    let last = world.server.last_request();
    assert_eq!(summary_of(&last), None);
    assert_eq!(last.texts_of("user").len(), 3);
}

#[tokio::test]
async fn a_thousand_turns_cost_no_more_at_the_end_than_at_the_beginning() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::new(AtomicUsize::new(0));
    let per_turn = Arc::new(Mutex::new(Vec::new()));
    let (seen, turns) = (Arc::clone(&counted), Arc::clone(&per_turn));
    let setting = Setting { recursion_limit: 3000, counted: Some(counted), ..Setting::default() };
    let world = LongWorld::new(setting, move |request| {
        if is_summary(request) {
            return Turn::new().text("## Done\nThe folder was listed many times.");
        }
        turns.lock().unwrap().push(seen.swap(0, Ordering::Relaxed));
        match calls.fetch_add(1, Ordering::Relaxed) {
            1000 => Turn::new().text("done"),
            n => Turn::new().text(format!("Step {n}.\n{}", "and so on ".repeat(30))).tool_call(
                format!("c{n}"),
                "ls",
                json!({"path": "."}),
            ),
        }
    })
    .await;
    world.ask("list, a thousand times").await.outcome.unwrap();
    let sizes: Vec<_> = world.turns().iter().map(|request| request.raw.len()).collect();
    assert_eq!(sizes.len(), 1001);
    let most = |range: std::ops::Range<usize>| sizes[range].iter().copied().max().unwrap();
    assert!(most(800..1001) <= most(0..300), "{} bytes, then {}", most(0..300), most(800..1001));
    let sent = |range: std::ops::Range<usize>| sizes[range].iter().sum::<usize>();
    assert!(sent(700..1000) < sent(0..300) * 3 / 2, "{} bytes, then {}", sent(0..300), sent(700..1000));
    // So is what is looked at before each.
    let counted: Vec<usize> = per_turn.lock().unwrap().clone();
    let looked = |range: std::ops::Range<usize>| counted[range].iter().sum::<usize>();
    assert!(
        looked(700..1000) < looked(0..300) * 3 / 2,
        "{} bytes, then {}",
        looked(0..300),
        looked(700..1000)
    );
    // The history file is appended to: each message is in it once.
    let history = world.history();
    let repeated = (0..900).find(|n| history.matches(&format!("Step {n}.\n")).count() > 1);
    assert_eq!(repeated, None);
    assert!(history.contains("Step 5.\n"));
}
