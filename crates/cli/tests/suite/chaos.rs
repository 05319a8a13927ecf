//! `hart chaos`: what holds is counted from outside, what breaks is told, and nothing is left behind.

use hart_testkit::{Dialect, Turn};
use serde_json::{Value, json};

use super::bench::{Bench, offline};

fn report(stdout: &str) -> Value {
    serde_json::from_str(stdout.trim()).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// What a temporary directory of its own holds afterwards.
fn left(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn without_a_model_a_script_is_killed_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let places = tempfile::tempdir().unwrap();
    let args = ["chaos", "--faults", "kill,malformed,slow-reader", "--seed", "5", "--json"];
    let ran = offline(dir.path()).env("TMPDIR", places.path()).args(args).run().success();
    let told = report(&ran.stdout);
    assert_eq!((&told["holds"], &told["report"]["scripted"]), (&json!(true), &json!(true)));
    let rows = told["report"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (&rows[0]["fault"], &rows[0]["finished"], &rows[0]["resumed"]),
        (&json!("kill"), &json!(1), &json!(1))
    );
    for row in rows {
        assert_eq!((&row["repeated_effects"], &row["lost_events"]), (&json!(0), &json!(0)), "{row}");
    }
    assert!(!dir.path().join(".hart").exists(), "the user's own data directory is not touched");
    assert!(left(places.path()).is_empty(), "{:?}", left(places.path()));
}

#[test]
fn a_guarantee_that_is_switched_off_is_found_broken() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.yaml"), "server: {resume: false}\n").unwrap();
    let ran = offline(dir.path()).args(["chaos", "--faults", "kill"]).run();
    assert_eq!(ran.code, Some(1), "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("BROKEN") && ran.stdout.contains("not finished"), "{}", ran.stdout);
}

#[test]
fn the_users_own_model_is_behind_the_proxy() {
    let command =
        |mark: &str| json!({"description": "d", "command": format!("echo {mark} >> chaos-ledger.txt")});
    let bench = Bench::answering(Dialect::OpenAi, move |request| match request.tool_results().len() {
        _ if request.tool_names().is_empty() => Turn::new().text("A title"),
        0 => Turn::new().tool_call("c1", "bash", command("one")),
        1 => Turn::new().tool_call("c2", "bash", command("two")),
        _ => Turn::new().text("done"),
    });
    let args = ["chaos", "--faults", "429", "--runs", "2", "--json"];
    let ran = bench.hart().args(args).run().success();
    let told = report(&ran.stdout);
    assert_eq!(told["report"]["scripted"], json!(false));
    assert_eq!(told["report"]["rows"][0]["finished"], json!(2), "{told}");
    assert!(bench.server.requests().len() >= 9, "three runs of three calls");
    let own = bench.hart().args(["chaos", "do this", "--faults", "slow-reader"]).run().success();
    assert!(own.stdout.contains("not counted"), "{}", own.stdout);
}

#[test]
fn what_cannot_be_tried_is_told() {
    let bench = Bench::answering(Dialect::OpenAi, |_| Turn::status(401));
    let ran = bench.hart().args(["chaos", "--faults", "kill"]).run();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("does not even finish the task when nothing is broken"), "{}", ran.stderr);
    let wrong = bench.hart().args(["chaos", "--faults", "earthquake"]).run();
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("the faults are kill, 429"), "{}", wrong.stderr);
}
