//! Which model works: the one that was named, or the best there is.
//!
//! Invariant: the order is configuration, connected models, keys in the environment, servers on loopback, the demo; and
//! whoever asks is told why it became this one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hart_kernel::ChatModel;
use hart_models::discover::EnvError;
use hart_models::replay::normalise;
use hart_models::{Cassette, CassetteError, HttpError, ModelConfig, Preset, Recorder, Replay, discover};
use hart_types::Message;

use crate::connections::Connection;
use crate::demo::{self, DemoModel};
use crate::wire;
use crate::workshop::Workshop;

/// A model, and why it is this one.
#[derive(Clone)]
pub struct ModelChoice {
    pub name: String,
    pub reason: Reason,
    pub(crate) model: Arc<dyn ChatModel>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The program that embeds hart brought it.
    Given,
    Config(PathBuf),
    /// Somebody connected it on the web page.
    Connected(PathBuf),
    /// The variable that holds the key.
    Key(&'static str),
    /// The server's name and address.
    Local {
        server: &'static str,
        address: String,
    },
    Cassette(PathBuf),
    Demo,
}

/// One line of `hart models`.
#[derive(Clone, Debug)]
pub struct ModelListing {
    pub name: String,
    pub provider: String,
    /// What the provider calls it.
    pub model: String,
    pub description: Option<String>,
    pub reason: Reason,
    pub is_default: bool,
    /// With what is known of it; none where nobody configured it.
    pub(crate) config: Option<ModelConfig>,
}

#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    #[error("there is no model `{name}`; there is: {}", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    /// There is nothing to be said of a recording.
    #[error("no model is connected; the demo is a recording")]
    NotConnected,
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Env(#[from] EnvError),
}

impl ModelChoice {
    pub fn is_demo(&self) -> bool {
        self.reason == Reason::Demo
    }

    /// Answers from a recording only.
    pub fn replay(path: &Path) -> Result<Self, ChooseError> {
        let model = Arc::new(Replay::new(recording(path)?));
        Ok(Self { name: "replay".to_owned(), reason: Reason::Cassette(path.to_owned()), model })
    }

    /// The same model, with every call written to a cassette.
    pub fn record(mut self, path: &Path) -> Result<Self, ChooseError> {
        self.model = Arc::new(Recorder::new(self.model, path)?);
        Ok(self)
    }

    /// A model that is there already.
    pub fn given(model: Arc<dyn ChatModel>) -> Self {
        Self { name: model.profile().name.clone(), reason: Reason::Given, model }
    }

    /// What the model itself is called, where it stands for a named one.
    pub fn model_name(&self) -> String {
        self.model.profile().name.clone()
    }

    pub(crate) fn demo() -> Self {
        Self { name: demo::NAME.to_owned(), reason: Reason::Demo, model: Arc::new(DemoModel::new()) }
    }
}

impl fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelChoice")
            .field("name", &self.name)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => f.write_str("given by the program"),
            Self::Config(path) => write!(f, "from {}", path.display()),
            Self::Connected(path) => write!(f, "connected, in {}", path.display()),
            Self::Key(variable) => write!(f, "{variable} is set"),
            Self::Local { server, address } => write!(f, "{server} answers on {address}"),
            Self::Cassette(path) => write!(f, "played from {}", path.display()),
            Self::Demo => f.write_str("recorded tasks"),
        }
    }
}

/// A cassette, or the one in what `hart export` wrote.
fn recording(path: &Path) -> Result<Cassette, CassetteError> {
    let loaded = Cassette::load(path);
    if loaded.is_ok() {
        return loaded;
    }
    let bundle =
        std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    match bundle.as_ref().and_then(|bundle| bundle.get("cassette")) {
        Some(cassette) => Cassette::parse(&cassette.to_string()),
        None => loaded,
    }
}

/// What a model said in a conversation, as a cassette that plays it again.
pub fn cassette_of(messages: &[Message]) -> String {
    let messages: Vec<Arc<Message>> = messages.iter().cloned().map(Arc::new).collect();
    let mut cassette = Cassette::default();
    for (at, answer) in messages.iter().enumerate().filter(|(_, message)| message.as_ai().is_some()) {
        cassette.record("lead", normalise(messages.iter().take(at)), (**answer).clone());
    }
    cassette.to_json()
}

pub(crate) async fn choose(workshop: &Workshop, name: Option<&str>) -> Result<ModelChoice, ChooseError> {
    if let Some(given) = workshop.extensions.model.as_ref().map(|model| ModelChoice::given(Arc::clone(model)))
        && name.is_none_or(|name| name == given.name)
    {
        return Ok(given);
    }
    Ok(match find(workshop, name).await? {
        Some((config, reason)) => {
            ModelChoice { name: config.name.clone(), reason, model: wire::model(workshop, &config)? }
        }
        None => ModelChoice::demo(),
    })
}

/// The configuration of the chosen model, which must not be the demo.
pub(crate) async fn connected(
    workshop: &Workshop,
    name: Option<&str>,
) -> Result<(ModelConfig, Reason), ChooseError> {
    find(workshop, name).await?.ok_or(ChooseError::NotConnected)
}

/// The chosen model with what a probe found of it; `None` for the demo.
async fn find(workshop: &Workshop, name: Option<&str>) -> Result<Option<(ModelConfig, Reason)>, ChooseError> {
    if name == Some(demo::NAME) {
        return Ok(None);
    }
    let candidates =
        Candidates::until(workshop, |config| name.is_none_or(|name| name == config.name)).await?;
    match (candidates.found, name) {
        (Some((config, reason)), _) => {
            let config = workshop.profiles.apply(config);
            Ok(Some((config, reason)))
        }
        (None, None) => Ok(None),
        (None, Some(name)) => {
            let given = workshop.extensions.model.iter().map(|model| model.profile().name.as_str());
            let passed = candidates.passed.iter().map(|(config, _)| config.name.as_str());
            let known = given.chain(passed).chain([demo::NAME]).map(str::to_owned).collect();
            Err(ChooseError::Unknown { name: name.to_owned(), known })
        }
    }
}

pub(crate) async fn list(workshop: &Workshop) -> Result<Vec<ModelListing>, ChooseError> {
    let all = Candidates::until(workshop, |_| false).await?.passed;
    let listing = |(config, reason): (ModelConfig, Reason)| {
        let config = workshop.profiles.apply(config);
        ModelListing {
            name: config.name.clone(),
            provider: config.provider.to_owned(),
            model: config.model.clone(),
            description: config.description.clone(),
            reason,
            is_default: false,
            config: Some(config),
        }
    };
    let given = workshop.extensions.model.iter().map(|model| ModelListing {
        name: model.profile().name.clone(),
        provider: "the program".to_owned(),
        model: model.profile().name.clone(),
        description: None,
        reason: Reason::Given,
        is_default: false,
        config: None,
    });
    let mut listings: Vec<ModelListing> = given.chain(all.into_iter().map(listing)).collect();
    listings.push(ModelListing {
        name: demo::NAME.to_owned(),
        provider: "recording".to_owned(),
        model: "three tasks, no model needed".to_owned(),
        description: None,
        reason: Reason::Demo,
        is_default: false,
        config: None,
    });
    if let Some(first) = listings.first_mut() {
        first.is_default = true;
    }
    Ok(listings)
}

/// The model that a plain `hart run` would use, as configured; `None` for the demo.
pub(crate) async fn default_config(
    workshop: &Workshop,
) -> Result<Option<(ModelConfig, Reason)>, ChooseError> {
    Ok(Candidates::until(workshop, |_| true).await?.found)
}

/// The models there are, best first, as far as they had to be looked for.
struct Candidates {
    found: Option<(ModelConfig, Reason)>,
    passed: Vec<(ModelConfig, Reason)>,
}

impl Candidates {
    /// Looks until one is wanted. Asking the loopback takes time, so it comes last. A variable that cannot be used is
    /// an error only for whoever comes to it: another model in its place would be a surprise.
    async fn until(workshop: &Workshop, wanted: impl Fn(&ModelConfig) -> bool) -> Result<Self, EnvError> {
        let mut passed = Vec::new();
        let written = configured(workshop).into_iter().chain(on_the_page(workshop));
        for candidate in written.map(Ok).chain(with_key(workshop)) {
            let candidate = candidate?;
            if wanted(&candidate.0) {
                return Ok(Self { found: Some(candidate), passed });
            }
            passed.push(candidate);
        }
        for candidate in on_loopback(workshop).await {
            if wanted(&candidate.0) {
                return Ok(Self { found: Some(candidate), passed });
            }
            passed.push(candidate);
        }
        Ok(Self { found: None, passed })
    }
}

fn configured(workshop: &Workshop) -> Vec<(ModelConfig, Reason)> {
    let source = workshop.config.source.clone().unwrap_or_else(|| PathBuf::from("the caller's settings"));
    workshop.config.models.iter().map(|model| (model.clone(), Reason::Config(source.clone()))).collect()
}

fn on_the_page(workshop: &Workshop) -> Vec<(ModelConfig, Reason)> {
    let candidate = |connection: &Connection| match connection.config() {
        // Of two with one name, the configuration's is meant.
        _ if workshop.config.model(&connection.name).is_some() => None,
        Ok(mut config) => {
            config.max_retries = retries(workshop);
            Some((config, Reason::Connected(workshop.connections.path().to_owned())))
        }
        Err(error) => {
            tracing::warn!(%error, "a connected model cannot be used");
            None
        }
    };
    workshop.connections.all().iter().filter_map(candidate).collect()
}

fn with_key(workshop: &Workshop) -> impl Iterator<Item = Result<(ModelConfig, Reason), EnvError>> {
    let candidate = |mut config: ModelConfig| {
        config.max_retries = retries(workshop);
        let variable = Preset::find(config.provider).and_then(|preset| preset.key_env.first());
        (config, Reason::Key(variable.unwrap_or(&"a key")))
    };
    workshop.with_keys.iter().map(move |found| found.clone().map(candidate))
}

async fn on_loopback(workshop: &Workshop) -> Vec<(ModelConfig, Reason)> {
    if workshop.env.get("HART_NO_PROBE").is_some() {
        return Vec::new();
    }
    let candidate = |mut config: ModelConfig| {
        config.max_retries = retries(workshop);
        let reason = Reason::Local { server: config.provider, address: config.base_url.to_string() };
        (config, reason)
    };
    discover::probe_local(&workshop.http).await.into_iter().map(candidate).collect()
}

/// How often a model that no entry describes is asked again.
fn retries(workshop: &Workshop) -> u32 {
    workshop.config.calls.retry.attempts.saturating_sub(1)
}
