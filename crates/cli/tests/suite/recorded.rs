//! `hart replay`: recorded runs played again, from a step on with another model, and compared.

use hart_testkit::{Dialect, ModelServer, Turn};
use serde_json::{Value, json};

use super::bench::{Bench, frames, offline};
use super::serve::Served;

fn bash(id: &str, command: &str) -> Turn {
    Turn::new().text("Let me see.").tool_call(id, "bash", json!({"description": "do it", "command": command}))
}

/// The newest run first.
fn runs(bench: &Bench) -> Vec<String> {
    let listed = bench.hart().args(["runs", "--json"]).run().success().stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed.as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_is_played_again_word_for_word_without_a_model_or_a_tool() {
    let bench = Bench::with([
        Turn::new().text("Good day."),
        bash("c1", "echo once >> ledger; wc -l < ledger"),
        Turn::new().text("It is done."),
    ]);
    bench.hart().args(["run", "--thread", "t", "hello"]).run().success().stdout.clear();
    let ran = bench.hart().args(["run", "--thread", "t", "count"]).run().success();
    let asked = bench.server.requests().len();
    let state = bench.hart().args(["threads", "show", "t", "--json"]).run().success().stdout;

    let run = &runs(&bench)[0];
    let played = bench.hart().args(["replay", run]).run().success();
    assert_eq!(played.stdout, ran.stdout);
    assert!(played.stderr.contains("replayed 2 model calls, 0 tokens spent"), "{}", played.stderr);
    assert!(played.stderr.contains("✓ 1"), "the result is the recorded one: {}", played.stderr);
    // Whoever no longer has the model can still look at what it did.
    let alone = offline(bench.dir.path()).args(["replay", run]).run().success();
    assert_eq!(alone.stdout, ran.stdout);
    let lines = frames(&bench.hart().args(["replay", run, "--json"]).run().success());
    assert_eq!(lines[0]["event"], "metadata");
    let last = &lines.last().unwrap()["data"];
    assert_eq!((&last["replayed_model_calls"], &last["difference"]), (&json!(2), &json!(null)));

    assert_eq!(bench.server.requests().len(), asked, "no model was asked");
    let after = bench.hart().args(["threads", "show", "t", "--json"]).run().success().stdout;
    assert_eq!(after, state, "the thread is as it was");
    assert_eq!(runs(&bench).len(), 2, "a replay is no run of its own");
}

#[test]
fn a_run_with_skills_of_the_users_own_is_played_again() {
    let bench = Bench::with([Turn::new().text("Noted.")]);
    let folder = bench.dir.path().join(".hart/users/default/skills/notes");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: notes\ndescription: Keeps notes.\n---\nWrite it down.\n";
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    let ran = bench.run("hello").success();
    assert!(bench.server.last_request().system().contains("- notes: Keeps notes."));
    let played = bench.hart().args(["replay", &runs(&bench)[0]]).run().success();
    assert_eq!(played.stdout, ran.stdout);
}

#[test]
fn a_replay_that_asks_something_else_stops_and_shows_what() {
    let bench = Bench::with([bash("c1", "echo 1"), Turn::new().text("One.")]);
    bench.run("count").success().stdout.clear();
    let run = &runs(&bench)[0];
    bench.write("config.yaml", "tools: [{name: bash}]\n");
    let parted = bench.hart().args(["replay", run]).run();
    assert_eq!(parted.code, Some(1), "{}", parted.stderr);
    for says in ["model call 1 of `lead`", "from byte", "recorded: ", "now: "] {
        assert!(parted.stderr.contains(says), "{says}: {}", parted.stderr);
    }
    assert!(parted.stderr.contains("replayed 0 model calls, 0 tokens spent"), "{}", parted.stderr);
    let lines = frames(&bench.hart().args(["replay", run, "--json"]).run());
    let difference = &lines.last().unwrap()["data"]["difference"];
    assert!(difference["at"].is_u64() && difference["call"] == 1, "{difference}");
}

#[test]
fn from_a_step_on_another_model_works_in_a_thread_of_its_own() {
    let bench =
        Bench::with([bash("c1", "echo a > ledger"), bash("c2", "cat ledger"), Turn::new().text("First.")]);
    let other = ModelServer::start_blocking();
    other.push_all([bash("d1", "cat ledger; echo b >> ledger"), Turn::new().text("Second.")]);
    let entry = |name: &str, base: String| {
        format!("  - {{name: {name}, use: openai, model: m, api_key: sk-test, base_url: '{base}'}}\n")
    };
    let models = entry("one", bench.server.openai_base()) + &entry("two", other.openai_base());
    bench.write("config.yaml", &format!("models:\n{models}"));
    bench.hart().args(["run", "--thread", "t", "write it"]).run().success().stdout.clear();
    let (run, asked) = (runs(&bench)[0].clone(), bench.server.requests().len());
    let forked = bench.hart().args(["replay", &run, "--from", "3", "--model", "two"]).run().success();
    assert_eq!(forked.stdout, "Let me see.\nLet me see.\nSecond.\n");
    assert!(forked.stderr.contains("replayed 1 model call, then made 2 model calls"), "{}", forked.stderr);
    assert_eq!(bench.server.requests().len(), asked, "the first model was asked no more");
    let told = other.requests();
    assert_eq!(told.len(), 2);
    let results = told[1].tool_results();
    assert!(results.last().unwrap().content.contains('a'), "it works on a copy of the files: {results:?}");

    let original = bench.hart().args(["threads", "show", "t"]).run().success().stdout;
    assert!(original.contains("First.") && !original.contains("Second."), "{original}");
    let all = runs(&bench);
    assert_eq!(all.len(), 2);
    // What was played and what was live are one recording again.
    let again = bench.hart().args(["replay", &all[0]]).run().success();
    assert_eq!(again.stdout, forked.stdout);
    assert!(again.stderr.contains("replayed 3 model calls, 0 tokens spent"), "{}", again.stderr);

    let parted = bench.hart().args(["replay", "diff", &run, &all[0]]).run();
    assert_eq!(parted.code, Some(1), "{}", parted.stderr);
    assert!(
        parted.stdout.contains("they part at step 3: what the model answers `lead`"),
        "{}",
        parted.stdout
    );
    assert!(parted.stdout.contains("model calls"), "{}", parted.stdout);
    let same = bench.hart().args(["replay", "diff", &run, &run, "--json"]).run().success().stdout;
    let same: Value = serde_json::from_str(&same).unwrap();
    assert_eq!((&same["same"], &same["runs"][0]["tool_calls"]), (&json!(true), &json!(2)));
}

#[test]
fn what_cannot_be_played_is_told_with_the_reason() {
    let bench = Bench::with([
        Turn::new().text("x".repeat(1_300_000)),
        Turn::new().text("fine"),
        Turn::new().text("off"),
    ]);
    let says = |args: &[&str], code: i32, words: &str| {
        let ran = bench.hart().args(args.iter().copied()).run();
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    };
    says(&["replay", "nothing"], 2, "there is no run `nothing`");
    bench.write("config.yaml", "recording: {max_mb_per_run: 1}\n");
    bench.run("too much").success().stdout.clear();
    says(&["replay", &runs(&bench)[0]], 1, "the recording was cut at its limit of 1048576 bytes");
    bench.run("enough").success().stdout.clear();
    says(&["replay", "nothing"], 2, "there is no run `nothing`");
    says(&["replay", &runs(&bench)[0], "--from", "2"], 2, "step 2 is not one of the run's: it has 1");
    says(&["replay", &runs(&bench)[0], "--from", "1", "--model", "nobody"], 2, "there is no model `nobody`");
    bench.write("config.yaml", "recording: {enabled: false}\n");
    bench.run("unseen").success().stdout.clear();
    says(&["replay", &runs(&bench)[0]], 2, "has no recording");
    says(&["replay", &runs(&bench)[0]], 2, "help: recordings are kept as long as streams");
}

#[test]
fn calls_on_the_side_and_answers_to_questions_are_played_too() {
    let bench = Bench::answering(Dialect::OpenAi, |request| match request.tool_results().len() {
        _ if request.tool_names().is_empty() => Turn::new().text("A title"),
        0 => bash("c1", "echo 1"),
        _ => Turn::new().text("One."),
    });
    let base = bench.server.openai_base();
    let model = format!("{{name: m, use: openai, model: m, api_key: sk-test, base_url: '{base}'}}");
    bench.write(
        "config.yaml",
        &format!("models: [{model}]\ntitle: {{model_name: m}}\ninterrupt_on: {{bash: true}}\n"),
    );
    let asked = bench.hart().args(["run", "--thread", "t", "count"]).run();
    assert_eq!(asked.code, Some(3), "{}", asked.stderr);
    let approve = r#"{"decisions": [{"type": "approve"}]}"#;
    let ran = bench.hart().args(["run", "--thread", "t", "--resume", approve]).run().success();
    let (all, calls) = (runs(&bench), bench.server.requests().len());
    let (first, second) = (&all[1], &all[0]);
    let paused = bench.hart().args(["replay", first]).run().success();
    assert!(paused.stderr.contains("0 tokens spent"), "{}", paused.stderr);
    let resumed = bench.hart().args(["replay", second]).run().success();
    assert_eq!(resumed.stdout, ran.stdout);
    assert_eq!(bench.server.requests().len(), calls);
    let played = |args: &[&str]| {
        let lines = frames(&bench.hart().args(args.iter().copied()).run().success());
        lines.last().unwrap()["data"]["replayed_model_calls"].as_u64().unwrap()
    };
    let both = played(&["replay", first, "--json"]) + played(&["replay", second, "--json"]);
    assert_eq!(both as usize, calls, "every call, also the title's");
}

#[test]
fn a_run_that_was_killed_and_went_on_is_one_recording() {
    let bench = Bench::with([
        bash("c1", "echo once >> ledger; wc -l < ledger"),
        Turn::new().text("half ").hang_after(1),
        Turn::new().text("The whole answer."),
    ]);
    bench.write("config.yaml", "title: {enabled: false}\n");
    let served = Served::start(bench.hart());
    let thread = "0199a0b1-0000-7000-8000-0000000000aa";
    let question = json!({"assistant_id": "lead_agent", "if_not_exists": "create",
                          "input": {"messages": [{"role": "user", "content": "count"}]}});
    let begun = served.ask("POST", &format!("/threads/{thread}/runs"), "", &question);
    assert!(begun.starts_with("HTTP/1.1 200"), "{begun}");
    super::errors::block_on(bench.server.wait_for_requests(2));
    served.process.kill();
    let _ = served.process.wait();
    let served = Served::start(bench.hart());
    let joined = served.ask("GET", &format!("/threads/{thread}/runs"), "", &json!({}));
    assert!(joined.contains("running") || joined.contains("success"), "{joined}");
    super::errors::block_on(bench.server.wait_for_requests(3));
    while !served
        .ask("GET", &format!("/threads/{thread}/runs"), "", &json!({}))
        .contains(r#""status":"success""#)
    {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    served.process.terminate();
    let _ = served.process.wait();
    let run = &runs(&bench)[0];
    let played = bench.hart().args(["replay", run]).run().success();
    assert_eq!(played.stdout, "Let me see.\nThe whole answer.\n");
    assert!(played.stderr.contains("replayed 2 model calls, 0 tokens spent"), "{}", played.stderr);
}

#[test]
fn a_run_that_was_stopped_is_played_as_far_as_it_came() {
    let bench = Bench::with([bash("c1", "echo 1"), Turn::hang()]);
    let running = bench.hart().args(["run", "--thread", "t", "count"]).spawn();
    super::errors::block_on(bench.server.wait_for_requests(2));
    running.interrupt();
    assert_eq!(running.wait().code, Some(130));
    let played = bench.hart().args(["replay", &runs(&bench)[0]]).run().success();
    assert_eq!(played.stdout, "Let me see.\n");
    assert!(played.stderr.contains("the run was stopped here"), "{}", played.stderr);
}
