//! Clears old tool results from what the model is sent.
//!
//! Invariant: only the request changes, and its beginning stays the same from one move of the border to the next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hart_kernel::{
    ChatRequest, HookError, MessageList, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext,
    Schema, StateError, Update, async_trait,
};

use crate::clearing::{Border, ClearedThrough, ContextEditingConfig, cleared};
use crate::projection::Projection;

/// Replaces old tool results by `[cleared]` once the conversation has 100 000 tokens, all but the newest three.
///
/// It looks at each request and changes nothing else. Unlike LangChain's `ClearToolUsesEdit`, which clears one more
/// result with every call, the border moves in steps of at least `clear_at_least` tokens (and a twentieth of the
/// trigger), so that a provider's prompt cache holds in between. Off unless it is switched on.
///
/// Settings: `context_editing`, [`ContextEditingConfig`].
#[derive(Clone, Debug)]
pub struct ContextEditing {
    config: ContextEditingConfig,
}

impl ContextEditing {
    pub fn new(config: ContextEditingConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for ContextEditing {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<ClearedThrough>()?;
        Ok(())
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let stored = request.state.get::<ClearedThrough>().cloned().unwrap_or_default();
        let edited = cx.scratch.get_or_default::<Edited>();
        let border = edited.lock().edit(&mut request, &stored, &self.config);
        let mut response = next.run(request).await?;
        if border.moves > stored.moves {
            response.update.extend(Update::none().set::<ClearedThrough>(border));
        }
        Ok(response)
    }
}

/// What this run has cleared; ahead of the state, which learns of it with the answer.
#[derive(Default)]
struct Edited(
    /// Never held across an await.
    Mutex<Latest>,
);

#[derive(Default)]
struct Latest {
    border: Border,
    view: Projection,
}

impl Edited {
    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Latest {
    fn edit(&mut self, request: &mut ModelRequest, stored: &Border, config: &ContextEditingConfig) -> Border {
        if stored.moves > self.border.moves {
            self.set(stored.clone());
        }
        let messages = request.chat.messages.clone();
        let count = |request: &ModelRequest, messages: &MessageList| {
            request.model.count_request(&ChatRequest { messages: messages.clone(), ..request.chat.clone() })
        };
        let mut shown = self.shown(&messages, config);
        let tokens = count(request, &shown);
        if tokens >= config.trigger
            && let Some(moved) = self.border.moved(&messages, config.keep)
        {
            let further = cleared(&messages, &moved, config);
            if tokens.saturating_sub(count(request, &further)) >= config.step() {
                self.set(moved);
                shown = self.shown(&messages, config);
            }
        }
        request.chat.messages = shown;
        self.border.clone()
    }

    fn set(&mut self, border: Border) {
        self.border = border;
        self.view.forget();
    }

    fn shown(&mut self, messages: &MessageList, config: &ContextEditingConfig) -> MessageList {
        let Self { border, view } = self;
        view.of(messages, |messages| cleared(messages, border, config), Arc::clone)
    }
}
