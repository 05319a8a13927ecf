use secrecy::ExposeSecret as _;
use serde_json::json;

use super::*;

fn nothing(_: &str) -> Option<String> {
    None
}

fn entry(json: Value) -> ModelEntry {
    serde_json::from_value(json).unwrap()
}

fn resolve(json: Value) -> Result<ModelConfig, ModelConfigError> {
    ModelConfig::resolve(entry(json), &nothing)
}

#[test]
fn a_deerflow_entry_resolves() {
    let yaml = "
name: doubao
display_name: Doubao
use: deerflow.models.patched_deepseek:PatchedChatDeepSeek
model: doubao-seed-1-8
api_base: https://ark.cn-beijing.volces.com/api/v3/
api_key: secret-key-1
timeout: 600.0
max_retries: 4
supports_thinking: true
supports_vision: true
supports_reasoning_effort: true
when_thinking_enabled:
  extra_body:
    thinking:
      type: enabled
when_thinking_disabled:
top_p: 0.9
request_class: gold
pricing: {currency: CNY, input_per_million: 1}
";
    let entry: ModelEntry = serde_saphyr::from_str(yaml).unwrap();
    let config = ModelConfig::resolve(entry, &nothing).unwrap();
    assert_eq!((config.provider, config.dialect), ("deepseek", Dialect::OpenAi));
    assert_eq!(config.base_url, "https://ark.cn-beijing.volces.com/api/v3");
    assert_eq!(config.timeout, Some(Duration::from_secs(600)));
    assert_eq!(config.max_retries, 4);
    assert!(config.supports_thinking && config.supports_vision && config.send_reasoning);
    assert_eq!(config.extra_body["top_p"], 0.9);
    assert_eq!(config.ignored, ["request_class"]);
    assert_eq!(config.pricing.unwrap().input_per_million, Some(1.0));
}

#[test]
fn the_key_never_shows() {
    let given = json!({"name": "m", "use": "openai", "model": "gpt-5", "api_key": "sk-very-secret",
        "default_headers": {"x-token": "sk-very-secret"}});
    let shown = format!("{:?} {:?}", entry(given.clone()), resolve(given).unwrap());
    assert!(!shown.contains("sk-very-secret"), "{shown}");
}

#[test]
fn a_missing_key_comes_from_the_environment_or_is_an_error_that_names_it() {
    let given = || entry(json!({"name": "g", "use": "gemini", "model": "gemini-2.5-pro"}));
    let lookup = |name: &str| (name == "GOOGLE_API_KEY").then(|| " k-1 \n".to_owned());
    let config = ModelConfig::resolve(given(), &lookup).unwrap();
    assert_eq!(config.api_key.unwrap().expose_secret(), "k-1");
    let error = ModelConfig::resolve(given(), &nothing).unwrap_err().to_string();
    assert_eq!(error, "model `g` needs an API key: set `api_key`, or GEMINI_API_KEY in the environment");
    // A server of one's own may do without.
    assert!(resolve(json!({"use": "openai", "model": "m", "base_url": "http://localhost:1/v1"})).is_ok());
    assert!(resolve(json!({"use": "ollama", "model": "qwen3"})).unwrap().api_key.is_none());
}

#[test]
fn every_name_in_the_table_finds_its_preset() {
    for preset in PRESETS {
        assert_eq!(Preset::find(preset.name).unwrap().name, preset.name);
        for class in preset.classes {
            assert_eq!(Preset::find(class).unwrap().name, preset.name, "{class}");
        }
    }
    let native = "openai anthropic deepseek gemini openrouter ollama lmstudio llamacpp vllm groq mistral xai moonshot \
                  openai-compatible";
    assert!(native.split(' ').all(|name| Preset::find(name).is_some()));
    assert_eq!(Preset::find("langchain_openai.chat_models:ChatOpenAI").unwrap().name, "openai");
    assert_eq!(Preset::find("OpenAI").unwrap().name, "openai");
}

#[test]
fn an_unknown_provider_lists_what_exists() {
    let error =
        resolve(json!({"name": "x", "use": "langchain_foo:ChatFoo", "model": "m"})).unwrap_err().to_string();
    assert!(error.starts_with("model `x`: `use: langchain_foo:ChatFoo` is not known; use one of: openai, "));
    assert!(error.contains("langchain_anthropic:ChatAnthropic"), "{error}");
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let message = |json: Value| resolve(json).unwrap_err().to_string();
    assert_eq!(message(json!({})), "a model entry needs `name`");
    assert_eq!(message(json!({"name": "a", "model": "m"})), "a model entry needs `use` (model `a`)");
    assert_eq!(message(json!({"name": "a", "use": "openai"})), "a model entry needs `model` (model `a`)");
    assert!(message(json!({"model": "m", "use": "openai-compatible"})).contains("needs `base_url`"));
    assert!(
        message(json!({"model": "m", "use": "ollama", "base_url": "localhost"}))
            .contains("base_url: localhost")
    );
    let ftp = json!({"model": "m", "use": "ollama", "base_url": "ftp://x/"});
    assert!(message(ftp).contains("must start with http"));
    let zero = json!({"model": "m", "use": "ollama", "stream_chunk_timeout": 0});
    assert!(message(zero).contains("positive number of seconds"));
    let header = json!({"model": "m", "use": "ollama", "default_headers": {"a b": "c"}});
    assert!(message(header).contains("not a valid HTTP header"));
    let key = json!({"model": "m", "use": "openai", "api_key": "a\nb"});
    let error = message(key);
    assert!(error.contains("`api_key` holds a character") && !error.contains("a\nb"), "{error}");
}

#[test]
fn a_pasted_endpoint_is_a_base_url() {
    let base = |provider: &str, url: &str| {
        resolve(json!({"use": provider, "model": "m", "base_url": url, "api_key": "key"})).unwrap().base_url
    };
    assert_eq!(base("openai", "https://a/v1/chat/completions"), "https://a/v1");
    assert_eq!(base("anthropic", "https://a/v1/messages"), "https://a");
    assert_eq!(base("anthropic", "https://a/v1/"), "https://a");
}

#[test]
fn newer_openai_models_get_the_newer_word() {
    let word = |provider: &str, model: &str| {
        resolve(json!({"use": provider, "model": model, "api_key": "k"})).unwrap().max_tokens_key
    };
    assert_eq!(word("openai", "gpt-5-mini"), MaxTokensKey::MaxCompletionTokens);
    assert_eq!(word("openai", "o3"), MaxTokensKey::MaxCompletionTokens);
    assert_eq!(word("openai", "gpt-4.1"), MaxTokensKey::MaxTokens);
    assert_eq!(word("groq", "openai/gpt-oss-120b"), MaxTokensKey::MaxTokens);
    let given = json!({"use": "ollama", "model": "m", "max_completion_tokens": 9});
    let config = resolve(given).unwrap();
    assert_eq!((config.max_tokens, config.max_tokens_key), (Some(9), MaxTokensKey::MaxCompletionTokens));
}

#[test]
fn the_catalogue_lists_every_key_that_is_read() {
    // Each documented key is understood …
    for doc in ENTRY_KEYS {
        for key in std::iter::once(&doc.name).chain(doc.aliases) {
            let parsed: ModelEntry = serde_json::from_value(json!({*key: null})).unwrap_or_default();
            let known = !parsed.other.contains_key(*key) || keys::REQUEST_KEYS.contains(key);
            assert!(known, "`{key}` is documented but not read");
        }
        assert!(doc.doc.ends_with('.'), "{}", doc.name);
    }
    // … and each field of an entry is documented.
    let fields = include_str!("config/entry.rs")
        .split("pub struct ModelEntry {")
        .nth(1)
        .unwrap()
        .split('}')
        .next()
        .unwrap();
    for line in fields.lines().map(str::trim).filter(|line| line.starts_with("pub ")) {
        let field = line.strip_prefix("pub ").unwrap().split(':').next().unwrap();
        let key = match field {
            "provider" => "use",
            "other" => continue,
            other => other,
        };
        assert!(ENTRY_KEYS.iter().any(|doc| doc.name == key), "`{key}` is read but not documented");
    }
    for key in keys::REQUEST_KEYS {
        assert!(ENTRY_KEYS.iter().any(|doc| doc.name == *key), "`{key}` is read but not documented");
    }
}

#[test]
fn an_address_for_openai_clients_is_spoken_to_as_one() {
    let at = |provider: &str, url: Option<&str>| {
        let config =
            resolve(json!({"use": provider, "model": "m", "base_url": url, "api_key": "key"})).unwrap();
        (config.dialect, config.base_url.as_str().to_owned())
    };
    let google = "https://generativelanguage.googleapis.com";
    for class in ["gemini", "langchain_google_genai:ChatGoogleGenerativeAI"] {
        assert_eq!(at(class, None), (Dialect::Gemini, google.to_owned()));
    }
    assert_eq!(at("gemini", Some("https://proxy/v1beta/")), (Dialect::Gemini, "https://proxy".to_owned()));
    let compatible = format!("{google}/v1beta/openai");
    for url in [format!("{compatible}/"), format!("{compatible}/chat/completions")] {
        assert_eq!(at("gemini", Some(&url)), (Dialect::OpenAi, compatible.clone()));
    }
    for class in ["ollama", "langchain_ollama:ChatOllama"] {
        assert_eq!(at(class, None), (Dialect::Ollama, "http://127.0.0.1:11434".to_owned()));
    }
    assert_eq!(at("ollama", Some("http://box:1/api/chat")), (Dialect::Ollama, "http://box:1".to_owned()));
    assert_eq!(at("ollama", Some("http://box:1/v1/")), (Dialect::OpenAi, "http://box:1/v1".to_owned()));
}

#[test]
fn ollama_has_a_window_that_an_agent_fits_into() {
    let window = |json: Value| resolve(json).unwrap().context_window;
    assert_eq!(window(json!({"use": "ollama", "model": "m"})), Some(32_768));
    assert_eq!(window(json!({"use": "ollama", "model": "m", "num_ctx": 4096})), Some(4096));
    assert_eq!(window(json!({"use": "ollama", "model": "m", "base_url": "http://box:1/v1"})), None);
}

#[test]
fn what_a_model_could_hold_is_not_asked_of_a_machine_unless_its_owner_says_so() {
    let window = |known: u32, more: Value| {
        let mut entry = json!({"use": "ollama", "model": "m"});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let config = resolve(entry).unwrap();
        let profile = json!({"base_url": config.base_url.as_str(), "model": "m", "provider": "ollama",
            "probed_at": "2026-11-02T10:00:00Z", "checks": [], "facts": {"context_window": known}});
        config.with_profile(&serde_json::from_value(profile).unwrap()).context_window
    };
    assert_eq!(window(262_144, json!({})), Some(32_768));
    assert_eq!(window(8192, json!({})), Some(8192));
    assert_eq!(window(262_144, json!({"context_window": 131_072})), Some(131_072));
    assert_eq!(window(262_144, json!({"capabilities": {"context_window": 65_536}})), Some(65_536));
}

#[test]
fn text_is_searched_where_open_models_are_served_or_as_the_user_says() {
    use crate::CallsInText::{Always, Off, UnlessNative};
    let text = |entry: Value| {
        let entry: ModelEntry = serde_json::from_value(entry).unwrap();
        ModelConfig::resolve(entry, &|_| Some("key".into())).unwrap().text
    };
    let of = |provider: &str, more: Value| {
        let mut entry =
            json!({"name": "m", "model": "x", "use": provider, "base_url": "http://127.0.0.1:1/v1"});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let text = text(entry);
        (text.calls, text.think)
    };
    for provider in ["ollama", "lmstudio", "llamacpp", "vllm", "openai-compatible", "openrouter", "openai"] {
        assert_eq!(of(provider, json!({})), (UnlessNative, true), "{provider}");
    }
    for provider in ["anthropic", "gemini", "deepseek", "moonshot", "mistral", "xai"] {
        assert_eq!(of(provider, json!({})), (Off, false), "{provider}");
    }
    assert_eq!(of("groq", json!({})), (Off, true));
    let own = text(json!({"name": "m", "model": "x", "use": "openai"}));
    assert_eq!((own.calls, own.think), (Off, false), "OpenAI itself calls natively");
    assert_eq!(of("deepseek", json!({"text_tool_calls": "on", "think_tags": true})), (Always, true));
    assert_eq!(of("ollama", json!({"text_tool_calls": false, "think_tags": "off"})), (Off, false));
    let wrong = serde_json::from_value::<ModelEntry>(json!({"text_tool_calls": "maybe"}));
    assert!(wrong.err().unwrap().to_string().contains("`auto`, `on` or `off`"));
}
