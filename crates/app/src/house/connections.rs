//! Connecting models, for whoever asks over HTTP.
//!
//! Invariant: a key that is kept is only tried where it belongs; what a provider says of a key is told without the key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hart_gateway::{Connect, Connections, FileError};
use hart_kernel::{ChatRequest, ModelError, ModelErrorKind, ModelSettings, Reasoning, async_trait, complete};
use hart_models::reachability::{self, Reachability};
use hart_models::{ModelConfig, PRESETS, Preset, discover};
use hart_types::Message;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::connections::Connection;
use crate::workshop::Workshop;

/// How long a short answer may take: a local server may have to load the model first.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many models of a provider are told.
const MODELS: usize = 300;
/// Nobody is called this; it stands for a model that is still to be chosen.
const ANY: &str = "any";

#[async_trait]
impl Connections for Workshop {
    fn providers(&self) -> Vec<Value> {
        let local = |preset: &Preset| discover::LOCAL_PORTS.iter().any(|(name, _)| *name == preset.name);
        let told = |preset: &Preset| {
            json!({
                "name": preset.name,
                "base_url": preset.base_url,
                "model": discover::usual_model(preset.name),
                "key": preset.key_env.first(),
                "local": local(preset),
            })
        };
        PRESETS.iter().map(told).collect()
    }

    async fn connections(&self) -> Vec<Value> {
        self.connections.all().iter().map(told).collect()
    }

    async fn test(&self, asked: Connect) -> Value {
        let name = asked.name.clone().unwrap_or_else(|| ANY.to_owned());
        let connection = self.asked_for(&name, asked);
        let key = connection.api_key.clone().filter(|key| !key.is_empty());
        match self.tried(connection).await {
            Ok(answered) => answered,
            Err((kind, why)) => {
                let why = key.map_or_else(|| why.clone(), |key| why.replace(&key, "…"));
                json!({"ok": false, "kind": kind, "detail": why})
            }
        }
    }

    async fn connect(&self, name: &str, asked: Connect) -> Result<Value, FileError> {
        if self.config.model(name).is_some() {
            return Err(FileError::Exists);
        }
        let mut connection = self.asked_for(name, asked);
        if connection.model.is_empty() {
            let usual = discover::usual_model(&connection.provider);
            connection.model =
                usual.ok_or_else(|| FileError::Refused("`model` is missing".to_owned()))?.to_owned();
        }
        connection.config().map_err(|error| FileError::Refused(error.to_string()))?;
        let (all, kept) = (Arc::clone(&self.connections), connection.clone());
        let saved = tokio::task::spawn_blocking(move || all.save(kept)).await;
        let failed = |error: String| {
            let path = self.connections.path().display();
            FileError::Failed(format!("{path} cannot be written: {error}"))
        };
        saved.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
        Ok(told(&connection))
    }

    async fn disconnect(&self, name: &str) -> Result<(), FileError> {
        let (all, name) = (Arc::clone(&self.connections), name.to_owned());
        match tokio::task::spawn_blocking(move || all.remove(&name)).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(FileError::NotFound),
            Ok(Err(error)) => Err(FileError::Failed(error.to_string())),
            Err(error) => Err(FileError::Failed(error.to_string())),
        }
    }
}

/// What went wrong, in a word that a page can translate, and in words.
type Trouble = (&'static str, String);

impl Workshop {
    /// A key that is not given is the one that is kept, if it is for the same provider at the same address.
    fn asked_for(&self, name: &str, asked: Connect) -> Connection {
        let text = |given: Option<String>| Some(given?.trim().to_owned()).filter(|text| !text.is_empty());
        let (provider, base_url) = (asked.provider.trim().to_owned(), text(asked.base_url));
        let kept = || {
            let kept = self.connections.get(name)?;
            (kept.provider == provider && kept.base_url == base_url).then_some(kept.api_key)?
        };
        Connection {
            name: name.to_owned(),
            model: text(asked.model).unwrap_or_default(),
            api_key: text(asked.api_key).or_else(kept),
            provider,
            base_url,
        }
    }

    async fn tried(&self, mut connection: Connection) -> Result<Value, Trouble> {
        let wanted = std::mem::take(&mut connection.model);
        let usual = discover::usual_model(&connection.provider);
        connection.model = [wanted.as_str(), usual.unwrap_or_default(), ANY]
            .into_iter()
            .find(|model| !model.is_empty())
            .unwrap_or(ANY)
            .to_owned();
        let config = connection.config().map_err(|error| ("entry", error.to_string()))?;
        let http = self.calls.client(&config).map_err(|error| ("entry", error.to_string()))?;
        let mut models = match reachability::check(&config, &http).await {
            Reachability::Ok { models } => models,
            // Some have no list; whether they answer is seen when they are asked.
            Reachability::Odd { .. } => Vec::new(),
            Reachability::Unauthorized { status } => {
                return Err(("key", format!("the provider refuses the key (HTTP {status})")));
            }
            Reachability::Unreachable { url, reason } => {
                return Err(("address", format!("nothing answers at {url}: {reason}")));
            }
        };
        models.retain(|model| !discover::is_embedding(model));
        models.truncate(MODELS);
        if wanted.is_empty() && !models.contains(&connection.model) {
            // The usual one is not there, or nobody knows one.
            let first = models.first().ok_or(("model", "name a model: the server lists none".to_owned()))?;
            connection.model.clone_from(first);
        }
        let config = connection.config().map_err(|error| ("entry", error.to_string()))?;
        let began = Instant::now();
        let said = asked(&config, &http).await.map_err(|trouble| match trouble {
            // What it has instead is the next step.
            ("model", why) if !models.is_empty() && !models.contains(&connection.model) => {
                ("model", format!("{why}; the server does not list `{}`", connection.model))
            }
            trouble => trouble,
        })?;
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let can = json!({
            "supports_thinking": config.supports_thinking,
            "supports_vision": config.supports_vision,
            "context_window": config.context_window,
        });
        Ok(json!({
            "ok": true, "model": connection.model, "models": models, "latency_ms": took, "said": said, "can": can,
        }))
    }
}

/// One question, asked once.
async fn asked(config: &ModelConfig, http: &reqwest::Client) -> Result<String, Trouble> {
    let request = ChatRequest {
        caller: "connection_test".into(),
        system: None,
        messages: vec![Arc::new(Message::human("Answer with the word: ready"))].into(),
        tools: Arc::new([]),
        settings: ModelSettings {
            reasoning: Reasoning::Off,
            max_tokens: Some(64),
            ..ModelSettings::default()
        },
    };
    let (model, cancel) = (hart_models::build(config, http), CancellationToken::new());
    match tokio::time::timeout(PATIENCE, complete(model.as_ref(), request, &cancel)).await {
        Ok(Ok(answer)) => Ok(answer.text().trim().chars().take(80).collect()),
        Ok(Err(error)) => Err((kind_of(&error), error.to_string())),
        Err(_) => Err(("address", format!("no answer within {} seconds", PATIENCE.as_secs()))),
    }
}

fn kind_of(error: &ModelError) -> &'static str {
    match error.kind {
        ModelErrorKind::Auth => "key",
        ModelErrorKind::Network | ModelErrorKind::Timeout(_) => "address",
        ModelErrorKind::RateLimit | ModelErrorKind::Overloaded => "busy",
        _ => "model",
    }
}

/// Without its key.
fn told(connection: &Connection) -> Value {
    let Connection { name, provider, model, base_url, api_key } = connection;
    let shown = base_url.as_deref().map(hart_models::address::shown);
    json!({"name": name, "provider": provider, "model": model, "base_url": shown, "has_key": api_key.is_some()})
}
