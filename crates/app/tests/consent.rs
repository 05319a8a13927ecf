//! The sections that say who may do what, right and wrong.

use hart_app::Env;
use hart_app::config::{AppConfig, ConfigError, LoadOptions};

fn load(yaml: &str) -> Result<AppConfig, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.yaml"), yaml).unwrap();
    let env = Env::from_iter([("HART_NO_PROBE", "1")]);
    AppConfig::load(LoadOptions { path: None, cwd: dir.path().to_owned(), env: &env, overrides: None })
}

#[test]
fn the_three_sections_are_read() {
    let config = load(
        "interrupt_on:\n  bash: true\n  ls: false\n  write_file: {allowed_decisions: [approve], when: {path: '*.env'}}\n\
         permissions:\n  allow_bash: true\n  rules:\n    - {operations: [read], paths: [/mnt/skills/**], mode: deny}\n\
         guardrails:\n  enabled: true\n  fail_closed: false\n  provider:\n    use: deerflow.guardrails.builtin:AllowlistProvider\n\
         \x20   config: {denied_tools: [delete]}\n",
    )
    .unwrap();
    let consent = &config.consent;
    assert_eq!(consent.interrupt_on.names().collect::<Vec<_>>(), ["bash", "write_file"]);
    assert!(consent.permissions.as_ref().unwrap().allow_bash);
    let (lists, guardrail) = consent.guardrail.clone().unwrap();
    assert_eq!((lists.allowed_tools, lists.denied_tools), (None, vec!["delete".to_owned()]));
    assert_eq!((guardrail.fail_closed, guardrail.timeout_seconds), (false, 30));
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);

    let plain = load("log_level: info\n").unwrap().consent;
    assert!(plain.interrupt_on.is_empty() && plain.permissions.is_none() && plain.guardrail.is_none());
    let off = "guardrails: {enabled: false, passport: x, provider: {use: 'corp.policy:Mine'}}\n";
    assert!(load(off).unwrap().consent.guardrail.is_none());
}

#[test]
fn a_rule_that_cannot_be_kept_is_not_left_out() {
    for (yaml, problem, place) in [
        (
            "interrupt_on:\n  bash: {description: x}\n",
            "interrupt_on.bash: a map needs `allowed_decisions`",
            ":2:",
        ),
        ("interrupt_on:\n  bash: [approve]\n", "interrupt_on.bash: expected true, false or a map", ":2:"),
        ("interrupt_on: [bash]\n", "interrupt_on: expected a map, found a list", ":1:"),
        (
            "permissions:\n  rules:\n    - {operations: [read], paths: [/a], mode: deny}\n",
            "permissions: the rules do not hold for commands, and the tool bash is on",
            ":2:",
        ),
        (
            "permissions:\n  allow_bash: true\n  rules:\n    - {operations: [read], paths: [uploads/*]}\n",
            "rule 1: `uploads/*` is not an absolute path",
            ":4:",
        ),
        (
            "permissions:\n  rules:\n    - {operations: [exec], paths: [/a]}\n",
            "unknown variant `exec`",
            ":3:",
        ),
        (
            "permissions:\n  rules:\n    - {operation: [read], paths: [/a]}\n",
            "did you mean `operations`?",
            ":3:",
        ),
        (
            "guardrails:\n  enabled: true\n  provider:\n    use: corp.policy:Mine\n",
            "guardrails.provider.use: `corp.policy:Mine` is not a provider this version has",
            ":4:",
        ),
    ] {
        let error = load(yaml).unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains(&format!("config.yaml{place}")), "{yaml}\n{error}");
    }
    let without_bash = "tools: [{name: read_file}]\npermissions:\n  rules:\n    - {operations: [read], paths: [/a], mode: deny}\n";
    assert!(load(without_bash).unwrap().consent.permissions.is_some());
}

#[test]
fn a_guard_that_allows_everything_is_worth_a_word() {
    for empty in ["{enabled: true}", "{enabled: true, provider: {use: allowlist, config: {}}}"] {
        let config = load(&format!("log_level: info\nguardrails: {empty}\n")).unwrap();
        let [warning] = config.warnings.as_slice() else { panic!("{:?}", config.warnings) };
        let warning = warning.to_string();
        assert!(warning.contains("every call is allowed") && warning.contains("config.yaml:2"), "{warning}");
    }
    for lists in ["allowed_tools: []", "denied_tools: [bash]"] {
        let yaml = format!("guardrails: {{enabled: true, provider: {{config: {{{lists}}}}}}}\n");
        assert!(load(&yaml).unwrap().warnings.is_empty(), "{lists}");
    }
}
