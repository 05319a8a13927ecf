//! Makes a model from its configuration.
//!
//! Invariant: this is the only place that chooses between dialects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{ChatModel, ChatRequest};

use crate::anthropic::Anthropic;
use crate::body::Standing;
use crate::client::{Asking, Shared};
use crate::config::{Dialect, ModelConfig};
use crate::fitted::{self, Fitted};
use crate::gemini::Gemini;
use crate::http::{self, HttpError, HttpSettings};
use crate::ollama::Ollama;
use crate::openai::OpenAi;
use crate::resilient::{Limits, Resilient, Route};
use crate::responses::Responses;
use crate::text_calls::{CallsInText, TextCalls, TextOptions};
use crate::tokens::TokenCounter;

/// The model of `config`, talking over `http`. It is never asked for what it is known not to take, and it asks once:
/// see [`Context::model`] for one that does not give up.
pub fn build(config: &ModelConfig, http: &reqwest::Client) -> Arc<dyn ChatModel> {
    counting(config, http, alone(config))
}

/// One that starts from what is known of the model's family. Every answer corrects it, so the vocabulary, which takes
/// time and memory to load, is not worth it.
pub(crate) fn counter(config: &ModelConfig) -> Arc<TokenCounter> {
    Arc::new(TokenCounter::of(config).estimating())
}

/// For a client that shares nothing.
pub(crate) fn alone(config: &ModelConfig) -> Shared {
    Shared { counter: counter(config), standing: Arc::default() }
}

fn counting(config: &ModelConfig, http: &reqwest::Client, shared: Shared) -> Arc<dyn ChatModel> {
    let (taken, left_out) = fitted::without_refused(config);
    let model: Arc<dyn ChatModel> = dialect(&taken, http, shared);
    let off = TextOptions { calls: CallsInText::Off, think: false, opened: false };
    let model = if config.text == off { model } else { Arc::new(TextCalls::new(model, config.text)) };
    Arc::new(Fitted::new(model, config, left_out))
}

/// The same model as it is, asked for whatever it is asked for: how a probe finds out what it takes.
pub(crate) fn dialect(config: &ModelConfig, http: &reqwest::Client, shared: Shared) -> Arc<dyn Asking> {
    match config.dialect {
        Dialect::OpenAi => Arc::new(OpenAi::new(config, http, shared)),
        Dialect::Anthropic => Arc::new(Anthropic::new(config, http, shared)),
        Dialect::Responses => Arc::new(Responses::new(config, http, shared)),
        Dialect::Gemini => Arc::new(Gemini::new(config, http, shared)),
        Dialect::Ollama => Arc::new(Ollama::new(config, http, shared)),
    }
}

/// Writes the bodies of a model's requests, for benchmarks. It keeps what the model would keep from one request to the
/// next.
pub fn request_writer(
    config: &ModelConfig,
    http: &reqwest::Client,
) -> impl Fn(&ChatRequest) -> Vec<u8> + use<> {
    let client = dialect(config, http, alone(config));
    move |request| client.body(request)
}

/// What all models of a process have in common: the way out, and the limits.
#[derive(Debug)]
pub struct Context {
    settings: HttpSettings,
    http: reqwest::Client,
    limits: Arc<Limits>,
    /// Of models that go another way than the rest.
    others: Mutex<HashMap<HttpSettings, reqwest::Client>>,
    /// What the agents send every time, by dialect.
    standing: Mutex<HashMap<Dialect, Arc<Standing>>>,
}

impl Context {
    pub fn new(settings: HttpSettings, limits: Arc<Limits>) -> Result<Self, HttpError> {
        let http = http::client_with(&settings)?;
        Ok(Self { settings, http, limits, others: Mutex::default(), standing: Mutex::default() })
    }

    /// The client that models share unless they have settings of their own.
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// The client of one model.
    pub fn client(&self, config: &ModelConfig) -> Result<reqwest::Client, HttpError> {
        let mut settings = self.settings.clone();
        if let Some(proxy) = config.proxy.clone() {
            settings = settings.with_proxy(proxy);
        }
        settings.ca_file = config.ca_file.clone().or(settings.ca_file);
        settings.connect_timeout = config.connect_timeout.or(settings.connect_timeout);
        if settings == self.settings {
            return Ok(self.http.clone());
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = others.get(&settings) {
            return Ok(client.clone());
        }
        let client = http::client_with(&settings)?;
        others.insert(settings, client.clone());
        Ok(client)
    }

    fn standing(&self, dialect: Dialect) -> Arc<Standing> {
        let mut all = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(dialect).or_default())
    }

    /// The model of `config`, repeated, limited, and replaced by `fallbacks` where it fails.
    pub fn model<'a>(
        &self,
        config: &ModelConfig,
        fallbacks: impl IntoIterator<Item = &'a ModelConfig>,
    ) -> Result<Arc<dyn ChatModel>, HttpError> {
        let route = |config: &ModelConfig| {
            let shared =
                Shared { counter: self.limits.counter(config), standing: self.standing(config.dialect) };
            let model = counting(config, &self.client(config)?, shared);
            Ok::<_, HttpError>(Route::new(model, config, &self.limits))
        };
        let fallbacks = fallbacks.into_iter().map(route).collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(Resilient::new(route(config)?, fallbacks, &self.limits)))
    }
}
