//! What is asked of processes that are killed.

use serde_json::{Value, json};

#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What the model follows; see [`super::cell::batches`]. `MARK` becomes a text that is found nowhere else.
    pub(crate) plan: Value,
    pub(crate) compact_at: usize,
}

/// At how many messages a conversation is summed up: only one of the plans comes to it.
const USUAL: usize = 11;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let file = "/mnt/user-data/workspace/notes.txt";
    let inside = json!([[["notify", {"what": "inside"}]], [["ask", {"what": "may I?"}]], [["put", {"what": "inside"}]]]);
    let plans = [
        (
            "linear",
            json!([[["notify", {"what": "one"}]], [["peek", {"what": "two"}]], [["put", {"what": "three"}]]]),
        ),
        (
            "parallel",
            json!([[["notify", {"what": "a"}], ["notify", {"what": "b"}], ["put", {"what": "c"}], ["peek", {"what": "d"}]]]),
        ),
        (
            "question",
            json!([[["notify", {"what": "before"}]], [["ask", {"what": "may I?"}], ["notify", {"what": "meanwhile"}]], [["notify", {"what": "after"}]]]),
        ),
        (
            "edit",
            json!([
                [["write_file", {"path": file, "content": "one\n"}]],
                [["write_file", {"path": file, "content": "two\n", "append": true}]],
                [["str_replace", {"path": file, "old_str": "two", "new_str": "two two"}]],
                [["read_file", {"path": file}]],
            ]),
        ),
        (
            // Long enough for its process to show that it lives.
            "command",
            json!([
                [["bash", {"command": "echo begun >> log; : MARK; sleep 1.3; echo ended >> log; cat log"}]],
                [["read_file", {"path": "/mnt/user-data/workspace/log"}]],
            ]),
        ),
        (
            "compaction",
            json!([
                [["notify", {"what": "one"}]], [["put", {"what": "two"}]], [["notify", {"what": "three"}]],
                [["peek", {"what": "four"}], ["notify", {"what": "five"}]], [["notify", {"what": "six"}]],
                [["put", {"what": "seven"}]],
            ]),
        ),
        (
            "delegation",
            json!([[task(&inside), ["notify", {"what": "beside"}]], [["notify", {"what": "after"}]]]),
        ),
    ];
    plans.map(|(name, plan)| Scenario { name, plan, compact_at: USUAL }).to_vec()
}

/// Hours of work in miniature: summed up several times, with a subagent in every round.
pub(crate) fn long(rounds: usize, compact_at: usize) -> Scenario {
    let inside = json!([[["notify", {"what": "inside #"}]]]);
    let round = json!([
        [["notify", {"what": "first #"}]],
        [["put", {"what": "second #"}], ["peek", {"what": "third #"}]],
        [task(&inside)],
        [["notify", {"what": "fourth #"}]],
    ]);
    Scenario { name: "long", plan: json!({"times": rounds, "batches": round}), compact_at }
}

/// A call that has a subagent follow a plan of its own.
fn task(plan: &Value) -> Value {
    let prompt = format!("PLAN {plan}");
    json!(["task", {"description": "a part", "prompt": prompt, "subagent_type": "general-purpose"}])
}
