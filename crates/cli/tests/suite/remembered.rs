//! `hart threads`, `runs`, `export`, `backup`: what is remembered, here and at a server.

use std::os::unix::fs::PermissionsExt as _;

use hart_testkit::Turn;
use serde_json::{Value, json};

use super::bench::{Bench, offline};

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn without_data_there_is_nothing_to_see_and_none_is_made() {
    let dir = tempfile::tempdir().unwrap();
    for (args, code, says) in [
        (&["threads"][..], 0, "there are no threads yet"),
        (&["runs"], 0, "there are no runs yet"),
        (&["threads", "show", "x"], 2, "there is no thread `x`"),
        (&["threads", "delete", "x"], 2, "there is no thread `x`"),
        (&["runs", "show", "x"], 2, "there is no run `x`"),
        (&["runs", "cancel", "x"], 2, "there is no run `x`"),
        (&["export", "x"], 2, "there is no run `x`"),
        (&["backup", "copy.db"], 2, "there is nothing to back up"),
        (&["threads", "-n", "0"], 2, "0 is not in 1.."),
        (&["runs", "-n", "0"], 2, "0 is not in 1.."),
    ] {
        let ran = offline(dir.path()).args(args.iter().copied()).run();
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
    assert!(!dir.path().join(".hart").exists() && !dir.path().join("copy.db").exists());
}

#[test]
fn a_token_in_the_environment_is_nothing_to_a_hart_in_this_process() {
    let bench = Bench::with([Turn::new().text("It is 42.")]);
    let hart =
        |args: &[&str]| bench.hart().env("HART_TOKEN", "for a server").args(args.iter().copied()).run();
    assert_eq!(hart(&["run", "--thread", "t", "6 times 7?"]).success().stdout, "It is 42.\n");
    assert!(hart(&["threads"]).success().stdout.starts_with("t "));
}

#[test]
fn threads_and_runs_are_listed_shown_and_deleted() {
    let bench = Bench::with([
        Turn::new().tool_call("c1", "bash", json!({"description": "compute", "command": "echo 42"})),
        Turn::new().text("It is 42."),
        Turn::status(401),
    ]);
    let hart = |args: &[&str]| bench.hart().args(args.iter().copied()).run();
    hart(&["run", "--thread", "sums", "6 times 7?"]).success().stdout.clear();
    assert_eq!(hart(&["run", "--thread", "other", "hello"]).code, Some(1));

    let listed = hart(&["threads"]).success().stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("other ") && lines[0].contains("error"), "{listed}");
    assert!(lines[1].starts_with("sums ") && lines[1].contains("6 times 7?"), "{listed}");
    let one = json_of(&hart(&["threads", "list", "--json", "-n", "1"]).success().stdout);
    assert_eq!((one.as_array().unwrap().len(), &one[0]["id"]), (1, &json!("other")));
    let shown = hart(&["threads", "show", "sums"]).success().stdout;
    assert!(
        shown.contains("> 6 times 7?") && shown.contains("● bash  compute") && shown.contains("It is 42.")
    );
    let state = json_of(&hart(&["threads", "show", "sums", "--json"]).success().stdout);
    assert_eq!(state["values"]["messages"][0]["content"], "6 times 7?");

    let runs = json_of(&hart(&["runs", "--json"]).success().stdout);
    let status: Vec<&str> =
        runs.as_array().unwrap().iter().filter_map(|run| run["status"].as_str()).collect();
    assert_eq!(status, ["error", "success"]);
    let of_one = hart(&["runs", "list", "--thread", "sums"]).success().stdout;
    assert_eq!(of_one.lines().count(), 1, "{of_one}");
    let failed = hart(&["runs", "show", runs[0]["run_id"].as_str().unwrap()]).success().stdout;
    assert!(failed.contains("error: ") && failed.contains("401"), "{failed}");
    let (one, other) = (runs[0]["run_id"].as_str().unwrap(), runs[1]["run_id"].as_str().unwrap());
    let common = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    assert_eq!(
        hart(&["runs", "show", one.get(..=common).unwrap()]).success().stdout,
        failed,
        "by its beginning"
    );
    let several = hart(&["runs", "show", one.get(..common).unwrap()]);
    assert_eq!(several.code, Some(2));
    assert!(several.stderr.contains("several runs begin with") && several.stderr.contains(other));
    assert!(hart(&["runs", "show", "zzz"]).stderr.contains("there is no run `zzz`"));
    let ended = hart(&["runs", "cancel", runs[1]["run_id"].as_str().unwrap()]).success();
    assert!(ended.stderr.contains("success"), "{}", ended.stderr);

    hart(&["threads", "delete", "sums"]).success().stdout.clear();
    assert_eq!(hart(&["threads", "show", "sums"]).code, Some(2));
    assert_eq!(json_of(&hart(&["runs", "--json"]).success().stdout).as_array().unwrap().len(), 1);
}

#[test]
fn a_run_is_exported_and_played_again_without_a_model() {
    let bench = Bench::with([
        Turn::new().text("before"),
        Turn::new().text("Let me see.").tool_call(
            "c1",
            "bash",
            json!({"command": "echo sk-proj-0123456789abcdef"}),
        ),
        Turn::new().text("It is 42."),
    ]);
    let hart = |args: &[&str]| bench.hart().args(args.iter().copied()).run();
    hart(&["run", "--thread", "t", "something else"]).success().stdout.clear();
    hart(&["run", "--thread", "t", "compute"]).success().stdout.clear();
    let runs = json_of(&hart(&["runs", "--json"]).success().stdout);
    let run = runs[0]["run_id"].as_str().unwrap();
    let bundle = json_of(&hart(&["export", run]).success().stdout);
    assert_eq!((&bundle["version"], &bundle["run"]["run_id"]), (&json!(1), &json!(run)));
    let messages = bundle["messages"].as_array().unwrap();
    assert_eq!(messages.first().unwrap()["content"], "compute");
    assert_eq!(messages.last().unwrap()["content"], "It is 42.");
    let events = bundle["events"].as_array().unwrap();
    assert_eq!((&events[0]["event"], &events.last().unwrap()["event"]), (&json!("metadata"), &json!("end")));
    assert_eq!(bundle["cassette"]["calls"].as_array().unwrap().len(), 2);
    assert_eq!(bundle["values"]["messages"], bundle["messages"]);
    let whole = bundle.to_string();
    assert!(
        !whole.contains("something else") && !whole.contains("before"),
        "of the thread before it: {whole}"
    );
    assert!(whole.contains("[redacted]") && !whole.contains("0123456789abcdef"), "{whole}");

    let asked = bench.server.requests().len();
    let file = bench.dir.path().join("run.json");
    std::fs::write(&file, "older").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    hart(&["export", run, "-o", "run.json"]).success().stdout.clear();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let played = offline(bench.dir.path()).args(["run", "--replay", "run.json", "compute"]).run().success();
    assert_eq!(played.stdout, "Let me see.\nIt is 42.\n");
    assert_eq!(bench.server.requests().len(), asked);
}

#[test]
fn a_key_that_was_spelt_out_is_not_in_the_pieces_either() {
    let spelt = Turn::new().text_fragments(["It is sk-proj-", "4815162342", "abcdef", ", you know."]);
    let bench = Bench::with([spelt]);
    let hart = |args: &[&str]| bench.hart().args(args.iter().copied()).run();
    hart(&["run", "--thread", "t", "what is the key?"]).success().stdout.clear();
    let runs = json_of(&hart(&["runs", "--json"]).success().stdout);
    let bundle = hart(&["export", runs[0]["run_id"].as_str().unwrap()]).success().stdout;
    assert!(bundle.contains("[redacted], you know."), "{bundle}");
    assert!(!bundle.contains("4815162342") && bundle.contains("AIMessageChunk"), "{bundle}");
}

#[test]
fn a_backup_is_a_database_of_its_own() {
    let bench = Bench::with([Turn::new().text("one")]);
    bench.hart().args(["run", "--thread", "t", "a"]).run().success().stdout.clear();
    bench.hart().args(["backup", "copy.db"]).run().success().stdout.clear();
    let again = bench.hart().args(["backup", "copy.db"]).run();
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let other = bench.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(bench.dir.path().join("copy.db"), other.join("hart.db")).unwrap();
    let listed = bench.hart().env("HART_HOME", &other).arg("threads").run().success();
    assert!(listed.stdout.starts_with("t "), "{}", listed.stdout);
}

#[test]
fn a_run_whose_stream_is_not_kept_any_more_is_told_as_such() {
    let bench = Bench::with([Turn::new().text("one"), Turn::new().text("two")]);
    bench.write("config.yaml", "server: {keep_streams_days: 0}\ntitle: {enabled: false}\n");
    let hart = |args: &[&str]| bench.hart().args(args.iter().copied()).run();
    hart(&["run", "--thread", "t", "a"]).success().stdout.clear();
    let runs = json_of(&hart(&["runs", "--json"]).success().stdout);
    let run = runs[0]["run_id"].as_str().unwrap();
    let told = |refused: hart_testkit::binary::Finished| {
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(&format!("the stream of run `{run}` is not kept any more")));
        assert!(refused.stderr.contains("hart threads show"), "{}", refused.stderr);
    };
    // Each command that opens the data forgets what is too old.
    let here = || hart(&["export", run]);
    while here().code == Some(0) {}
    told(here());
    let served = super::serve::Served::start(bench.hart());
    told(hart(&["export", run, "--server", &format!("http://{}", served.address)]));
}

#[test]
fn what_a_run_and_a_thread_cost_is_told_where_the_price_is_known() {
    let bench = Bench::with([
        Turn::new().text("one").usage(1_000_000, 500_000),
        Turn::new().text("two").usage(1_000_000, 0),
    ]);
    let base = bench.server.openai_base();
    let price = "pricing: {input_per_million: 2.0, output_per_million: 8.0}";
    let model = format!("name: m, use: openai, model: mock, api_key: sk-test, base_url: '{base}', {price}");
    bench.write("config.yaml", &format!("models:\n  - {{{model}}}\ntitle: {{enabled: false}}\n"));
    let hart = |args: &[&str]| bench.hart().args(args.iter().copied()).run();
    hart(&["run", "--thread", "t", "a"]).success().stdout.clear();
    let served = super::serve::Served::start(bench.hart());
    let server = format!("http://{}", served.address);
    hart(&["run", "--server", &server, "--thread", "t", "b"]).success().stdout.clear();
    let runs = json_of(&hart(&["runs", "--json", "--server", &server]).success().stdout);
    assert_eq!((&runs[0]["total_cost"], &runs[1]["total_cost"]), (&json!(2.0), &json!(6.0)));
    let first = runs[1]["run_id"].as_str().unwrap();
    for at in [&[][..], &["--server", server.as_str()]] {
        let shown = hart(&[&["runs", "show", first], at].concat()).success().stdout;
        assert!(shown.contains("cost: 6.0000"), "{shown}");
    }
    assert_eq!(runs[0]["thread_name"], "t");
    assert!(hart(&["runs"]).success().stdout.contains("thread t\n"));
    let thread = runs[0]["thread_id"].as_str().unwrap();
    let usage = served.ask("GET", &format!("/api/threads/{thread}/token-usage"), "", &json!({}));
    assert!(usage.contains("\"total_cost\":8.0") && usage.contains("\"total_runs\":2"), "{usage}");
    let metrics = served.ask("GET", "/metrics", "", &json!({}));
    assert!(metrics.contains("hart_cost_total 2\n"), "of the runs of this process: {metrics}");
}
