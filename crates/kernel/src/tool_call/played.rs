//! A call and the deck: played where it was recorded, recorded where it is made.
//!
//! Invariant: a call that is played reaches no wrapper, no journal and no tool.

use hart_types::{Interrupt, ToolCall};
use serde::{Deserialize, Serialize};

use super::ToolCallRunner;
use super::effects::Noted;
use crate::{HookError, RunContext, ToolOutcome, ToolRequest};

/// What a call came to, as a deck keeps it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CameTo {
    Gave(Box<Noted>),
    /// It waits for answers.
    Asked(Vec<Interrupt>),
    /// It ended the run.
    Failed(String),
}

impl ToolCallRunner<'_> {
    /// `finish` is done to what comes out.
    pub(super) async fn played(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        call: &ToolCall,
        finish: impl Fn(&mut ToolOutcome),
    ) -> Result<ToolOutcome, HookError> {
        let Some(deck) = &cx.deck else { return self.journaled(cx, request, finish).await };
        let recorded = deck.result(call).await.map_err(|error| HookError::Other(Box::new(error)))?;
        let outcome = match recorded {
            None => self.journaled(cx, request, finish).await,
            Some(recorded) => {
                let came_to = serde_json::from_value(recorded);
                self.again(came_to.map_err(|error| HookError::Other(Box::new(error)))?, finish)
            }
        };
        let came_to = match &outcome {
            Ok(outcome) => CameTo::Gave(Box::new(Noted::of(outcome))),
            Err(HookError::Interrupt(question)) => CameTo::Asked(vec![(**question).clone()]),
            Err(HookError::Interrupts(questions)) => CameTo::Asked(questions.clone()),
            Err(error) => CameTo::Failed(error.to_string()),
        };
        deck.came_to(call, serde_json::to_value(came_to).unwrap_or_default()).await;
        outcome
    }

    fn again(&self, came_to: CameTo, finish: impl Fn(&mut ToolOutcome)) -> Result<ToolOutcome, HookError> {
        match came_to {
            CameTo::Gave(mut noted) => {
                // Named by where it stands now, as whatever is made in this run.
                noted.message.id = None;
                let mut outcome = self.restored(*noted);
                finish(&mut outcome);
                Ok(outcome)
            }
            CameTo::Asked(mut questions) => match (questions.pop(), questions.is_empty()) {
                (Some(only), true) => Err(HookError::Interrupt(Box::new(only))),
                (last, _) => Err(HookError::Interrupts(questions.into_iter().chain(last).collect())),
            },
            CameTo::Failed(text) => Err(HookError::Other(text.into())),
        }
    }
}
