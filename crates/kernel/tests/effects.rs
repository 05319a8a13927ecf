//! Calls that are cut off: made again, taken from the journal, or said to be unknown.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hart_kernel::*;
use hart_types::{Message, Resume, ToolCallId, ToolStatus};
use serde_json::{Map, Value, json};

use crate::support::*;

#[derive(Default)]
struct MemoryJournal(Mutex<Vec<Begun>>);

#[async_trait]
impl Journal for MemoryJournal {
    async fn recall(&self) -> Result<Vec<Begun>, CheckpointError> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn begin(&self, begun: Begun) -> Result<(), CheckpointError> {
        self.0.lock().unwrap().push(begun);
        Ok(())
    }

    async fn finish(&self, key: &EffectKey, outcome: Value) -> Result<(), CheckpointError> {
        let mut all = self.0.lock().unwrap();
        all.iter_mut().find(|begun| begun.key == *key).unwrap().outcome = Some(outcome);
        Ok(())
    }

    async fn withdraw(&self, key: &EffectKey) -> Result<(), CheckpointError> {
        self.0.lock().unwrap().retain(|begun| begun.key != *key);
        Ok(())
    }
}

/// Notes in the state, as tools do that hand over files.
struct Sent;

impl StateKey for Sent {
    type Value = Vec<String>;
    type Update = Vec<String>;
    const NAME: &'static str = "sent";

    fn reduce(current: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        Ok(current.into_iter().flatten().chain(update).collect())
    }
}

/// The world: what was really sent, under which key, and what the tool is to find when it looks.
#[derive(Default)]
struct World {
    sent: Mutex<Vec<(String, String)>>,
    settled: Mutex<usize>,
    seen: Mutex<Vec<usize>>,
    found: Mutex<BTreeMap<String, bool>>,
    asks_first: AtomicBool,
    journal: Arc<MemoryJournal>,
}

struct Send {
    spec: Arc<ToolSpec>,
    world: Arc<World>,
}

#[async_trait]
impl Tool for Send {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn asks_first(&self) -> bool {
        self.world.asks_first.load(Ordering::Relaxed)
    }

    async fn call(&self, cx: &ToolContext<'_>, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let to = args["to"].as_str().unwrap().to_owned();
        if to == "ask" {
            cx.interrupt(Interrupt::new(cx.call_id.as_str(), "May I?"))?;
        }
        let key = cx.effect.map(|key| key.as_str().to_owned()).unwrap_or_default();
        if self.spec.effect != Effect::Pure {
            let begun = self.world.journal.0.lock().unwrap().clone();
            let own = begun.iter().find(|begun| begun.key.as_str() == key).expect("written down before");
            assert!(own.outcome.is_none());
        }
        self.world.seen.lock().unwrap().push(cx.state.get::<Sent>().map_or(0, Vec::len));
        self.world.sent.lock().unwrap().push((to.clone(), key));
        let update = Update::none().set::<Sent>(vec![to.clone()]);
        Ok(ToolOutput { command: update.into(), ..format!("sent to {to}").into() })
    }

    async fn foresee(&self, _: &ToolContext<'_>, args: &Map<String, Value>) -> Option<Value> {
        Some(json!({"noted": args["to"]}))
    }

    async fn reconcile(
        &self,
        _: &ToolContext<'_>,
        args: &Map<String, Value>,
        foreseen: Option<&Value>,
    ) -> Reconciled {
        assert_eq!(foreseen, Some(&json!({"noted": args["to"]})));
        let to = args["to"].as_str().unwrap();
        match self.world.found.lock().unwrap().get(to) {
            Some(true) => Reconciled::Done(format!("found sent to {to}").into()),
            Some(false) => Reconciled::NotDone,
            None => Reconciled::Unknown,
        }
    }

    async fn settled(&self, _: &ToolContext<'_>) {
        *self.world.settled.lock().unwrap() += 1;
    }
}

fn agent(world: &Arc<World>, effect: Effect, model: Arc<dyn ChatModel>, log: &Arc<MemoryLog>) -> Agent {
    let spec = ToolSpec {
        name: "send".into(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        effect,
    };
    let send: Arc<dyn Tool> = Arc::new(Send { spec: Arc::new(spec), world: Arc::clone(world) });
    Agent::builder(model).tools([send]).state::<Sent>().checkpointer(log.clone()).build().unwrap()
}

fn context(world: &World, attempt: u32) -> RunContext {
    let mut cx = cx();
    (cx.run_id, cx.attempt) = ("the-run".into(), attempt);
    cx.journal = Some(Arc::clone(&world.journal) as Arc<dyn Journal>);
    cx
}

/// The run that brings the answer.
fn answering(world: &World, attempt: u32) -> RunContext {
    let mut cx = context(world, attempt);
    cx.run_id = "the-answer".into();
    cx
}

fn batch(to: &[&str]) -> Message {
    let list: Vec<_> = to.iter().map(|to| (*to, "send", json!({"to": to}))).collect();
    calls(&list)
}

/// What is written down before a call of the run.
fn begun(to: &str) -> Begun {
    let args = json!({"to": to});
    let (run, id) = ("the-run".into(), to.into());
    let key = EffectKey::new(&run, &id, "send", args.as_object().unwrap());
    Begun { key, tool: "send".into(), call: id, foreseen: Some(json!({"noted": to})), outcome: None }
}

fn results(report: &RunReport) -> Vec<(ToolStatus, String)> {
    let messages = report.state().messages();
    let tools = messages.iter().filter_map(|m| m.as_tool_result().map(|result| (result.status, m.text())));
    tools.collect()
}

/// A run that was cut off while its calls were made: the log ends before their results, and the journal holds what
/// `kept` leaves of it.
async fn cut_off(
    world: &Arc<World>,
    effect: Effect,
    to: &[&str],
    kept: impl Fn(&mut Begun),
) -> Arc<MemoryLog> {
    let log: Arc<MemoryLog> = Arc::default();
    let first = agent(world, effect, script([batch(to), say("done")]), &log);
    first.run(ask("go"), &context(world, 1)).await.outcome.unwrap();
    log.0.lock().unwrap().get_mut("t1").unwrap().truncate(3);
    world.journal.0.lock().unwrap().iter_mut().for_each(kept);
    world.sent.lock().unwrap().clear();
    world.seen.lock().unwrap().clear();
    log
}

async fn again(world: &Arc<World>, effect: Effect, log: &Arc<MemoryLog>) -> RunReport {
    agent(world, effect, script([say("done")]), log).run(ask("go"), &context(world, 2)).await
}

fn sent(world: &World) -> Vec<String> {
    world.sent.lock().unwrap().iter().map(|(to, _)| to.clone()).collect()
}

#[tokio::test]
async fn what_is_in_the_journal_is_not_done_again() {
    for effect in [Effect::Once, Effect::Idempotent] {
        let world = Arc::default();
        let log = cut_off(&world, effect, &["a", "b"], |_| {}).await;
        let report = again(&world, effect, &log).await;
        assert_eq!(
            results(&report),
            [(ToolStatus::Success, "sent to a".into()), (ToolStatus::Success, "sent to b".into())]
        );
        assert_eq!(
            report.state().get::<Sent>().unwrap(),
            &["a", "b"],
            "what it wrote to the state is kept, too"
        );
        assert!(sent(&world).is_empty(), "{effect:?}");
    }
}

#[tokio::test]
async fn a_call_that_was_begun_is_made_again_only_where_that_changes_nothing() {
    for effect in [Effect::Pure, Effect::Idempotent] {
        let world = Arc::default();
        let log = cut_off(&world, effect, &["a"], |begun| begun.outcome = None).await;
        let before = world.journal.0.lock().unwrap().clone();
        let report = again(&world, effect, &log).await;
        assert_eq!(results(&report)[0], (ToolStatus::Success, "sent to a".into()));
        assert_eq!(sent(&world), ["a"]);
        if effect == Effect::Pure {
            assert!(before.is_empty(), "what changes nothing is not written down");
        } else {
            assert_eq!(world.sent.lock().unwrap()[0].1, before[0].key.as_str(), "under the same key");
        }
    }
}

#[tokio::test]
async fn a_call_that_must_not_be_made_twice_is_unknown_and_everybody_is_told() {
    let world = Arc::default();
    let log = cut_off(&world, Effect::Once, &["a", "b"], |begun| {
        if begun.call.as_str() == "a" {
            begun.outcome = None;
        }
    })
    .await;
    let ears = Arc::new(Ears::default());
    let agent = agent(&world, Effect::Once, script([say("done")]), &log);
    let cx = context(&world, 2).with_events(ears.clone());
    let report = agent.run(ask("go"), &cx).await;
    let results = results(&report);
    assert_eq!(results[0].0, ToolStatus::Error);
    assert!(results[0].1.contains("not known whether it took effect"), "{}", results[0].1);
    assert_eq!(results[1], (ToolStatus::Success, "sent to b".into()));
    assert!(sent(&world).is_empty());
    let told = ears.0.lock().unwrap();
    let custom = told.iter().find_map(|event| match event {
        AgentEvent::Custom(data) => Some(data.clone()),
        _ => None,
    });
    assert_eq!(custom.unwrap()["type"], "effect_unknown");
    assert_eq!(report.outcome.unwrap(), Ended::Finished, "the model goes on and may decide");
}

#[tokio::test]
async fn a_tool_that_can_look_finds_out() {
    let world: Arc<World> = Arc::default();
    let log = cut_off(&world, Effect::Once, &["a", "b"], |begun| begun.outcome = None).await;
    world.found.lock().unwrap().extend([("a".to_owned(), true), ("b".to_owned(), false)]);
    let report = again(&world, Effect::Once, &log).await;
    let texts: Vec<_> = results(&report).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["found sent to a", "sent to b"]);
    assert_eq!(sent(&world), ["b"]);
}

#[tokio::test]
async fn the_calls_that_are_made_again_see_what_the_others_wrote() {
    let world: Arc<World> = Arc::default();
    let log = cut_off(&world, Effect::Idempotent, &["a", "b", "c"], |begun| {
        if begun.call.as_str() == "c" {
            begun.outcome = None;
        }
    })
    .await;
    again(&world, Effect::Idempotent, &log).await;
    assert_eq!(*world.seen.lock().unwrap(), [2]);
}

/// The journal keeps the effects of the whole run; those of batches that are in the log are in the state already.
#[tokio::test]
async fn what_earlier_batches_wrote_is_seen_once() {
    let world: Arc<World> = Arc::default();
    let log: Arc<MemoryLog> = Arc::default();
    let model = script([batch(&["a"]), batch(&["b"]), say("done")]);
    let first = agent(&world, Effect::Idempotent, model, &log);
    first.run(ask("go"), &context(&world, 1)).await.outcome.unwrap();
    log.0.lock().unwrap().get_mut("t1").unwrap().truncate(5);
    world.journal.0.lock().unwrap()[1].outcome = None;
    world.seen.lock().unwrap().clear();
    let report = again(&world, Effect::Idempotent, &log).await;
    assert_eq!(*world.seen.lock().unwrap(), [1]);
    assert_eq!(report.state().get::<Sent>().unwrap(), &["a", "b"]);
}

#[tokio::test]
async fn a_call_that_asks_has_not_begun() {
    let world: Arc<World> = Arc::default();
    let log: Arc<MemoryLog> = Arc::default();
    let first = agent(&world, Effect::Once, script([batch(&["ask"])]), &log);
    let report = first.run(ask("go"), &context(&world, 1)).await;
    assert_eq!(report.outcome.unwrap(), Ended::Paused);
    assert!(world.journal.0.lock().unwrap().is_empty());
}

/// A crash may come between the intent and the question, or before the intent is withdrawn.
#[tokio::test]
async fn a_call_that_was_cut_off_before_it_could_ask_asks() {
    for asks_first in [true, false] {
        let world: Arc<World> = Arc::default();
        world.asks_first.store(asks_first, Ordering::Relaxed);
        let log: Arc<MemoryLog> = Arc::default();
        let first = agent(&world, Effect::Once, script([batch(&["ask"])]), &log);
        first.run(ask("go"), &context(&world, 1)).await.outcome.unwrap();
        log.0.lock().unwrap().get_mut("t1").unwrap().truncate(3);
        world.journal.0.lock().unwrap().push(begun("ask"));
        let report = again(&world, Effect::Once, &log).await;
        let journal = world.journal.0.lock().unwrap().clone();
        if asks_first {
            assert_eq!(report.outcome.unwrap(), Ended::Paused);
            assert!(journal.is_empty(), "it is withdrawn after all");
        } else {
            assert!(
                results(&report)[0].1.contains("not known"),
                "nobody can know what it did before it asked"
            );
        }
        assert!(sent(&world).is_empty());
    }
}

/// With the answer it went on to what it had asked for.
#[tokio::test]
async fn a_call_that_was_cut_off_behind_its_answer_is_unknown() {
    let world: Arc<World> = Arc::default();
    world.asks_first.store(true, Ordering::Relaxed);
    let log: Arc<MemoryLog> = Arc::default();
    let first = agent(&world, Effect::Once, script([batch(&["ask"])]), &log);
    first.run(ask("go"), &context(&world, 1)).await.outcome.unwrap();
    let paused = log.0.lock().unwrap()["t1"].len();
    let answer = || RunInput::from(Resume::One(json!("yes")));
    let second = agent(&world, Effect::Once, script([say("done")]), &log);
    second.run(answer(), &answering(&world, 1)).await.outcome.unwrap();
    assert_eq!(sent(&world), ["ask"]);
    log.0.lock().unwrap().get_mut("t1").unwrap().truncate(paused);
    world.journal.0.lock().unwrap().iter_mut().for_each(|begun| begun.outcome = None);
    let third = agent(&world, Effect::Once, script([say("done")]), &log);
    let report = third.run(answer(), &answering(&world, 2)).await;
    assert!(results(&report)[0].1.contains("not known whether it took effect"));
    assert_eq!(sent(&world), ["ask"]);
}

#[tokio::test]
async fn outcomes_are_settled_before_the_step_and_keys_differ_by_call() {
    let world: Arc<World> = Arc::default();
    let log: Arc<MemoryLog> = Arc::default();
    let model =
        script([calls(&[("1", "send", json!({"to": "x"})), ("2", "send", json!({"to": "x"}))]), say("done")]);
    agent(&world, Effect::Once, model, &log).run(ask("go"), &context(&world, 1)).await.outcome.unwrap();
    assert_eq!(*world.settled.lock().unwrap(), 2);
    let begun = world.journal.0.lock().unwrap().clone();
    assert!(begun.iter().all(|begun| begun.outcome.is_some() && begun.tool == "send"));
    assert_ne!(begun[0].key, begun[1].key, "the same thing asked for twice is two effects");
    let calls: Vec<ToolCallId> = begun.into_iter().map(|begun| begun.call).collect();
    assert_eq!(calls, ["1".into(), "2".into()]);
}
