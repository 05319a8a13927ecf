use std::fs;

use serde_json::json;

use super::*;
use crate::Env;
use crate::config::LoadOptions;

const SECRET: &str = "sk-live-0123456789";

fn env() -> Env {
    Env::from_iter([
        ("OPENAI_API_KEY", SECRET),
        ("ANTHROPIC_API_KEY", "sk-ant-0123456789"),
        ("DEEPSEEK_API_KEY", "sk-deep-0123456789"),
        ("MY_API_KEY", "sk-mine-0123456789"),
    ])
}

fn load_in(dir: &std::path::Path, env: &Env, overrides: Option<Value>) -> Result<AppConfig, ConfigError> {
    AppConfig::load(LoadOptions { path: None, cwd: dir.to_owned(), env, overrides })
}

fn dir_with(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.yaml"), text).unwrap();
    dir
}

#[test]
fn explain_says_who_set_it() {
    let dir = dir_with(
        "models:
  - {name: a, use: openai, model: m, base_url: 'https://me:hunter2@h/v1', default_headers: {X-Auth: hunter2}}
  - {name: b, use: openai, model: m, api_key: literal-secret, display_name: $MY_API_KEY}
sandbox:
  environment: {TOKEN: $MY_API_KEY, PLAIN: hunter2}
",
    );
    let overrides = json!({"sandbox": {"allow_host_bash": true}});
    let env = env();
    let options = LoadOptions {
        path: None,
        cwd: dir.path().to_owned(),
        env: &env,
        overrides: Some(json!({"models": [{"name": "a", "api_key": SECRET}]})),
    };
    assert!(!format!("{options:?}").contains(SECRET));
    let config = load_in(dir.path(), &env, Some(overrides)).unwrap();
    let file = |line| Origin::File { path: dir.path().join("config.yaml"), line };
    for (path, value, origin) in [
        ("log_level", json!("info"), Origin::Default),
        ("sandbox.bash_command_timeout", json!(600), Origin::Default),
        ("sandbox.allow_host_bash", json!(true), Origin::Override),
        ("models[0].model", json!("m"), file(2)),
        ("models[0].base_url", json!("https://********@h/v1"), file(2)),
        ("models[0].api_key", json!("********"), Origin::Env("OPENAI_API_KEY".to_owned())),
        ("models[0].default_headers", json!({"X-Auth": "********"}), file(2)),
        ("models[1].api_key", json!("********"), file(3)),
        ("models[1].display_name", json!("********"), Origin::Env("MY_API_KEY".to_owned())),
        ("sandbox.environment.TOKEN", json!("********"), Origin::Env("MY_API_KEY".to_owned())),
        ("sandbox.environment", json!({"TOKEN": "********", "PLAIN": "********"}), file(5)),
    ] {
        let explanation = config.explain(path).unwrap();
        assert_eq!((explanation.value, explanation.origin), (Some(value), origin), "{path}");
    }
    assert_eq!(config.explain("models[].base_url").unwrap().value, None);
    let memory = config.explain("memory").unwrap();
    assert!(!memory.used && memory.to_string().contains("not used by this version"));
    for (path, message) in [
        ("sandbox.allow_hostbash", "did you mean `sandbox.allow_host_bash`?"),
        ("models[7].name", "`models` has 2"),
        ("frobnicate", "unknown key"),
        ("..", "unknown key"),
    ] {
        let error = config.explain(path).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let all: String = config.explain_all().iter().map(|explanation| format!("{explanation}\n\n")).collect();
    assert!(
        all.contains("models[1].name = \"b\"") && all.contains("sandbox.ls_output_max_chars = 20000"),
        "{all}"
    );
    for hidden in ["hunter2", "literal-secret", "0123456789"] {
        assert!(!all.contains(hidden) && !format!("{config:?}").contains(hidden), "{hidden}: {all}");
    }
}

#[test]
fn no_secret_in_any_message() {
    for text in [
        "models: [{name: $OPENAI_API_KEY, use: $OPENAI_API_KEY, model: m}]",
        "models: [{name: a, use: openai, model: m, max_tokens: $OPENAI_API_KEY}]",
        "models: [{name: a, use: openai, model: m, base_url: $OPENAI_API_KEY}]",
        "models: [{name: a, use: openai, model: m, base_url: 'ftp://me:sk-live-0123456789@h'}]",
        "models: [{name: a, use: openai, model: m, default_headers: {Authorization: \"sk-live-0123456789\\n\"}}]",
        "models: [{name: a, use: openai, model: m, api_key: [sk-live-0123456789]}]",
        "log_level: $OPENAI_API_KEY",
        "sandbox: {use: $OPENAI_API_KEY}",
        "sandbox: {environment: {'A=': $OPENAI_API_KEY}}",
        "sandbox: {mounts: [{host_path: $OPENAI_API_KEY, container_path: $OPENAI_API_KEY}]}",
        "api_key: 'sk-live-0123456789'x",
    ] {
        let dir = dir_with(text);
        let error = load_in(dir.path(), &env(), None).unwrap_err();
        let all = format!("{error} {error:?}");
        assert!(!all.contains(SECRET), "{text}: {all}");
        let options = LoadOptions { path: None, cwd: dir.path().to_owned(), env: &env(), overrides: None };
        let report = AppConfig::check(options);
        assert!(!report.is_ok() && !format!("{report:?}").contains(SECRET), "{report:?}");
    }
}
