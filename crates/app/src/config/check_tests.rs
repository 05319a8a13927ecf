use serde_json::json;

use super::*;
use crate::Env;
use crate::config::{raw, resolve};

fn checked(text: &str) -> (Value, Findings, Vec<String>) {
    let env = Env::from_iter([("PORT", "12"), ("WORD", "twelve-monkeys"), ("YES", "yes")]);
    let mut node = raw::parse(text, "config.yaml").unwrap();
    let mut findings = Findings { file: Some("config.yaml".to_owned()), ..Findings::default() };
    let mut unused = Vec::new();
    shape(&mut node, &Path::default(), &mut findings, &mut unused);
    resolve::resolve(&mut node, &Path::default(), &env, &mut findings);
    types(&mut node, &Path::default(), &mut findings);
    (node.to_json(), findings, unused)
}

fn messages(text: &str) -> Vec<String> {
    checked(text).1.problems.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn unknown_keys_are_named_with_the_nearest() {
    for (text, message) in [
        (
            "sandbox:\n  allow_hostbash: true",
            "sandbox.allow_hostbash: unknown key; did you mean `allow_host_bash`?",
        ),
        ("modles: []", "modles: unknown key; did you mean `models`?"),
        ("models:\n  - name: a\n    bas_url: x", "models[0].bas_url: unknown key; did you mean `base_url`?"),
        ("frobnicate: 1", "frobnicate: unknown key"),
        (
            "sandbox:\n  mounts:\n    - hostpath: x",
            "sandbox.mounts[0].hostpath: unknown key; did you mean `host_path`?",
        ),
        ("sandbox.use: local", "sandbox.use: unknown key; did you mean `sandbox`?"),
    ] {
        assert_eq!(messages(text), [message], "{text}");
    }
}

#[test]
fn an_unknown_key_has_its_line() {
    let problem = checked("log_level: info\nsandbox:\n  use: local\n  frob: 1\n").1.problems.remove(0);
    assert!(problem.to_string().contains("--> config.yaml:4:3"), "{problem}");
    assert!(problem.help.unwrap().contains("allow_host_bash"));
}

#[test]
fn what_deerflow_knows_is_set_aside() {
    let (value, findings, unused) = checked(
        "memory: {enabled: true, x: $UNSET}\nchannels: {a: 1}\nsandbox: {image: x, use: local}\nplugins:\n",
    );
    assert!(findings.problems.is_empty(), "{:?}", findings.problems);
    assert_eq!(value, json!({"sandbox": {"use": "local"}}));
    assert_eq!(unused, ["memory", "channels", "sandbox.image"]);
}

#[test]
fn further_keys_of_a_model_are_only_mentioned() {
    let (_, findings, unused) = checked("models:\n  - {name: a, organization: x, output_version: v1}\n");
    assert!(findings.problems.is_empty());
    assert_eq!(unused, ["models[0].output_version"]);
    assert_eq!(findings.warnings[0].message, "models[0].organization: not a key this version uses");
}

#[test]
fn wrong_types() {
    for (text, message) in [
        (
            "log_level: 3",
            "log_level: expected one of trace, debug, info, warn, warning, error, critical, found an integer",
        ),
        ("max_recursion_limit: 0", "max_recursion_limit: expected an integer, at least 1, found 0"),
        ("max_recursion_limit: 1.5", "max_recursion_limit: expected an integer, at least 1, found 1.5"),
        ("max_recursion_limit: ten", "max_recursion_limit: expected an integer, at least 1, found a string"),
        (
            "sandbox: {bash_command_timeout: 0}",
            "sandbox.bash_command_timeout: expected a number of seconds above zero, found 0",
        ),
        ("models: {name: a}", "models: expected a list of maps, found a map"),
        ("models: [gpt]", "models[0]: expected a map, found a string"),
        ("sandbox: []", "sandbox: expected a map, found a list"),
        (
            "sandbox: {allow_host_bash: maybe}",
            "sandbox.allow_host_bash: expected a boolean (true or false), found a string",
        ),
        ("sandbox: {environment: {A: 1}}", "sandbox.environment.A: expected a string, found an integer"),
        (
            "sandbox: {mounts: [{read_only: 1}]}",
            "sandbox.mounts[0].read_only: expected a boolean (true or false), found an integer",
        ),
        ("models: [{api_key: 123}]", "models[0].api_key: expected a string, found an integer"),
        (
            "models: [{max_tokens: $WORD}]",
            "models[0].max_tokens: expected an integer, at least 1, found a string in $WORD",
        ),
    ] {
        assert_eq!(messages(text), [message], "{text}");
    }
}

#[test]
fn variables_and_floats_become_what_is_expected() {
    let (value, findings, _) = checked(
        "max_recursion_limit: 1e3\nmodels: [{max_tokens: $PORT, temperature: $PORT, supports_vision: $YES}]\nlog_level: INFO\n",
    );
    assert!(findings.problems.is_empty(), "{:?}", findings.problems);
    assert_eq!(value["max_recursion_limit"], json!(1000));
    assert_eq!(value["models"][0], json!({"max_tokens": 12, "temperature": 12.0, "supports_vision": true}));
}

#[test]
fn an_unset_variable_is_reported_once() {
    assert_eq!(messages("max_recursion_limit: $UNSET_HERE").len(), 1);
}

#[test]
fn null_means_default() {
    let (value, findings, _) = checked("log_level:\nmodels: ~\nsandbox:\n  use: ~\n  mounts:\n");
    assert!(findings.problems.is_empty());
    assert_eq!(value, json!({"sandbox": {}}));
}
