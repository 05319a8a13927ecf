use secrecy::ExposeSecret as _;

use super::*;
use crate::config::Dialect;

fn env(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
    move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn keys_give_models_in_a_fixed_order() {
    let found = from_env(&env(&[
        ("MOONSHOT_API_KEY", "m"),
        ("OPENAI_API_KEY", "o"),
        ("ANTHROPIC_API_KEY", "a"),
        ("GROQ_API_KEY", "  "),
    ]));
    let providers: Vec<_> = found.iter().map(|config| config.provider).collect();
    assert_eq!(providers, ["anthropic", "openai", "moonshot"]);
    assert_eq!(found[0].dialect, Dialect::Anthropic);
    assert_eq!(found[1].api_key.as_ref().unwrap().expose_secret(), "o");
    assert!(from_env(&env(&[])).is_empty());
}

#[test]
fn every_known_provider_resolves() {
    let found = from_env(&|name| name.ends_with("_API_KEY").then(|| "key".to_owned()));
    assert_eq!(found.len(), KNOWN.len());
    // The router chooses the model itself; of the others the catalogue knows how much they hold.
    let unknown = found.iter().filter(|config| config.context_window.is_none());
    assert_eq!(unknown.map(|config| config.provider).collect::<Vec<_>>(), ["openrouter"]);
}

#[test]
fn address_and_model_can_be_set() {
    let found = from_env(&env(&[
        ("OPENAI_API_KEY", "o"),
        ("OPENAI_BASE_URL", "http://localhost:9/v1/"),
        ("OPENAI_MODEL", "my-model"),
        ("ANTHROPIC_API_KEY", "a"),
        ("ANTHROPIC_MODEL", "claude-x"),
    ]));
    assert_eq!(
        (found[0].model.as_str(), found[0].base_url.as_str()),
        ("claude-x", "https://api.anthropic.com")
    );
    assert_eq!((found[1].model.as_str(), found[1].base_url.as_str()), ("my-model", "http://localhost:9/v1"));
    assert_eq!(found[1].context_window, None, "what is known of another model is not claimed of this one");
}

#[test]
fn embedders_are_known_by_their_names() {
    assert!(
        is_embedding("nomic-embed-text") && is_embedding("text-embedding-3") && is_embedding("BAAI/bge-m3")
    );
    assert!(!is_embedding("qwen3:8b"));
}
