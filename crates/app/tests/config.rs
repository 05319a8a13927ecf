//! Loading, checking and explaining a configuration.
//!
//! Invariant: every file is in a directory of the test's own, every variable in an `Env` of its own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use hart_app::Env;
use hart_app::config::{AppConfig, BUILT_IN, ConfigError, LoadOptions, LogLevel, TEMPLATE};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tempfile::TempDir;

const SECRET: &str = "sk-live-0123456789";

fn env() -> Env {
    Env::from_iter([
        ("OPENAI_API_KEY", SECRET),
        ("ANTHROPIC_API_KEY", "sk-ant-0123456789"),
        ("DEEPSEEK_API_KEY", "sk-deep-0123456789"),
        ("MY_API_KEY", "sk-mine-0123456789"),
    ])
}

fn dir_with(text: impl AsRef<[u8]>) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.yaml"), text).unwrap();
    dir
}

fn load_in(dir: &Path, env: &Env, overrides: Option<Value>) -> Result<AppConfig, ConfigError> {
    AppConfig::load(LoadOptions { path: None, cwd: dir.to_owned(), env, overrides })
}

fn load(text: &str) -> Result<AppConfig, ConfigError> {
    load_in(dir_with(text).path(), &env(), None)
}

fn error_of(text: &str) -> String {
    load(text).unwrap_err().to_string()
}

fn warnings_of(config: &AppConfig) -> Vec<String> {
    config.warnings.iter().map(ToString::to_string).collect()
}

/// A DeerFlow file with most of what people have in theirs.
const DEERFLOW: &str = "
config_version: 34
log_level: info
token_usage: {enabled: true}
max_recursion_limit: 500

x-defaults:
models:
  - &gpt
    name: gpt-4o
    display_name: GPT-4o
    use: langchain_openai:ChatOpenAI
    model: gpt-4o
    api_key: $OPENAI_API_KEY
    max_tokens: 4096
    temperature: 0.7
    request_timeout: 600.0
    max_retries: 2
    supports_vision: true
    use_responses_api: true
    output_version: responses/v1
    pricing: {currency: USD, input_per_million: 2.5, output_per_million: 10, input_cache_hit_per_million: 1.25}
  - name: claude
    use: langchain_anthropic:ChatAnthropic
    model: claude-sonnet-4-5
    api_key: $ANTHROPIC_API_KEY
    supports_thinking: true
    when_thinking_enabled:
      thinking: {type: enabled, budget_tokens: 2000}
    when_thinking_disabled:
      thinking: {type: disabled}
  - name: deepseek-v3
    use: deerflow.models.patched_deepseek:PatchedChatDeepSeek
    model: deepseek-chat
    api_key: $DEEPSEEK_API_KEY
    base_url: https://api.deepseek.com/v1
    supports_thinking: true
    supports_reasoning_effort: true
    when_thinking_enabled:
      extra_body: {thinking: {type: enabled}}
  - <<: *gpt
    name: gpt-4o-cold
    temperature: 0
  - name: local
    use: langchain_ollama:ChatOllama
    model: qwen3:8b
    base_url: http://localhost:11434
    num_ctx: 32768
    num_predict: 2048

tool_groups:
  - name: web
  - name: file:read
  - name: file:write
  - name: bash
tools:
  - {name: web_search, group: web, use: 'deerflow.community.ddg_search.tools:web_search_tool', max_results: 5}
  - {name: web_fetch, group: web, use: 'deerflow.community.jina_ai.tools:web_fetch_tool', api_key: $JINA_API_KEY}
  - {name: ls, group: 'file:read', use: 'deerflow.sandbox.tools:ls_tool'}
  - {name: read_file, group: 'file:read', use: 'deerflow.sandbox.tools:read_file_tool'}
  - {name: glob, group: 'file:read', use: 'deerflow.sandbox.tools:glob_tool', max_results: 200}
  - {name: write_file, group: 'file:write', use: 'deerflow.sandbox.tools:write_file_tool'}
  - {name: bash, group: bash, use: 'deerflow.sandbox.tools:bash_tool'}
tool_search: {enabled: false}
loop_detection: {enabled: true, warn_threshold: 3, hard_limit: 5}

sandbox:
  use: deerflow.sandbox.local:LocalSandboxProvider
  allow_host_bash: false
  bash_output_max_chars: 10000
  environment:
    NPM_TOKEN: $MY_API_KEY

uploads: {max_files: 10}
skills: {container_path: /mnt/skills}
title: {enabled: true, max_words: 6, model_name: null}
summarization:
  enabled: true
  trigger:
    - type: tokens
      value: 15564
memory: {enabled: true, backend_config: {model: {api_key: $NOT_SET_ANYWHERE}}}
database: {backend: postgres, postgres_url: $DATABASE_URL}
run_events:
channels:
  slack: {enabled: false, bot_token: $SLACK_BOT_TOKEN}
guardrails: {enabled: false, provider: {use: 'deerflow.guardrails.builtin:AllowlistProvider'}}
subagents: {timeout_seconds: 1800}
";

#[test]
fn a_deerflow_file_loads() {
    let config = load(&DEERFLOW.replace("x-defaults:\n", "")).unwrap();
    let names: Vec<_> = config.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["gpt-4o", "claude", "deepseek-v3", "gpt-4o-cold", "local"]);
    let gpt = config.default_model().unwrap();
    assert_eq!((gpt.provider, gpt.max_tokens, gpt.temperature), ("openai", Some(4096), Some(0.7)));
    assert_eq!(gpt.api_key.as_ref().unwrap().expose_secret(), SECRET);
    assert_eq!(config.model("gpt-4o-cold").unwrap().temperature, Some(0.0));
    let claude = config.model("claude").unwrap();
    assert_eq!(claude.when_thinking_enabled["thinking"]["budget_tokens"], 2000);
    assert_eq!(config.model("local").unwrap().context_window, Some(32768));
    assert_eq!(config.tools.chosen().collect::<Vec<_>>(), ["bash", "ls", "glob", "read_file", "write_file"]);
    assert_eq!(config.sandbox.bash_output_max_chars, 10_000);
    assert_eq!(config.sandbox.environment["NPM_TOKEN"], "sk-mine-0123456789");
    assert_eq!((config.log_level, config.max_recursion_limit), (LogLevel::Info, 500));
    let trigger = &config.middleware.summarization.as_ref().unwrap().trigger;
    assert_eq!(trigger.0[0].tokens, Some(15564));
    let warnings = warnings_of(&config);
    assert_eq!(
        warnings,
        [
            "warning: config.yaml: tools without a provider in this version: web_search, web_fetch",
            "warning: config.yaml: sections not used by this version: tool_groups, tool_search, memory, database, \
             channels",
            "warning: config.yaml: keys not used by this version: tools[4].max_results, \
             models[0].output_version, models[3].output_version, skills.container_path",
        ]
    );
    let debug = format!("{config:?}");
    assert!(!debug.contains("0123456789"), "{debug}");
}

#[test]
fn a_key_that_nobody_knows_is_refused_even_when_null() {
    let error = error_of(DEERFLOW);
    assert!(error.starts_with("error: x-defaults: unknown key\n  --> config.yaml:7:1\n  help: "), "{error}");
}

#[test]
fn without_a_file_all_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let config = load_in(dir.path(), &env(), None).unwrap();
    assert!(config.models.is_empty() && config.warnings.is_empty() && config.source.is_none());
    assert_eq!(config.tools.chosen().collect::<Vec<_>>(), BUILT_IN);
    assert_eq!((config.log_level, config.max_recursion_limit), (LogLevel::Info, 1000));
    assert_eq!(config.home, dir.path().join(".hart"));
    assert_eq!(config.sandbox.bash_output_max_chars, 20_000);
}

#[test]
fn an_empty_file_is_all_defaults() {
    for text in ["", "\n", "# nothing yet\n", "models:\ntools: ~\nsandbox: null\nmemory:\nlog_level:\n"] {
        let config = load(text).unwrap();
        assert!(config.models.is_empty() && config.warnings.is_empty(), "{text:?}: {:?}", config.warnings);
        assert_eq!(config.tools.chosen().count(), BUILT_IN.len());
    }
}

#[test]
fn which_file() {
    let dir = dir_with("log_level: error\n");
    fs::write(dir.path().join("a.yaml"), "log_level: debug\n").unwrap();
    fs::write(dir.path().join("b.yaml"), "log_level: trace\n").unwrap();
    let level = |path: Option<&str>, env: &[(&str, &str)]| {
        let env = Env::from_iter(env.iter().copied());
        let path = path.map(Into::into);
        let options = LoadOptions { path, cwd: dir.path().to_owned(), env: &env, overrides: None };
        AppConfig::load(options).map(|config| config.log_level)
    };
    assert_eq!(level(None, &[]).unwrap(), LogLevel::Error);
    assert_eq!(level(None, &[("HART_CONFIG", "")]).unwrap(), LogLevel::Error);
    assert_eq!(level(None, &[("DEER_FLOW_CONFIG_PATH", "b.yaml")]).unwrap(), LogLevel::Trace);
    let both = [("DEER_FLOW_CONFIG_PATH", "b.yaml"), ("HART_CONFIG", "a.yaml")];
    assert_eq!(level(None, &both).unwrap(), LogLevel::Debug);
    assert_eq!(level(Some("b.yaml"), &both).unwrap(), LogLevel::Trace);
    let absolute = dir.path().join("a.yaml");
    assert_eq!(level(absolute.to_str(), &[]).unwrap(), LogLevel::Debug);

    let missing = level(Some("c.yaml"), &[]).unwrap_err().to_string();
    assert!(
        missing.contains("does not exist\n  --> c.yaml\n") && missing.contains("hart config init"),
        "{missing}"
    );
    let missing = level(None, &[("HART_CONFIG", "c.yaml")]).unwrap_err().to_string();
    assert!(missing.contains("unset HART_CONFIG"), "{missing}");
    assert!(level(Some("."), &[]).unwrap_err().to_string().contains("directory"));
}

#[test]
fn the_home() {
    let dir = tempfile::tempdir().unwrap();
    let home = |value: &str| load_in(dir.path(), &Env::from_iter([("HART_HOME", value)]), None).unwrap().home;
    assert_eq!(home("/data/hart"), Path::new("/data/hart"));
    assert_eq!(home("data"), dir.path().join("data"));
    assert_eq!(home(""), dir.path().join(".hart"));
}

#[test]
fn text_that_is_no_yaml() {
    let error = error_of("log_level: info\nmodels:\n  - name: a: b\n");
    assert!(
        error.contains("--> config.yaml:3:12\n  |\n3 |   - name: a: b\n  |            ^\n  help: "),
        "{error}"
    );
    assert!(error_of("log_level: info\nlog_level: debug\n").contains("second time\n  --> config.yaml:2:1"));
    let dir = dir_with(b"log_level: info\nx: \xff\xfe\n");
    let error = load_in(dir.path(), &env(), None).unwrap_err().to_string();
    assert!(error.contains("line 2 is not UTF-8"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_an_absence() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("gone.yaml", dir.path().join("config.yaml")).unwrap();
    assert!(load_in(dir.path(), &env(), None).unwrap_err().to_string().contains("does not exist"));
    let endless =
        LoadOptions { path: Some("/dev/zero".into()), cwd: "/".into(), env: &env(), overrides: None };
    assert!(AppConfig::load(endless).unwrap_err().to_string().contains("4 MiB"));
}

#[test]
fn all_problems_at_once_in_the_order_of_the_file() {
    let error = load(
        "log_level: loud
models:
  - name: a
    use: openai
    model: m
    api_key: $OPENAI_KEY_NOT_SET
    max_tokens: many
  - name: b
    use: langchain_opnai:ChatOpnAI
    model: m
  - name: c
    use: ollama
  - name: d
    use: ollama
    model: m
  - name: d
    use: ollama
    model: m
  - name: e
    use: groq
    model: m
sandbox:
  allow_hostbash: true
  use: deerflow.community.aio_sandbox:AioSandboxProvider
tools:
  - name: bahs
frob: 1
",
    )
    .unwrap_err();
    let heads: Vec<_> = error.problems().iter().map(|p| format!("{} @ {}", p.message, p.place)).collect();
    assert_eq!(
        heads,
        [
            "log_level: expected one of trace, debug, info, warn, warning, error, critical, found a string @ config.yaml:1:12",
            "models[0].api_key: environment variable OPENAI_KEY_NOT_SET is not set @ config.yaml:6:14",
            "models[0].max_tokens: expected an integer, at least 1, found a string @ config.yaml:7:17",
            "models[1].use: unknown provider `langchain_opnai:ChatOpnAI`; did you mean `langchain_openai:ChatOpenAI`? @ config.yaml:9:10",
            "models[2]: a model needs `model` @ config.yaml:11:5",
            "models[4].name: another model is called `d` already @ config.yaml:16:11",
            "models[5].api_key: not given, and environment variable GROQ_API_KEY is not set @ config.yaml:19:5",
            "sandbox.allow_hostbash: unknown key; did you mean `allow_host_bash`? @ config.yaml:23:3",
            "sandbox: `use: deerflow.community.aio_sandbox:AioSandboxProvider` is not a provider this build has @ config.yaml:24:8",
            "tools[0].name: unknown tool `bahs`; did you mean `bash`? @ config.yaml:26:5",
            "frob: unknown key @ config.yaml:27:1",
        ]
    );
    assert!(error.problems().iter().all(|problem| problem.help.is_some()));
    assert_eq!(error.to_string().matches("\n\nerror: ").count(), heads.len() - 1);
    assert!(error.to_string().contains("help: export it or remove the field"));
}

#[test]
fn overrides_lie_above_the_file() {
    let dir = dir_with(
        "log_level: info\nmodels:\n  - {name: a, use: ollama, model: m}\nsandbox: {mounts: [], use: local}\n",
    );
    let overrides = json!({
        "log_level": "debug",
        "models": [{"name": "a", "model": "n"}, {"name": "b", "use": "openai", "model": "m", "api_key": "$MY_API_KEY"}],
        "sandbox": {"use": null, "allow_host_bash": true},
    });
    let config = load_in(dir.path(), &env(), Some(overrides)).unwrap();
    assert_eq!(config.log_level, LogLevel::Debug);
    assert_eq!(config.model("a").unwrap().model, "n");
    assert_eq!(config.model("b").unwrap().api_key.as_ref().unwrap().expose_secret(), "sk-mine-0123456789");
    assert!(config.sandbox.allow_host_bash && config.sandbox.provider.is_none());

    let error = load_in(dir.path(), &env(), Some(json!({"sandbox": {"frob": 1}}))).unwrap_err().to_string();
    assert!(error.contains("sandbox.frob: unknown key") && error.contains("--> (override)"), "{error}");
    assert!(load_in(dir.path(), &env(), Some(json!([1]))).unwrap_err().to_string().contains("must be a map"));
}

#[test]
fn how_models_are_called_and_reached_is_read() {
    let text = "
llm_call: {max_concurrent_calls: 4, retry_max_attempts: 5, retry_base_delay_ms: 20, retry_cap_delay_ms: 300,
  burst_retry_base_delay_ms: 700}
circuit_breaker: {failure_threshold: 2, recovery_timeout_sec: 1.5}
network: {proxy: 'http://ada:hunter22@proxy.example:3128', no_proxy: internal.example, ca_file: certs/ca.pem}
models:
  - {name: main, use: openai, model: gpt-5, fallbacks: [spare], total_timeout: 90, connect_timeout: 3,
     requests_per_minute: 60, tokens_per_minute: 90000, max_concurrent_calls: 2, ca_file: own.pem}
  - {name: spare, use: anthropic, model: claude-sonnet-5-5, max_retries: 0, proxy: none}
";
    let dir = dir_with(text);
    let config = load_in(dir.path(), &env(), None).unwrap();
    assert_eq!(warnings_of(&config), [""; 0]);
    let millis = |duration: std::time::Duration| duration.as_millis();
    let retry = &config.calls.retry;
    assert_eq!((retry.attempts, config.calls.max_concurrent_calls), (5, 4));
    assert_eq!((millis(retry.base), millis(retry.cap), millis(retry.burst_base)), (20, 300, 700));
    assert_eq!((config.calls.failure_threshold, millis(config.calls.recovery)), (2, 1500));
    assert_eq!(config.network.ca_file, Some(dir.path().join("certs/ca.pem")));
    assert_eq!(config.network.no_proxy.as_deref(), Some("internal.example"));
    let main = config.model("main").unwrap();
    assert_eq!((main.max_retries, main.fallbacks.as_slice()), (4, &["spare".to_owned()][..]));
    assert_eq!((main.requests_per_minute, main.tokens_per_minute), (Some(60), Some(90_000)));
    assert_eq!((millis(main.total_timeout), main.connect_timeout.map(millis)), (90_000, Some(3000)));
    assert_eq!(main.ca_file, Some(dir.path().join("own.pem")));
    assert_eq!(config.model("spare").unwrap().max_retries, 0);
    let shown = format!("{config:?} {:?} {}", config.network, config.explain("network.proxy").unwrap());
    assert!(!shown.contains("hunter22"), "{shown}");
}

#[test]
fn the_environments_proxies_are_settings_like_others() {
    let env = Env::from_iter([("HTTPS_PROXY", "http://proxy.example:1"), ("no_proxy", "a.example")]);
    let config = load_in(tempfile::tempdir().unwrap().path(), &env, None).unwrap();
    assert!(config.network.https_proxy.is_some() && config.network.http_proxy.is_none());
    assert_eq!(config.network.no_proxy.as_deref(), Some("a.example"));
    let config = load_in(dir_with("network: {proxy: none}").path(), &env, None).unwrap();
    assert_eq!(config.network.https_proxy, Some(hart_models::Proxy::None));
}

#[test]
fn a_fallback_is_another_model_and_a_proxy_an_address() {
    let error = error_of(
        "models:\n  - {name: main, use: openai, model: gpt-5, fallbacks: [mian, main, spar]}\n  - {name: spare, use: openai, model: gpt-5}\n",
    );
    assert!(
        error.contains("`main` falls back to `spar`, which is no other model here; did you mean `spare`?"),
        "{error}"
    );
    assert_eq!(error.matches("falls back to").count(), 3, "{error}");
    let error = error_of("network: {proxy: 'socks5://ada:hunter22@x:1'}");
    assert!(error.contains("network.proxy") && !error.contains("hunter22"), "{error}");
    assert!(
        error_of("models: [{use: openai, model: m, fallbacks: other}]")
            .contains("expected a list of strings")
    );
    assert!(error_of("circuit_breaker: {failure_treshold: 3}").contains("did you mean `failure_threshold`?"));
}

#[test]
fn load_never_panics() {
    let corpus = tempfile::tempdir().unwrap();
    for (name, text) in
        [("deerflow", DEERFLOW), ("template", TEMPLATE), ("flow", "{a: [1, {b: *x}], c: &x 'y'}")]
    {
        fs::write(corpus.path().join(name), text).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    let dictionary: [&[u8]; 14] = [
        b"<<: *gpt",
        b"&a ",
        b"*a",
        b"$OPENAI_API_KEY",
        b"${X:-y}",
        b"- ",
        b"\n  ",
        b": ",
        b"{",
        b"[",
        b"1e999",
        b"|\n",
        b"!!int ",
        "🦌".as_bytes(),
    ];
    hart_testkit::fuzz::run(corpus.path(), 400, 7, &dictionary, |input| {
        fs::write(&path, input).unwrap();
        match load_in(dir.path(), &env(), None) {
            Ok(config) => drop(format!("{config:?} {:?}", config.explain_all())),
            Err(error) => assert!(error.to_string().starts_with("error: ")),
        }
    });
}

#[test]
fn a_mount_that_is_not_there_is_told_before_a_command_misses_it() {
    let config = load("sandbox: {mounts: [{host_path: /no/such/place, container_path: /mnt/data}]}").unwrap();
    let warnings = warnings_of(&config).join("\n");
    assert!(warnings.contains("/no/such/place does not exist"), "{warnings}");
}

#[test]
fn a_section_is_explained_with_what_may_stand_in_it() {
    let config = load("sandbox: {allow_host_bash: false}").unwrap();
    let below = |path: &str| {
        let all = config.explain_below(path).unwrap();
        all.into_iter().map(|explanation| explanation.path).collect::<Vec<_>>()
    };
    assert!(below("sandbox").contains(&"sandbox.bash_command_timeout".to_owned()));
    assert!(below("models").contains(&"models[].base_url".to_owned()));
    assert!(config.explain_below("sandbux").is_err());
}
