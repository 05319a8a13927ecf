//! `hart config init|check|explain`.

use std::fs;

use super::bench::offline;

#[test]
fn init_writes_a_file_that_checks_and_never_loses_one() {
    let dir = tempfile::tempdir().unwrap();
    let hart = |args: &[&str]| offline(dir.path()).arg("config").args(args.iter().copied()).run();
    assert!(hart(&["init"]).success().stdout.contains("config.yaml"));
    hart(&["check"]).success().stdout.clear();
    fs::write(dir.path().join("config.yaml"), "log_level: debug\n").unwrap();
    let refused = hart(&["init"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    for kept in ["config.yaml.bak", "config.yaml.bak2"] {
        hart(&["init", "--force"]).success().stdout.clear();
        assert!(dir.path().join(kept).exists());
    }
    assert_eq!(fs::read_to_string(dir.path().join("config.yaml.bak")).unwrap(), "log_level: debug\n");
    fs::create_dir(dir.path().join("sub")).unwrap();
    hart(&["init", "sub"]).success().stdout.clear();
    assert!(dir.path().join("sub/config.yaml").exists());
}

#[test]
fn check_names_every_mistake() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c.yaml"), "log_levl: info\nmax_recursion_limit: many\n").unwrap();
    let ran = offline(dir.path()).args(["config", "check", "--config", "c.yaml"]).run();
    assert_eq!(ran.code, Some(2));
    for part in ["c.yaml:1:", "log_level", "c.yaml:2:", "max_recursion_limit"] {
        assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr);
    }
}

#[test]
fn check_without_a_file_is_fine() {
    let dir = tempfile::tempdir().unwrap();
    let ran = offline(dir.path()).args(["config", "check"]).run().success();
    assert!(ran.stdout.contains("defaults"), "{}", ran.stdout);
}

#[test]
fn explain_says_who_set_what_and_keeps_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let config = "log_level: debug\nmodels:\n  - {name: a, use: openai, model: m, api_key: $MY_KEY}\n";
    fs::write(dir.path().join("config.yaml"), config).unwrap();
    let hart = |args: &[&str]| {
        offline(dir.path())
            .env("MY_KEY", "sk-very-secret")
            .args(["config", "explain"])
            .args(args.iter().copied())
            .run()
    };
    let one = hart(&["log_level"]).success();
    assert!(one.stdout.contains("debug") && one.stdout.contains("config.yaml:1"), "{}", one.stdout);
    let all = hart(&[]).success();
    assert!(all.stdout.contains("MY_KEY") && all.stdout.contains("max_recursion_limit"), "{}", all.stdout);
    assert!(!all.stdout.contains("very-secret"));
    let unknown = hart(&["log_levl"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("log_level"), "{}", unknown.stderr);
}
