//! A model that is busy, broken or elsewhere, as the user of the binary sees it.

use hart_testkit::{Dialect, Turn};
use serde_json::json;

use super::bench::{ALL, Bench, QUICK, frames};

#[test]
fn a_busy_model_is_asked_again_and_says_so_once() {
    for dialect in ALL {
        let bench = Bench::new(dialect);
        bench.write("config.yaml", QUICK);
        bench.server.push_all([Turn::status(529).message("too busy"), Turn::new().text("here now")]);
        let ran = bench.run("hi").success();
        assert_eq!(ran.stdout, "here now\n");
        let lines: Vec<_> =
            ran.stderr.lines().filter(|line| line.contains("is overloaded, trying again")).collect();
        assert!(lines.len() == 1 && lines[0].ends_with("(attempt 2 of 3)"), "{}", ran.stderr);
    }
}

#[test]
fn a_retry_is_an_event() {
    let bench = Bench::new(Dialect::OpenAi);
    bench.write("config.yaml", QUICK);
    bench.server.push_all([
        Turn::new().text("half an answer").chunk_chars(1).cut_after(6),
        Turn::new().text("a whole answer"),
    ]);
    let ran = bench.hart().args(["run", "--json", "hi"]).run().success();
    let frames = frames(&ran);
    let retry = frames.iter().find(|frame| frame["data"]["type"] == "llm_retry").expect("the event");
    assert_eq!(
        (retry["data"]["attempt"].as_u64(), &retry["data"]["reason"]),
        (Some(2), &json!("interrupted"))
    );
    assert!(retry["data"]["message_id"].is_string(), "{retry}");
}

#[test]
fn another_model_takes_over() {
    let bench = Bench::new(Dialect::OpenAi);
    let base = bench.server.openai_base();
    let entry = |name: &str, more: &str| {
        format!("  - {{name: {name}, use: openai, model: {name}-1, api_key: k, base_url: '{base}'{more}}}\n")
    };
    let models = format!("models:\n{}{}", entry("main", ", fallbacks: [spare]"), entry("spare", ""));
    bench.write("config.yaml", &format!("{QUICK}{models}"));
    bench.server.push_all([Turn::status(401), Turn::new().text("from the spare one")]);
    let ran = bench.run("hi").success();
    assert_eq!(ran.stdout, "from the spare one\n");
    assert!(ran.stderr.contains("`main` refused the API key, asking `spare` instead"), "{}", ran.stderr);
    assert_eq!(bench.server.last_request().model(), "spare-1");
}

#[test]
fn a_proxy_in_the_environment_does_not_keep_it_from_this_machine() {
    for dialect in ALL {
        let bench = Bench::new(dialect);
        bench.server.push(Turn::new().text("direct"));
        let mut hart = bench.hart();
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            hart = hart.env(name, "http://127.0.0.1:9");
        }
        assert_eq!(hart.args(["run", "hi"]).run().success().stdout, "direct\n");
    }
}

#[test]
fn certificates_that_are_not_there_are_told_before_anything_else() {
    let bench = Bench::new(Dialect::OpenAi);
    bench.write("config.yaml", "network: {ca_file: nowhere.pem}\n");
    let ran = bench.run("hi");
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("nowhere.pem") && ran.stderr.contains("check `ca_file`"), "{}", ran.stderr);
}
