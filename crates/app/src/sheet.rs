//! Everything that is in force for one model, and who said so.
//!
//! Invariant: no secret is in it: of a key only where it comes from, of headers only their names.

use hart_models::config::DEFAULT_MAX_RETRIES;
use hart_models::{Catalogue, Dialect, ENTRY_KEYS, HttpSettings, KeySource, ModelConfig, Origin, Preset};
use serde_json::{Value, json};

use crate::Env;
use crate::choice::Reason;
use crate::config::{self, AppConfig};
use crate::profiles::Profiles;

/// For `hart models show`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSheet {
    pub name: String,
    /// Where it answers and how it is treated.
    pub settings: Vec<SheetRow>,
    /// What it can do.
    pub capabilities: Vec<SheetRow>,
    /// The month of the bundled catalogue.
    pub catalogue_date: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SheetRow {
    pub key: &'static str,
    /// `Null` when it is not known or not set.
    pub value: Value,
    pub from: String,
}

/// Reads the configuration's own account of who said what.
struct Writer<'a> {
    config: &'a AppConfig,
    model: &'a ModelConfig,
    /// The place in `models:`, for a model that is configured there.
    index: Option<usize>,
    /// Why there is this model, for what nobody wrote down.
    reason: String,
    rows: Vec<SheetRow>,
}

pub(crate) fn of(
    app: &AppConfig,
    env: &Env,
    profiles: &Profiles,
    model: &ModelConfig,
    reason: &Reason,
) -> ModelSheet {
    let index = match reason {
        Reason::Config(_) => app.models.iter().position(|other| other.name == model.name),
        _ => None,
    };
    let mut sheet = Writer { config: app, model, index, reason: reason.to_string(), rows: Vec::new() };
    sheet.endpoint(reason);
    sheet.way_out(env);
    sheet.manners();
    sheet.limits();
    sheet.probe(profiles);
    let settings = std::mem::take(&mut sheet.rows);
    sheet.capabilities();
    let catalogue_date = Catalogue::bundled().date().to_owned();
    ModelSheet { name: model.name.clone(), settings, capabilities: sheet.rows, catalogue_date }
}

impl Writer<'_> {
    fn row(&mut self, key: &'static str, value: impl Into<Value>, from: impl Into<String>) {
        self.rows.push(SheetRow { key, value: value.into(), from: from.into() });
    }

    /// A value of an entry's key, or its default.
    fn entry(&mut self, key: &'static str, value: impl Into<Value>, otherwise: &str) {
        let from = self.place(key).unwrap_or_else(|| otherwise.to_owned());
        self.row(key, value, from);
    }

    /// The line of the file, or the variable, that set a key of this model's entry.
    fn place(&self, key: &str) -> Option<String> {
        let index = self.index?;
        let aliases = ENTRY_KEYS.iter().find(|doc| doc.name == key).map_or(&[][..], |doc| doc.aliases);
        std::iter::once(&key).chain(aliases).find_map(|key| {
            let said = self.config.explain(&format!("models[{index}].{key}")).ok()?;
            (said.value.is_some() && said.origin != config::Origin::Default).then(|| said.origin.to_string())
        })
    }

    fn endpoint(&mut self, reason: &Reason) {
        let model = self.model;
        let preset = Preset::find(model.provider);
        self.row("name", model.name.as_str(), reason.to_string());
        self.entry("use", model.provider, &reason.to_string());
        self.entry("model", model.model.as_str(), &reason.to_string());
        let chosen =
            self.place("use_responses_api").unwrap_or_else(|| format!("provider {}", model.provider));
        self.row("dialect", format!("{:?}", model.dialect).to_lowercase(), chosen);
        let is_default = preset.and_then(|preset| preset.base_url) == Some(model.base_url.as_str());
        let otherwise = if is_default { format!("provider {}", model.provider) } else { reason.to_string() };
        self.entry("base_url", model.base_url.to_string(), &otherwise);
        let from = match model.key_source {
            KeySource::None => "no key is sent".to_owned(),
            KeySource::Env(variable) => format!("environment variable {variable}"),
            KeySource::Entry => self.place("api_key").unwrap_or_else(|| self.reason.clone()),
        };
        let value = if model.api_key.is_some() { "set, not shown" } else { "none" };
        self.row("api_key", value, from);
        if !model.headers.is_empty() {
            let names: Vec<&str> = model.headers.iter().map(|(name, _)| name.as_str()).collect();
            self.entry("default_headers", names, "configuration");
        }
    }

    fn way_out(&mut self, env: &Env) {
        let (model, network) = (self.model, &self.config.network);
        if let Some(own) = &model.proxy {
            return self.entry("proxy", format!("{own:?}"), "configuration");
        }
        let Some(proxy) = network.proxy_to(&model.base_url) else {
            return self.row("proxy", "none", "default");
        };
        let variable =
            HttpSettings::proxy_variable(&model.base_url, &|name| env.get(name).map(str::to_owned));
        let from =
            self.section("network.proxy").or_else(|| Some(format!("environment variable {}", variable?)));
        self.row("proxy", format!("{proxy:?}"), from.unwrap_or_else(|| "configuration".to_owned()));
    }

    fn limits(&mut self) {
        let model = self.model;
        let or_none = |limit: Option<u32>| limit.map_or_else(|| Value::from("none"), Value::from);
        self.entry("requests_per_minute", or_none(model.requests_per_minute), "default");
        self.entry("tokens_per_minute", or_none(model.tokens_per_minute), "default");
        let everywhere = Some(self.config.calls.max_concurrent_calls).filter(|all| *all > 0);
        match (model.max_concurrent_calls, everywhere) {
            (None, Some(all)) => {
                let from = self.section("llm_call.max_concurrent_calls");
                let from = from.unwrap_or_else(|| "configuration".to_owned());
                self.row("max_concurrent_calls", all, format!("all models together, {from}"));
            }
            (own, _) => self.entry("max_concurrent_calls", or_none(own), "default"),
        }
    }

    /// The line of the file, or the variable, that set a key outside `models`.
    fn section(&self, key: &str) -> Option<String> {
        let said = self.config.explain(key).ok()?;
        (said.value.is_some() && said.origin != config::Origin::Default).then(|| said.origin.to_string())
    }

    fn manners(&mut self) {
        let model = self.model;
        let seconds = |duration: std::time::Duration| json!(duration.as_secs_f64());
        let first = model.timeout.unwrap_or(model.stream_chunk_timeout);
        let otherwise = if model.timeout.is_none() { "stream_chunk_timeout" } else { "configuration" };
        self.entry("timeout", seconds(first), otherwise);
        self.entry("stream_chunk_timeout", seconds(model.stream_chunk_timeout), "default");
        if let Some(limit) = model.connect_timeout {
            self.entry("connect_timeout", seconds(limit), "configuration");
        }
        self.entry("total_timeout", seconds(model.total_timeout), "default");
        let retries = if model.max_retries == DEFAULT_MAX_RETRIES { "default" } else { "configuration" };
        self.entry("max_retries", model.max_retries, retries);
        self.entry("fallbacks", model.fallbacks.clone(), "default");
        self.entry("max_tokens", model.max_tokens, "the dialect's default");
        let mut from = self.place("temperature").unwrap_or_else(|| "the model's default".to_owned());
        if model.temperature.is_some() && model.capabilities.temperature.no() {
            from.push_str("; not sent: the model does not take it");
        }
        self.row("temperature", json!(model.temperature), from);
        if model.dialect == Dialect::Anthropic {
            self.entry("prompt_caching", model.prompt_caching, "default");
        } else {
            self.row("prompt_caching", "left to the server", format!("provider {}", model.provider));
        }
        if !model.extra_body.is_empty() {
            let names: Vec<&str> = model.extra_body.keys().map(String::as_str).collect();
            self.entry("extra_body", names, "configuration");
        }
        if !model.ignored.is_empty() {
            let names = model.ignored.clone();
            self.row("ignored", names, "keys of the entry that mean nothing here");
        }
    }

    fn capabilities(&mut self) {
        let capabilities = self.model.capabilities.clone();
        for (key, value, origin) in capabilities.rows() {
            let from = match origin {
                Origin::Operator => self.declared(key),
                origin => origin.to_string(),
            };
            self.row(key, value.unwrap_or_default(), from);
        }
    }

    /// Where the operator said so: an older key of the entry, or `capabilities`.
    fn declared(&self, capability: &str) -> String {
        let key = match capability {
            "vision" => "supports_vision",
            "thinking" => "supports_thinking",
            "effort" => "supports_reasoning_effort",
            "price" => "pricing",
            "thinking_switch" => "when_thinking_enabled",
            same => same,
        };
        let place =
            self.place(key).or_else(|| self.place("thinking").filter(|_| capability == "thinking_switch"));
        let place = place.or_else(|| self.place(&format!("capabilities.{capability}")));
        let unwritten = if self.index.is_some() { Origin::Operator.to_string() } else { self.reason.clone() };
        place.unwrap_or(unwritten)
    }

    fn probe(&mut self, profiles: &Profiles) {
        match profiles.of(self.model) {
            Some((path, profile)) => self.row("probed", profile.probed_at, path.display().to_string()),
            None => {
                let advice = format!("never; `hart models probe {}` does it", self.model.name);
                self.row("probed", Value::Null, advice);
            }
        }
    }
}
