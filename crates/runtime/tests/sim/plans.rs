//! What simulated machines are asked to do.

use hart_runtime::{Input, StartRun};
use hart_testkit::sim::Random;
use hart_types::Durability;
use serde_json::{Map, Value, json};

/// Batches of calls, one batch per answer of the model. `ID` becomes a text that no other run has.
pub(super) const PLANS: [(&str, &str); 8] = [
    ("words", "[]"),
    ("linear", r#"[[["notify", "ID one"]], [["peek", "ID two"]], [["put", "ID three"]]]"#),
    ("parallel", r#"[[["notify", "ID a"], ["notify", "ID b"], ["put", "ID c"], ["peek", "ID d"]]]"#),
    (
        "question",
        r#"[[["notify", "ID before"]], [["ask", "ID may I?"], ["notify", "ID meanwhile"]], [["put", "ID after"]]]"#,
    ),
    (
        "long",
        r#"[[["notify", "ID 1"]], [["put", "ID 2"]], [["notify", "ID 3"], ["put", "ID 4"]], [["peek", "ID 5"]], [["notify", "ID 6"]]]"#,
    ),
    ("large", r#"[[["notify", "ID 1"]], [["put", "ID 2 much"], ["notify", "ID 3"]]]"#),
    (
        "delegation",
        r#"[[["delegate", "[[[\"notify\", \"ID in\"]], [[\"put\", \"ID in\"], [\"notify\", \"ID in too\"]]]"], ["notify", "ID out"]], [["put", "ID after"]]]"#,
    ),
    (
        "consultation",
        r#"[[["delegate", "[[[\"notify\", \"ID in\"]], [[\"ask\", \"ID may I?\"]], [[\"put\", \"ID in\"]]]"], ["notify", "ID out"]], [["notify", "ID after"]]]"#,
    ),
];

/// The runs of one thread.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) thread: String,
    pub(super) runs: Vec<Planned>,
}

#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) plan: &'static str,
    pub(super) id: String,
    pub(super) durability: Durability,
}

impl Job {
    pub(super) fn of(n: u64, random: &mut Random) -> Self {
        let thread = format!("thread-{n}");
        let first = random.pick(&PLANS).0;
        // Behind a question somebody has to wait for its answer.
        let count = if asks(first) { 1 } else { random.within(1..=2) };
        let runs = (0..count).map(|run| Planned {
            plan: if run == 0 { first } else { "linear" },
            id: format!("{thread}/{run}"),
            durability: match random.within(0..=9) {
                0 => Durability::Exit,
                1 | 2 => Durability::Async,
                _ => Durability::Sync,
            },
        });
        let runs = runs.collect();
        Self { thread, runs }
    }

    pub(super) fn undisturbed(plan: &'static str) -> Self {
        let run = Planned { plan, id: "ID".to_owned(), durability: Durability::Sync };
        Self { thread: "thread".to_owned(), runs: vec![run] }
    }
}

impl Planned {
    /// Whether somebody has to answer.
    pub(super) fn asks(&self) -> bool {
        asks(self.plan)
    }

    pub(super) fn request(&self, thread: &str) -> StartRun {
        let (_, plan) = PLANS.iter().find(|(name, _)| *name == self.plan).unwrap();
        let words = format!("PLAN {}", plan.replace("ID", &self.id));
        let input = object(json!({"messages": [{"role": "user", "content": words}]}));
        self.with(thread, "words", Input::Values(input))
    }

    pub(super) fn answer(&self, thread: &str) -> StartRun {
        let answer = Input::Resume { answer: json!("yes"), update: Map::new() };
        // A question that got lost is noticed by whoever answers it.
        StartRun { late_answers: false, ..self.with(thread, "answer", answer) }
    }

    /// Asked again, the same key is the same run.
    fn with(&self, thread: &str, key: &str, input: Input) -> StartRun {
        StartRun {
            thread: Some(thread.into()),
            create_thread: true,
            idempotency_key: Some(format!("{}/{key}", self.id)),
            durability: self.durability,
            ..StartRun::new("agent", "agent".into(), input)
        }
    }
}

fn asks(plan: &str) -> bool {
    ["question", "consultation"].contains(&plan)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}
