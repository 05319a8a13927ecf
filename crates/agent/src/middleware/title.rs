//! Gives a thread its title.
//!
//! Invariant: a title that is there is never replaced, except the local one by the model's in the same exchange; and
//! the answer never waits for a title.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hart_kernel::{
    ChatModel, ChatRequest, Command, HookResult, MessageList, Middleware, ModelSettings, Reasoning,
    ReduceError, RunContext, Schema, Scope, State, StateError, StateKey, Update, async_trait, side_call,
};
use hart_types::Message;
use serde::Deserialize;

use crate::reminder::is_from_user;
use crate::title::{from_answer, local};

/// Writes the state key `title` in the first exchange of a thread.
///
/// At the start of the run the title is the user's first words, at most 50 characters, cut between words: so a thread
/// has a name from its first second, even if the run takes hours. [`Title::with_model`] asks a model for a better one
/// when the answer is complete. That is in `after_agent` and not beside the run, because a second request at the same
/// moment would compete with the answer for rate limits and, on a local server, for the only slot. It has ten seconds;
/// if it fails or takes longer, the local title stays.
///
/// A title set by anyone else is left alone.
#[derive(Clone, Default)]
pub struct Title {
    config: TitleConfig,
    model: Option<Arc<dyn ChatModel>>,
}

/// DeerFlow's `title`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TitleConfig {
    pub enabled: bool,
    /// How long a model's title may be.
    pub max_words: usize,
    pub max_chars: usize,
    /// The model that is asked; without one the title is local.
    pub model_name: Option<String>,
    /// What the model is asked, with `{max_words}`, `{user_msg}` and `{assistant_msg}`.
    pub prompt_template: Option<String>,
}

impl Default for TitleConfig {
    fn default() -> Self {
        Self { enabled: true, max_words: 6, max_chars: 60, model_name: None, prompt_template: None }
    }
}

impl StateKey for Title {
    type Value = String;
    type Update = String;
    const NAME: &'static str = "title";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(_: Option<String>, update: String) -> Result<String, ReduceError> {
        Ok(update)
    }
}

impl Title {
    pub fn new(config: TitleConfig) -> Self {
        Self { config, model: None }
    }

    #[must_use]
    pub fn with_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.model = Some(model);
        self
    }

    /// What a model calls it.
    async fn ask(&self, cx: &RunContext, model: &dyn ChatModel, messages: &MessageList) -> Option<String> {
        let request = self.request(messages)?;
        let answer = match tokio::time::timeout(PATIENCE, side_call(cx, model, request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::warn!(%error, "no title from the model; the local one stays");
                return None;
            }
            Err(_) => {
                tracing::warn!("the model took too long for a title; the local one stays");
                return None;
            }
        };
        from_answer(&answer.text(), self.config.max_words, self.config.max_chars)
    }

    fn request(&self, messages: &MessageList) -> Option<ChatRequest> {
        let start = |message: &Message| message.text().chars().take(EXCERPT).collect::<String>();
        let question = start(first_question(messages)?);
        let answer = messages.iter().rev().find(|message| message.as_ai().is_some());
        let answer = answer.map_or_else(String::new, |answer| start(answer));
        let template = self.config.prompt_template.as_deref().unwrap_or(PROMPT);
        let asked = template.replace("{max_words}", &self.config.max_words.to_string());
        let asked = asked.replace("{max_chars}", &self.config.max_chars.to_string());
        // What people and models said comes in last, so that nothing in it is a placeholder.
        let asked = match asked.split_once("{user_msg}") {
            Some((before, after)) => {
                let after = after.replace("{assistant_msg}", &answer);
                format!("{before}{question}{after}")
            }
            None => asked.replace("{assistant_msg}", &answer),
        };
        Some(ChatRequest {
            caller: CALLER.into(),
            system: None,
            messages: vec![Arc::new(Message::human(asked))].into(),
            tools: Arc::new([]),
            settings: ModelSettings { reasoning: Reasoning::Off, ..ModelSettings::default() },
        })
    }
}

const CALLER: &str = "title";
const LOCAL_CHARS: usize = 50;
const EXCERPT: usize = 500;
const PATIENCE: Duration = Duration::from_secs(10);
const PROMPT: &str = "Give this conversation a title of at most {max_words} words, in the user's language. Answer with \
                      the title alone, without quotes.\n\nUser: {user_msg}\n\nAssistant: {assistant_msg}";

#[async_trait]
impl Middleware for Title {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Self>()?;
        Ok(())
    }

    async fn before_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        let title = state.get::<Self>();
        // A thread that has been named pays nothing more, however long it is.
        if title.is_some() && !cx.is_resuming() {
            return Ok(Command::none());
        }
        let words = first_question(state.messages()).map(|question| question.text());
        let Some(words) = words.and_then(|words| local(&words, LOCAL_CHARS)) else {
            return Ok(Command::none());
        };
        let first = title.is_none_or(|title| *title == words);
        cx.scratch.get_or_default::<FirstExchange>().0.store(first, Ordering::Relaxed);
        if title.is_some() {
            return Ok(Command::none());
        }
        Ok(Update::none().set::<Self>(words).into())
    }

    async fn after_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        let first = cx.scratch.get_or_default::<FirstExchange>().0.load(Ordering::Relaxed);
        let answered = state.messages().last().is_some_and(|last| last.as_ai().is_some());
        let (Some(model), true) = (&self.model, first && answered) else { return Ok(Command::none()) };
        if cx.is_paused() || cx.cancel.is_cancelled() {
            return Ok(Command::none());
        }
        let title = self.ask(cx, model.as_ref(), state.messages()).await;
        Ok(title.map_or_else(Command::none, |title| Update::none().set::<Self>(title).into()))
    }
}

fn first_question(messages: &MessageList) -> Option<&Arc<Message>> {
    messages.iter().find(|message| is_from_user(message))
}

/// Whether this run is the thread's first exchange.
#[derive(Default)]
struct FirstExchange(AtomicBool);

impl fmt::Debug for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model.as_ref().map(|model| &model.profile().name);
        f.debug_struct("Title").field("config", &self.config).field("model", &model).finish()
    }
}
