//! What all models of a process share: how many calls there are at once, how fast, which endpoints rest, and how they
//! count.
//!
//! Invariant: models of one endpoint meet the same breaker, the same rates and the same counter, whoever built them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hart_kernel::{ChatModel, ChatRequest};
use hart_types::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::breaker::Breaker;
use super::bucket::{Bucket, Taken};
use super::retry::{Dice, RetryPolicy};
use crate::address::Address;
use crate::config::ModelConfig;
use crate::factory;
use crate::tokens::TokenCounter;

/// The settings of [`Limits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Calls at once in the whole process; 0: no limit.
    pub max_concurrent_calls: u32,
    /// Failures in a row after which an endpoint rests; 0: never.
    pub failure_threshold: u32,
    /// How long it rests.
    pub recovery: Duration,
    /// How failed calls are repeated; a model's own settings go before it.
    pub retry: RetryPolicy,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            max_concurrent_calls: 0,
            failure_threshold: 5,
            recovery: Duration::from_secs(60),
            retry: RetryPolicy::default(),
        }
    }
}

/// One per process, handed to every model that is built.
pub struct Limits {
    settings: LimitSettings,
    everywhere: Option<Places>,
    pub(super) dice: Dice,
    /// By address.
    providers: Mutex<HashMap<Address, Places>>,
    /// By address and model.
    endpoints: Mutex<HashMap<(Address, String), Endpoint>>,
}

/// A number of calls that may be under way; whoever comes first is served first.
#[derive(Clone, Debug)]
struct Places {
    free: Arc<Semaphore>,
    all: u32,
}

#[derive(Clone)]
struct Endpoint {
    breaker: Arc<Breaker>,
    requests: Option<Arc<Bucket>>,
    tokens: Option<Arc<Bucket>>,
    counter: Arc<TokenCounter>,
}

/// What one model has to pass before it is asked.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) breaker: Arc<Breaker>,
    /// The provider's, then the process's.
    places: Vec<Places>,
    requests: Option<Arc<Bucket>>,
    tokens: Option<Arc<Bucket>>,
    max_output: Option<u32>,
}

/// What a call has taken from the rates.
#[derive(Debug)]
pub(super) struct Reserved {
    request: Option<Taken>,
    tokens: Option<Taken>,
}

/// An answer whose length nobody limited; corrected when it is known.
const USUAL_OUTPUT: u32 = 1024;

impl Limits {
    pub fn new(settings: LimitSettings) -> Arc<Self> {
        let everywhere = Some(settings.max_concurrent_calls).filter(|all| *all > 0).map(Places::new);
        Arc::new(Self {
            settings,
            everywhere,
            dice: Dice::new(),
            providers: Mutex::default(),
            endpoints: Mutex::default(),
        })
    }

    pub(super) fn policy(&self, config: &ModelConfig) -> RetryPolicy {
        let attempts = config.max_retries.saturating_add(1);
        RetryPolicy { attempts, total: config.total_timeout, ..self.settings.retry.clone() }
    }

    pub(super) fn gate(&self, config: &ModelConfig) -> Gate {
        let mut places = Vec::new();
        if let Some(all) = config.max_concurrent_calls.filter(|all| *all > 0) {
            let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
            let known = providers.entry(config.base_url.clone()).or_insert_with(|| Places::new(all));
            known.tighten(all);
            places.push(known.clone());
        }
        places.extend(self.everywhere.clone());
        let Endpoint { breaker, requests, tokens, .. } = self.endpoint(config);
        Gate { breaker, places, requests, tokens, max_output: config.max_tokens }
    }

    /// What has been learnt of how this endpoint counts outlives the models that are built for it.
    pub(crate) fn counter(&self, config: &ModelConfig) -> Arc<TokenCounter> {
        self.endpoint(config).counter
    }

    fn endpoint(&self, config: &ModelConfig) -> Endpoint {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (config.base_url.clone(), config.model.clone());
        let endpoint = endpoints.entry(key).or_insert_with(|| Endpoint {
            breaker: Breaker::new(self.settings.failure_threshold, self.settings.recovery),
            requests: None,
            tokens: None,
            counter: factory::counter(config),
        });
        rate(&mut endpoint.requests, config.requests_per_minute);
        rate(&mut endpoint.tokens, config.tokens_per_minute);
        endpoint.clone()
    }
}

fn rate(bucket: &mut Option<Arc<Bucket>>, per_minute: Option<u32>) {
    let Some(per_minute) = per_minute.filter(|per_minute| *per_minute > 0) else { return };
    match bucket {
        Some(known) => known.tighten(per_minute),
        None => *bucket = Some(Bucket::new(per_minute)),
    }
}

impl fmt::Debug for Limits {
    /// Without the addresses, which may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Places {
    fn new(all: u32) -> Self {
        Self { free: Arc::new(Semaphore::new(all as usize)), all }
    }

    fn tighten(&mut self, all: u32) {
        if all < self.all {
            self.free.forget_permits((self.all - all) as usize);
            self.all = all;
        }
    }
}

impl Gate {
    /// Takes a place in every queue, if all have one free.
    pub(super) fn try_places(&self) -> Result<Vec<OwnedSemaphorePermit>, u32> {
        let mut taken = Vec::with_capacity(self.places.len());
        for places in &self.places {
            match Arc::clone(&places.free).try_acquire_owned() {
                Ok(permit) => taken.push(permit),
                Err(_) => return Err(places.all),
            }
        }
        Ok(taken)
    }

    /// Waits for a place in every queue, in order.
    pub(super) async fn places(&self) -> Vec<OwnedSemaphorePermit> {
        let mut taken = Vec::with_capacity(self.places.len());
        for places in &self.places {
            // Nobody closes these; if somebody did, there would be no limit left to keep.
            taken.extend(Arc::clone(&places.free).acquire_owned().await.ok());
        }
        taken
    }

    /// Takes what `request` will probably use, by `model`'s count.
    pub(super) fn reserve(&self, request: &ChatRequest, model: &dyn ChatModel) -> Reserved {
        let tokens = self.tokens.as_ref().map(|bucket| {
            let output = request.settings.max_tokens.or(self.max_output).unwrap_or(USUAL_OUTPUT);
            bucket.take(model.count_request(request) + u64::from(output))
        });
        Reserved { request: self.requests.as_ref().map(|bucket| bucket.take(1)), tokens }
    }
}

impl Reserved {
    /// How long until it may be used.
    pub(super) fn wait(&self) -> Duration {
        let of = |taken: Option<&Taken>| taken.map_or(Duration::ZERO, |taken| taken.wait);
        of(self.request.as_ref()).max(of(self.tokens.as_ref()))
    }

    /// The answer came, and says what it cost.
    pub(super) fn answered(self, message: &Message) {
        self.request.into_iter().for_each(Taken::spent);
        let usage = message.as_ai().and_then(|ai| ai.usage.as_ref());
        match (self.tokens, usage) {
            (Some(tokens), Some(usage)) => tokens.spent_exactly(usage.total_tokens),
            (Some(tokens), None) => tokens.spent(),
            (None, _) => {}
        }
    }

    /// The request was sent and failed; it cost tokens only if some came.
    pub(super) fn failed(self, some_came: bool) {
        self.request.into_iter().for_each(Taken::spent);
        if some_came {
            self.tokens.into_iter().for_each(Taken::spent);
        }
    }
}
