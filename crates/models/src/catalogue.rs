//! What models can do: the bundled list, and how it is weighed against what the operator and a probe say.
//!
//! Invariant: capabilities are resolved here and nowhere else, in one order: operator, probe, catalogue, provider.

mod facts;
mod pattern;

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use facts::{Capabilities, Choice, Facts, Known, Origin, ThinkingMode, ThinkingSwitch};
use pattern::Pattern;

use crate::config::PRESETS;

/// The list that hart was built with.
static BUNDLED: LazyLock<Catalogue> = LazyLock::new(|| {
    Catalogue::parse(include_str!("../assets/catalogue.json")).unwrap_or_else(|error| {
        tracing::error!(%error, "the bundled catalogue cannot be read");
        Catalogue::default()
    })
});

/// Facts by provider and model.
#[derive(Debug, Default)]
pub struct Catalogue {
    date: String,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    provider: String,
    patterns: Vec<Pattern>,
    facts: Facts,
}

/// The file's shape. The facts of an entry stand beside its `provider` and `match`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    date: String,
    models: Vec<Map<String, Value>>,
}

/// The provider of entries that hold for a family of models wherever they are served.
const ANYWHERE: &str = "*";

/// More addresses of the providers, beside those of the presets.
const HOSTS: &[(&str, &str)] = &[
    ("api.moonshot.cn", "moonshot"),
    ("api.minimaxi.com", "minimax"),
    ("dashscope.aliyuncs.com", "qwen"),
    ("dashscope-us.aliyuncs.com", "qwen"),
    ("open.bigmodel.cn", "zai"),
    ("api.stepfun.ai", "stepfun"),
];

/// How OpenRouter calls the vendors.
const VENDORS: &[(&str, &str)] = &[
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("google", "gemini"),
    ("deepseek", "deepseek"),
    ("x-ai", "xai"),
    ("moonshotai", "moonshot"),
    ("qwen", "qwen"),
    ("z-ai", "zai"),
    ("minimax", "minimax"),
    ("mistralai", "mistral"),
    ("xiaomi", "mimo"),
    ("stepfun", "stepfun"),
];

impl Catalogue {
    pub fn bundled() -> &'static Self {
        &BUNDLED
    }

    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        let file: File = serde_json::from_str(json)?;
        let entry = |mut entry: Map<String, Value>| {
            let patterns: Vec<String> = serde_json::from_value(entry.remove("match").unwrap_or_default())?;
            Ok(Entry {
                patterns: patterns.iter().map(|text| Pattern::new(text)).collect(),
                provider: serde_json::from_value(entry.remove("provider").unwrap_or_default())?,
                facts: serde_json::from_value(Value::Object(entry))?,
            })
        };
        let entries = file.models.into_iter().map(entry).collect::<Result<_, serde_json::Error>>()?;
        Ok(Self { date: file.date, entries })
    }

    /// The month the data is from, as in `2026-11`.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// What is known of `model` at `base_url`, the most telling first.
    ///
    /// `preset` says which provider's manners the address has; whose address it is decides what more holds.
    pub fn layers(&self, preset: &str, base_url: &str, model: &str) -> Vec<(Origin, Facts)> {
        let name = plain_name(model);
        let mut layers = match owner(base_url) {
            // A reseller spells requests its own way and asks its own price: only the model itself is the same.
            Some("openrouter") => match vendor(model) {
                Some(vendor) => self.of(vendor, &name, false, |facts| facts.of_the_model()),
                None => Vec::new(),
            },
            Some(owner) => self.of(owner, &name, true, Facts::clone),
            // A model of that name behind another address is most likely that model, but not at that price.
            None => self.of(preset, &name, false, |facts| Facts { price: None, ..facts.clone() }),
        };
        layers.extend(self.of(ANYWHERE, &name, false, Facts::clone));
        layers
    }

    fn of(
        &self,
        provider: &str,
        name: &str,
        with_defaults: bool,
        take: impl Fn(&Facts) -> Facts,
    ) -> Vec<(Origin, Facts)> {
        let mut found: Vec<(usize, Origin, Facts)> = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.provider == provider) {
            let best = entry.patterns.iter().filter(|p| p.matches(name)).max_by_key(|p| p.weight());
            let Some(pattern) = best else { continue };
            if pattern.is_everything() {
                if with_defaults {
                    found.push((0, Origin::Provider(provider.to_owned()), take(&entry.facts)));
                }
            } else {
                let entry_name = format!("{provider}: {pattern}");
                found.push((pattern.weight(), Origin::Catalogue(entry_name), take(&entry.facts)));
            }
        }
        found.sort_by_key(|(weight, ..)| std::cmp::Reverse(*weight));
        found.into_iter().map(|(_, origin, facts)| (origin, facts)).collect()
    }
}

/// Whose address it is, if it is a known provider's.
fn owner(base_url: &str) -> Option<&'static str> {
    let host = |url: &str| reqwest::Url::parse(url).ok()?.host_str().map(str::to_owned);
    let asked = host(base_url)?;
    // Loopback belongs to whoever runs a server there: a preset's port is a habit, its manners are known.
    let by_preset = PRESETS.iter().find(|preset| preset.base_url.and_then(host).as_ref() == Some(&asked));
    let listed = || HOSTS.iter().find(|(name, _)| *name == asked).map(|(_, provider)| *provider);
    if matches!(asked.as_str(), "127.0.0.1" | "localhost") {
        return None;
    }
    by_preset.map(|preset| preset.name).or_else(listed)
}

fn vendor(model: &str) -> Option<&'static str> {
    let (vendor, _) = model.split_once('/')?;
    VENDORS.iter().find(|(name, _)| *name == vendor).map(|(_, provider)| *provider)
}

/// `Qwen/Qwen3-32B` is `qwen3-32b` to every pattern.
fn plain_name(model: &str) -> String {
    model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase()
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
