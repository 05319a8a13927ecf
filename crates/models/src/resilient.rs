//! A model that survives what networks and providers do: it asks again, waits its turn, lets the broken rest, and
//! falls back to another.
//!
//! Invariant: every call ends, with one answer or one error, after a bounded number of requests and a bounded time;
//! what was said before a repetition is declared void before anything is said again.

mod breaker;
mod bucket;
mod call;
mod limits;
mod retry;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use hart_kernel::{
    ChatModel, ChatRequest, ChatStream, ModelError, ModelErrorKind, ModelProfile, TimeoutPhase,
};
use tokio_util::sync::CancellationToken;

use crate::config::ModelConfig;
use call::Call;
use limits::Gate;
pub use limits::{LimitSettings, Limits};
pub use retry::RetryPolicy;

/// A model and those that stand in for it, in order.
pub struct Resilient {
    routes: Arc<[Route]>,
    limits: Arc<Limits>,
}

/// One model, how it is asked again, and what it shares with others.
#[derive(Clone)]
pub struct Route {
    model: Arc<dyn ChatModel>,
    policy: RetryPolicy,
    gate: Gate,
}

impl Route {
    /// `model`, which is that of `config`.
    pub fn new(model: Arc<dyn ChatModel>, config: &ModelConfig, limits: &Limits) -> Self {
        Self { model, policy: limits.policy(config), gate: limits.gate(config) }
    }

    fn name(&self) -> &str {
        &self.model.profile().name
    }

    /// Whether it may answer what `error` kept `failed` from answering.
    fn replaces(&self, failed: &Self, error: &ModelError) -> bool {
        match error.kind {
            ModelErrorKind::ContextOverflow { limit, .. } => {
                let window = |route: &Self| route.model.profile().context_window.map(u64::from);
                match (window(self), limit.max(window(failed))) {
                    (Some(larger), Some(smaller)) => larger > smaller,
                    _ => false,
                }
            }
            // A refusal is an answer; whoever wants it from somebody else should say so.
            ModelErrorKind::ContentFilter
            | ModelErrorKind::Cancelled
            | ModelErrorKind::NotRecorded
            | ModelErrorKind::Timeout(TimeoutPhase::Total) => false,
            _ => true,
        }
    }
}

impl Resilient {
    pub fn new(primary: Route, fallbacks: impl IntoIterator<Item = Route>, limits: &Arc<Limits>) -> Self {
        let routes = std::iter::once(primary).chain(fallbacks).collect();
        Self { routes, limits: Arc::clone(limits) }
    }

    #[expect(clippy::indexing_slicing, reason = "the constructor puts the primary there")]
    fn primary(&self) -> &dyn ChatModel {
        self.routes[0].model.as_ref()
    }
}

#[async_trait]
impl ChatModel for Resilient {
    fn profile(&self) -> &ModelProfile {
        self.primary().profile()
    }

    /// As the primary counts: where another answers instead, it is the primary's window that is planned for.
    fn count_text(&self, text: &str) -> u64 {
        self.primary().count_text(text)
    }

    fn count_request(&self, request: &ChatRequest) -> u64 {
        self.primary().count_request(request)
    }

    /// Returns at once: waiting, asking and asking again are part of the stream, so that they can be told.
    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::cancelled());
        }
        let call = Call::new(Arc::clone(&self.routes), Arc::clone(&self.limits), request, cancel);
        Ok(Box::pin(stream::unfold(call, |mut call| async move { Some((call.next().await?, call)) })))
    }
}

impl fmt::Debug for Resilient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.routes.iter()).finish()
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("model", &self.name())
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "resilient_tests.rs"]
mod tests;
