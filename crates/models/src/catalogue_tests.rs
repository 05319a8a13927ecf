use serde_json::json;

use super::*;
use crate::config::{ModelConfig, ModelEntry};
use crate::probe::Profile;

fn config(entry: Value) -> ModelConfig {
    let mut full = json!({"api_key": "k"});
    full.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
    let entry: ModelEntry = serde_json::from_value(full).unwrap();
    ModelConfig::resolve(entry, &|_| None).unwrap()
}

fn profile(config: &ModelConfig, facts: Value) -> Profile {
    let profile = json!({"base_url": config.base_url.as_str(), "model": config.model, "provider": config.provider,
        "probed_at": "2026-11-02T10:00:00Z", "checks": [], "facts": facts});
    serde_json::from_value(profile).unwrap()
}

#[test]
fn operator_then_probe_then_catalogue_then_provider() {
    let base = json!({"use": "anthropic", "model": "claude-sonnet-5-5"});
    let declared = json!({"use": "anthropic", "model": "claude-sonnet-5-5", "context_window": 32_000});
    let probed = json!({"context_window": 4096, "parallel_calls": false});
    let catalogued = || Origin::Catalogue("anthropic: claude-sonnet-5?5*".to_owned());
    let probe = || Origin::Probe("2026-11-02".to_owned());
    let table = [
        (&base, None, Some(1_000_000), catalogued()),
        (&base, Some(&probed), Some(4096), probe()),
        // What the catalogue knows of a model never outweighs what its operator said.
        (&declared, None, Some(32_000), Origin::Operator),
        (&declared, Some(&probed), Some(32_000), Origin::Operator),
    ];
    for (entry, facts, window, origin) in table {
        let mut config = config(entry.clone());
        if let Some(facts) = facts {
            let profile = profile(&config, facts.clone());
            config = config.with_profile(&profile);
        }
        assert_eq!((config.context_window, &config.capabilities.context_window.origin), (window, &origin));
        assert_eq!(config.profile().context_window, window);
        let parallel = &config.capabilities.parallel_calls;
        let want = match facts {
            Some(_) => (Some(false), probe()),
            None => (Some(true), Origin::Provider("anthropic".to_owned())),
        };
        assert_eq!((parallel.value, parallel.origin.clone()), want);
    }
    let unknown = config(json!({"use": "openai-compatible", "model": "m", "base_url": "http://h/v1"}));
    assert_eq!((unknown.context_window, unknown.supports_vision), (None, false));
    assert_eq!(unknown.capabilities.context_window.origin, Origin::Unknown);
}

#[test]
fn a_profile_of_another_endpoint_or_model_is_ignored() {
    let here = config(json!({"use": "openai-compatible", "model": "m", "base_url": "http://h/v1"}));
    let probed = profile(&here, json!({"vision": true}));
    assert!(here.with_profile(&probed).supports_vision);
    for other in [
        json!({"use": "openai-compatible", "model": "m", "base_url": "http://h:1/v1"}),
        json!({"use": "openai-compatible", "model": "m2", "base_url": "http://h/v1"}),
    ] {
        assert!(!config(other).with_profile(&probed).supports_vision);
    }
}

#[test]
fn the_old_switches_are_the_operators_word() {
    let base = json!({"use": "openai", "model": "gpt-5.1"});
    let with = |more: Value| {
        let mut entry = base.clone();
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config(entry)
    };
    let plain = with(json!({}));
    assert!(plain.supports_vision && plain.supports_thinking && plain.supports_reasoning_effort);
    let none = with(
        json!({"supports_vision": false, "supports_thinking": false, "supports_reasoning_effort": false}),
    );
    assert!(!none.supports_vision && !none.supports_thinking && !none.supports_reasoning_effort);
    assert_eq!(none.capabilities.effort.origin, Origin::Operator);
    // Yes says less than what the catalogue knows: which words there are, and that it cannot be kept from it.
    let always = config(
        json!({"use": "openai", "model": "gpt-5", "supports_thinking": true, "supports_reasoning_effort": true}),
    );
    assert_eq!(always.capabilities.thinking.value, Some(ThinkingMode::Always));
    assert_eq!(always.capabilities.effort.value.unwrap()[0], "minimal");
    let told = with(
        json!({"capabilities": {"temperature": true, "max_output": 5}, "pricing": {"input_per_million": 7.0}}),
    );
    assert_eq!(
        (told.capabilities.temperature.value, told.capabilities.max_output.value),
        (Some(true), Some(5))
    );
    assert_eq!(told.pricing.unwrap().input_per_million, Some(7.0));
    let wrong = json!({"use": "openai", "model": "m", "capabilities": {"visoin": true}});
    let error = serde_json::from_value::<ModelEntry>(wrong).unwrap_err().to_string();
    assert!(error.contains("visoin") && error.contains("vision"), "{error}");
}

#[test]
fn an_address_tells_more_than_a_class() {
    // DeerFlow's configurations use one class for many providers.
    let kimi =
        config(json!({"use": "deerflow.models.patched_deepseek:PatchedChatDeepSeek", "model": "kimi-k2.5",
        "base_url": "https://api.moonshot.cn/v1"}));
    assert_eq!(kimi.capabilities.context_window.origin.to_string(), "catalogue (moonshot: kimi-k2.5*)");
    assert_eq!(kimi.when_thinking_disabled["thinking"]["type"], "disabled");
    // A reseller serves the same model its own way.
    let resold = config(json!({"use": "openrouter", "model": "anthropic/claude-sonnet-4.5"}));
    assert_eq!((resold.context_window, resold.supports_vision), (Some(200_000), true));
    assert_eq!((resold.pricing, resold.capabilities.tool_choice.value), (None, None));
    // A proxy is believed to serve what it says, not at what price.
    let proxied =
        config(json!({"use": "anthropic", "model": "claude-sonnet-4-5", "base_url": "http://proxy"}));
    assert_eq!((proxied.context_window, proxied.pricing), (Some(200_000), None));
    assert_eq!(proxied.capabilities.text_tool_calls.value, None, "nothing is claimed of a stranger's server");
    // How much a server of one's own holds is for it to say.
    let local = config(json!({"use": "vllm", "model": "Qwen/Qwen3-32B"}));
    assert_eq!(local.context_window, None);
    assert_eq!(local.capabilities.text_tool_calls.value, Some(true));
    assert_eq!(local.when_thinking_enabled["chat_template_kwargs"]["enable_thinking"], true);
    let ollama = config(json!({"use": "ollama", "model": "gpt-oss:20b"}));
    assert_eq!(ollama.capabilities.thinking.value, Some(ThinkingMode::Always));
}

#[test]
fn the_data_is_sound() {
    let catalogue = Catalogue::bundled();
    assert!(catalogue.entries.len() > 150, "the file was not read");
    assert_eq!(catalogue.date().len(), "2026-11".len());
    let words = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    for entry in &catalogue.entries {
        let Entry { provider, patterns, facts } = entry;
        let name = format!("{provider} {}", patterns[0]);
        assert!(provider == ANYWHERE || PRESETS.iter().any(|preset| preset.name == provider), "{name}");
        assert_ne!(facts, &Facts::default(), "{name} says nothing");
        for pattern in patterns {
            let text = pattern.to_string();
            assert_eq!(text, text.to_ascii_lowercase(), "{name}");
            assert!(!text.contains('/'), "{name}: a vendor's prefix is never matched");
            assert!(!pattern.is_everything() || patterns.len() == 1, "{name}");
        }
        let (window, output) = (facts.context_window, facts.max_output);
        assert!(window.is_none_or(|n| (8_000..=2_100_000).contains(&n)), "{name}");
        assert!(output.zip(window).is_none_or(|(output, window)| output <= window), "{name}");
        assert!(facts.tool_choice.as_ref().is_none_or(|taken| taken.contains(&Choice::Auto)), "{name}");
        assert!(facts.effort.iter().flatten().all(|word| words.contains(&word.as_str())), "{name}");
        if let Some(price) = &facts.price {
            let (input, output) = (price.input_per_million.unwrap(), price.output_per_million.unwrap());
            assert!(input > 0.0 && input <= output && output <= 600.0, "{name}");
            assert!(price.input_cache_hit_per_million.is_none_or(|hit| hit > 0.0 && hit < input), "{name}");
            assert_eq!(price.currency.as_deref(), Some("USD"), "{name}");
            assert!(price.other.is_empty(), "{name}");
        }
        if provider == ANYWHERE || patterns[0].is_everything() {
            assert_eq!(
                (window, output, &facts.price),
                (None, None, &None),
                "{name}: that depends on the server"
            );
        }
    }
}

#[test]
fn no_two_patterns_contradict_each_other() {
    let entries = &Catalogue::bundled().entries;
    let all =
        || entries.iter().enumerate().flat_map(|(n, e)| e.patterns.iter().map(move |p| (n, &e.provider, p)));
    for (n, provider, a) in all() {
        for (m, _, b) in all().filter(|(m, other, _)| *m > n && *other == provider) {
            assert!(
                !a.overlaps(b) || a.weight() != b.weight(),
                "{provider}: entries {n} and {m}: a name can fit both {a} and {b}, and neither says more"
            );
        }
    }
    let count = all().count();
    let unique: std::collections::BTreeSet<String> =
        all().map(|(_, p, pattern)| format!("{p} {pattern}")).collect();
    assert_eq!(unique.len(), count);
}

#[test]
fn every_fact_has_a_name_and_a_row() {
    let known = Capabilities::resolve(&[]);
    let rows: Vec<_> = known.rows().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(rows, Facts::NAMES);
    assert!(known.rows().iter().all(|(_, value, origin)| value.is_none() && **origin == Origin::Unknown));
}
