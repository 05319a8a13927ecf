//! Models that help around a conversation.
//!
//! Invariant: a helper is asked once and not for long; the demo helps nobody.

use std::time::Duration;

use hart_agent::follow_up::{self, Spoken};
use hart_gateway::Helpers;
use hart_kernel::async_trait;
use tokio_util::sync::CancellationToken;

use crate::choice::{self, ModelChoice};
use crate::workshop::Workshop;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

#[async_trait]
impl Helpers for Workshop {
    fn suggestions(&self) -> Option<u32> {
        self.config.around.suggestions.as_ref().map(|config| config.max_suggestions)
    }

    async fn suggest(
        &self,
        conversation: Vec<(String, String)>,
        count: u32,
        model: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let configured =
            self.config.around.suggestions.as_ref().and_then(|config| config.model_name.as_deref());
        let chosen = choose(self, configured.or(model)).await?;
        let said: Vec<Spoken> = conversation.into_iter().map(|(role, text)| Spoken { role, text }).collect();
        let cancel = CancellationToken::new();
        let count = usize::try_from(count).unwrap_or_default();
        let asked = follow_up::suggest(chosen.model.as_ref(), &said, count, &cancel);
        in_time(asked).await
    }

    fn polishes(&self) -> Option<usize> {
        self.config.around.input_polish.as_ref().map(|config| config.max_chars)
    }

    async fn polish(&self, words: &str) -> Result<String, String> {
        let configured =
            self.config.around.input_polish.as_ref().and_then(|config| config.model_name.as_deref());
        let chosen = choose(self, configured).await?;
        let cancel = CancellationToken::new();
        in_time(follow_up::polish(chosen.model.as_ref(), words, &cancel)).await
    }
}

async fn choose(workshop: &Workshop, name: Option<&str>) -> Result<ModelChoice, String> {
    let name = name.filter(|name| !name.is_empty());
    let chosen = choice::choose(workshop, name).await.map_err(|error| error.to_string())?;
    match chosen.is_demo() {
        true => Err("no model is connected".to_owned()),
        false => Ok(chosen),
    }
}

/// Dropped, a call ends.
async fn in_time<T, E: std::fmt::Display>(asked: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("the model took too long".to_owned()),
    }
}
