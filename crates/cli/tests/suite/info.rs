//! What hart says about itself: version, help, completions, models, doctor.

use hart_testkit::{Dialect, Turn};
use serde_json::Value;

use super::bench::{Bench, offline};

#[test]
fn version_help_and_completions_need_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.yaml"), "broken: [").unwrap();
    let version = offline(dir.path()).arg("--version").run().success();
    assert_eq!(version.stdout, concat!("hart ", env!("CARGO_PKG_VERSION"), "\n"));
    let help = offline(dir.path()).arg("--help").run().success();
    assert!(help.stdout.contains("Examples:") && help.stdout.contains("hart run"), "{}", help.stdout);
    for command in [
        "run",
        "chat",
        "serve",
        "threads",
        "runs",
        "export",
        "backup",
        "doctor",
        "models",
        "config",
        "completions",
    ] {
        let help = offline(dir.path()).args([command, "--help"]).run().success();
        assert!(help.stdout.contains("Examples:"), "{command}: {}", help.stdout);
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = offline(dir.path()).args(["completions", shell]).run().success();
        assert!(script.stdout.contains("hart") && script.stdout.contains("doctor"), "{shell}");
    }
    assert!(!dir.path().join(".hart").exists());
}

#[test]
fn hart_alone_shows_its_help() {
    let dir = tempfile::tempdir().unwrap();
    let ran = offline(dir.path()).run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("Usage: hart"), "{}", ran.stderr);
}

#[test]
fn models_are_listed_with_where_they_come_from() {
    let bench = Bench::new(Dialect::Anthropic);
    bench.write("config.yaml", "models:\n  - {name: mine, use: openai, model: m, api_key: sk-very-secret}\n");
    let ran = bench.hart().arg("models").run().success();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("* mine ") && lines[0].contains("config.yaml"), "{}", ran.stdout);
    assert!(ran.stdout.contains("ANTHROPIC_API_KEY is set"), "{}", ran.stdout);
    assert!(lines.last().unwrap().trim_start().starts_with("demo "), "{}", ran.stdout);
    let json = bench.hart().args(["models", "--json"]).run().success();
    let listed: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["is_default"]), (&"mine".into(), &true.into()));
    assert!(!format!("{}{}", ran.stdout, json.stdout).contains("very-secret"));
    assert!(bench.server.requests().is_empty(), "listing calls nobody");
}

#[test]
fn a_healthy_model_is_good_and_one_that_is_gone_is_bad() {
    let bench = Bench::with([]);
    let ran = bench.hart().env("OPENAI_MODEL", "mock").args(["doctor", "--json"]).run();
    let findings: Value = serde_json::from_str(&ran.stdout).unwrap();
    let model = findings.as_array().unwrap().iter().find(|finding| finding["area"] == "model").unwrap();
    assert_eq!(model["health"], "good", "{model}");
    let ran = bench.hart().env("OPENAI_MODEL", "mistyped").arg("doctor").run();
    assert!(ran.stdout.contains("does not list `mistyped`"), "{}", ran.stdout);
    let ran = bench.hart().env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").arg("doctor").run();
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("✗ model") && ran.stdout.contains("fix: "), "{}", ran.stdout);
}

#[test]
fn no_model_is_a_warning_with_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let ran = offline(dir.path()).arg("doctor").run();
    assert!(ran.stdout.contains("! model") && ran.stdout.contains("ANTHROPIC_API_KEY"), "{}", ran.stdout);
    for area in ["config", "data", "sandbox"] {
        assert!(ran.stdout.contains(area), "{}", ran.stdout);
    }
}

#[test]
fn a_broken_configuration_is_a_finding() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.yaml"), "a: [\n").unwrap();
    let ran = offline(dir.path()).arg("doctor").run();
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("✗ config") && ran.stdout.contains("config.yaml:"), "{}", ran.stdout);
}

#[test]
fn colour_only_where_it_is_wanted() {
    let bench = Bench::with([Turn::new().text("a"), Turn::new().text("b")]);
    assert!(!bench.run("hi").success().stderr.contains('\x1b'));
    let always = bench.hart().args(["--color", "always", "run", "hi"]).run().success();
    assert!(always.stderr.contains("\x1b[2m"), "{}", always.stderr);
    assert_eq!(always.stdout, "b\n");
}
