//! Records the demo tasks anew: `cargo run -p hart-app --example record_demo`.
//!
//! The answers below are scripted; the tools, the sandbox and their results are real, and the cassettes in
//! `assets/demo/` hold both.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a tool for the developer at hand"
)]

use std::path::Path;
use std::sync::Arc;

use hart_agent::SuperAgent;
use hart_agent::middleware::Sandbox;
use hart_app::demo::TASKS;
use hart_kernel::{RunContext, Update};
use hart_models::{Recorder, ScriptedModel};
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};
use hart_types::{Body, Message, ThreadId, ToolCall};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo");
    for (task, (file, answers)) in TASKS.iter().zip([primes(), report(), page()]) {
        let answers = answers.into_iter().enumerate().map(|(turn, answer)| number_calls(turn, answer));
        let path = assets.join(file);
        let _ = std::fs::remove_file(&path);
        let recorder = Recorder::new(Arc::new(ScriptedModel::new(answers)), &path).unwrap();
        let home = tempfile::tempdir().unwrap();
        let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.path().into(), None).unwrap();
        let sandbox = Sandbox::new(Arc::new(provider), SandboxConfig::default());
        let agent = SuperAgent::builder(Arc::new(recorder)).sandbox(sandbox).build().unwrap();
        let cx = RunContext::new(ThreadId::from("demo"));
        let report = agent.run(Update::none().messages(Message::human(task.prompt)), &cx).await;
        for message in report.state().messages() {
            println!("{}: {}", message.kind(), message.text());
        }
        report.outcome.unwrap_or_else(|error| panic!("{}: {error}", task.title));
    }
}

const NOTE: &str =
    "(This is a recording: the words are replayed, the tools are really at work on this machine.)\n\n";

fn primes() -> (&'static str, Vec<Message>) {
    let script = "#!/bin/sh\n\
        # Prints the primes below a limit, one per line, by trial division.\n\
        limit=${1:-100}\n\
        n=2\n\
        while [ \"$n\" -lt \"$limit\" ]; do\n\
        \x20   prime=yes\n\
        \x20   d=2\n\
        \x20   while [ $((d * d)) -le \"$n\" ]; do\n\
        \x20       if [ $((n % d)) -eq 0 ]; then prime=no; break; fi\n\
        \x20       d=$((d + 1))\n\
        \x20   done\n\
        \x20   if [ \"$prime\" = yes ]; then echo \"$n\"; fi\n\
        \x20   n=$((n + 1))\n\
        done\n";
    let file = "/mnt/user-data/outputs/primes.txt";
    let run = format!("sh primes.sh 100 > {file} && wc -l < {file}");
    let answers = vec![
        answer(
            &format!("{NOTE}I'll write a small script, run it, look at what it made, and hand it over."),
            [(
                "write_file",
                json!({
                    "description": "Write the script",
                    "path": "/mnt/user-data/workspace/primes.sh",
                    "content": script,
                }),
            )],
        ),
        answer("", [("bash", json!({"description": "Run it and count the lines", "command": run}))]),
        answer(
            "25 lines, as there should be. Let me look at them.",
            [("read_file", json!({"description": "Check the list", "path": file}))],
        ),
        answer("", [("present_files", json!({"filepaths": [file]}))]),
        answer(
            "There are **25 primes below 100**, from 2 to 97. The list, one number a line, is in \
             `/mnt/user-data/outputs/primes.txt`; the script that made it is `primes.sh` in the workspace and takes \
             another limit as its argument.",
            [],
        ),
    ];
    ("primes.json", answers)
}

fn report() -> (&'static str, Vec<Message>) {
    let table = "product,units,price\napples,120,0.50\npears,90,0.75\nplums,200,0.20\ncherries,30,4.00\n";
    let sum = "awk -F, 'NR > 1 { printf \"%s %.2f\\n\", $1, $2 * $3 }' sales.csv | sort -k2,2nr";
    let file = "/mnt/user-data/outputs/report.md";
    let text = "# What the products earned\n\n\
        | product | units | price | revenue |\n|---|---:|---:|---:|\n\
        | cherries | 30 | 4.00 | **120.00** |\n| pears | 90 | 0.75 | 67.50 |\n\
        | apples | 120 | 0.50 | 60.00 |\n| plums | 200 | 0.20 | 40.00 |\n| **all** | **440** | | **287.50** |\n\n\
        Cherries earned the most with the fewest units: 42 % of the revenue from 7 % of the units. \
        Plums sold best and earned least.\n";
    let answers = vec![
        answer(
            &format!(
                "{NOTE}First the table into a file, so that I can calculate with it instead of guessing."
            ),
            [(
                "write_file",
                json!({
                    "description": "Save the table",
                    "path": "/mnt/user-data/workspace/sales.csv",
                    "content": table,
                }),
            )],
        ),
        answer(
            "",
            [
                ("bash", json!({"description": "Revenue per product, highest first", "command": sum})),
                (
                    "bash",
                    json!({
                        "description": "The totals",
                        "command": "awk -F, 'NR > 1 { u += $2; r += $2 * $3 } END { printf \"%d %.2f\\n\", u, r }' sales.csv",
                    }),
                ),
            ],
        ),
        answer(
            "Cherries, clearly. Now the report.",
            [(
                "write_file",
                json!({
                    "description": "Write the report",
                    "path": file,
                    "content": text,
                }),
            )],
        ),
        answer(
            "",
            [
                (
                    "grep",
                    json!({"description": "Check the total", "pattern": "287.50", "path": file, "literal": true}),
                ),
                ("present_files", json!({"filepaths": [file]})),
            ],
        ),
        answer(
            "**Cherries** earned the most: 120.00 of 287.50 in all, with only 30 units sold. Pears follow with 67.50, \
             apples with 60.00, plums with 40.00. The report with the table is in `/mnt/user-data/outputs/report.md`.",
            [],
        ),
    ];
    ("report.json", answers)
}

fn page() -> (&'static str, Vec<Message>) {
    let script = "#!/bin/sh\n\
        echo '<!doctype html>'\n\
        echo '<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Table</title>'\n\
        echo '<style>body{font-family:sans-serif} td{padding:.4em .8em;text-align:right;border:1px solid #ccc}</style>'\n\
        echo '</head><body><h1>Multiplication table</h1><table>'\n\
        a=1\n\
        while [ $a -le 10 ]; do\n\
        \x20   printf '<tr>'\n\
        \x20   b=1\n\
        \x20   while [ $b -le 10 ]; do printf '<td>%d</td>' $((a * b)); b=$((b + 1)); done\n\
        \x20   echo '</tr>'\n\
        \x20   a=$((a + 1))\n\
        done\n\
        echo '</table></body></html>'\n";
    let file = "/mnt/user-data/outputs/table.html";
    let count = format!("grep -o '<td>' {file} | wc -l && tail -n 3 {file}");
    let answers = vec![
        answer(
            &format!("{NOTE}A hundred cells are better made by a script than by hand."),
            [(
                "write_file",
                json!({
                    "description": "Write the generator",
                    "path": "/mnt/user-data/workspace/table.sh",
                    "content": script,
                }),
            )],
        ),
        answer(
            "",
            [(
                "bash",
                json!({
                    "description": "Make the page",
                    "command": format!("sh table.sh > {file}"),
                }),
            )],
        ),
        answer(
            "",
            [
                ("bash", json!({"description": "Count the cells and look at the end", "command": count})),
                (
                    "read_file",
                    json!({"description": "Look at the head", "path": file, "start_line": 1, "end_line": 4}),
                ),
            ],
        ),
        answer(
            "All 100 cells are there and the last is 100, but the title says only “Table”. I'll mend that.",
            [(
                "str_replace",
                json!({
                    "description": "Give the page a proper title",
                    "path": file,
                    "old_str": "<title>Table</title>",
                    "new_str": "<title>Multiplication table, 1 to 10</title>",
                }),
            )],
        ),
        answer(
            "",
            [
                (
                    "grep",
                    json!({"description": "Check the title", "pattern": "<title>", "path": file, "literal": true}),
                ),
                ("present_files", json!({"filepaths": [file]})),
            ],
        ),
        answer(
            "The page is in `/mnt/user-data/outputs/table.html`: ten rows, ten columns, 1 to 100. Open it in any browser.",
            [],
        ),
    ];
    ("page.json", answers)
}

fn answer<const N: usize>(text: &str, calls: [(&str, Value); N]) -> Message {
    let mut message = Message::ai(text);
    if let Body::Ai(ai) = &mut message.body {
        for (name, args) in calls {
            let Value::Object(args) = args else { panic!("arguments are an object") };
            ai.tool_calls.push(ToolCall::new("", name, args));
        }
    }
    message
}

fn number_calls(turn: usize, mut answer: Message) -> Message {
    if let Body::Ai(ai) = &mut answer.body {
        for (at, call) in ai.tool_calls.iter_mut().enumerate() {
            call.id = Some(format!("call_{turn}_{at}").into());
        }
    }
    answer
}
