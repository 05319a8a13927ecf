use secrecy::ExposeSecret as _;

use super::*;
use crate::config::Dialect;

fn env(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
    move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

fn models(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<ModelConfig> {
    from_env(lookup).into_iter().collect::<Result<_, _>>().unwrap()
}

#[test]
fn keys_give_models_in_a_fixed_order() {
    let found = models(&env(&[
        ("MOONSHOT_API_KEY", "m"),
        ("OPENAI_API_KEY", "o"),
        ("ANTHROPIC_API_KEY", "a"),
        ("GROQ_API_KEY", "  "),
    ]));
    let providers: Vec<_> = found.iter().map(|config| config.provider).collect();
    assert_eq!(providers, ["anthropic", "openai", "moonshot"]);
    assert_eq!(found[0].dialect, Dialect::Anthropic);
    assert_eq!(found[1].api_key.as_ref().unwrap().expose_secret(), "o");
    assert!(models(&env(&[])).is_empty());
}

#[test]
fn every_known_provider_resolves() {
    let found = models(&|name| name.ends_with("_API_KEY").then(|| "key".to_owned()));
    assert_eq!(found.len(), KNOWN.len());
    // The router chooses the model itself; of the others the catalogue knows how much they hold.
    let unknown = found.iter().filter(|config| config.context_window.is_none());
    assert_eq!(unknown.map(|config| config.provider).collect::<Vec<_>>(), ["openrouter"]);
}

#[test]
fn address_and_model_can_be_set() {
    let found = models(&env(&[
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
fn a_variable_that_cannot_be_used_is_named() {
    let wrong = |pairs| from_env(&env(pairs)).remove(0).unwrap_err();
    let address = wrong(&[("OPENAI_API_KEY", "o"), ("OPENAI_BASE_URL", "localhost")]);
    assert_eq!(address.variable, "OPENAI_BASE_URL");
    assert!(address.to_string().contains("OPENAI_BASE_URL is wrong: `base_url: localhost`"), "{address}");
    let key = wrong(&[("GOOGLE_API_KEY", "a\u{7f}b"), ("GOOGLE_GEMINI_BASE_URL", "http://h")]);
    assert_eq!(key.variable, "GOOGLE_API_KEY");
    assert!(!key.to_string().contains('\u{7f}'), "{key}");
    // What is not wanted is not looked at.
    assert!(from_env(&env(&[("OPENAI_BASE_URL", "localhost")])).is_empty());
}

#[test]
fn embedders_are_known_by_their_names() {
    assert!(
        is_embedding("nomic-embed-text") && is_embedding("text-embedding-3") && is_embedding("BAAI/bge-m3")
    );
    assert!(!is_embedding("qwen3:8b"));
}
