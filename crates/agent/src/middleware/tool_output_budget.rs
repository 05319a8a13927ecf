//! Keeps what is too long out of the conversation: the model sees its ends and the path of the rest.
//!
//! Invariant: a text leaves here whole, or with a note that says where the rest is or why it is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hart_kernel::{
    HookError, MessageList, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, ToolNext,
    ToolOutcome, ToolRequest, Update, async_trait,
};
use hart_sandbox::{LARGE_RESULTS, SandboxError, SandboxProvider, VPath, WriteMode};
use hart_tools::{ToolOutputConfig, line_preview, long_message_path};
use hart_types::{Block, Body, Content, Message, MessageId};
use serde_json::Value;

use crate::projection::Projection;

/// Where a user's message that is not shown whole says what file it is in: DeepAgents' name.
const EVICTED_TO: &str = "lc_evicted_to";
/// Servers that count their calls from zero in every answer ask for one name again and again.
const MAX_NAMESAKES: usize = 1000;

/// Moves long tool results, and very long user messages, into files that the model can read.
///
/// A tool result of 20 000 tokens (80 000 characters) or more is written to `/large_tool_results/<call id>`; in its
/// place the conversation has its first and last five lines, how many lines are missing, and how to read them with
/// `read_file` and `grep`. Images and other blocks that are no text stay. Where no file can be written, the result
/// stays whole. `read_file` and `bash` are exempt: they bound their answers themselves.
///
/// A user's message of 50 000 tokens (200 000 characters) or more is written to `/conversation_history/<id>.md`. The
/// thread keeps it whole, tagged with `additional_kwargs.lc_evicted_to`; only what the model is sent has the preview.
///
/// Settings: `tool_output`, [`ToolOutputConfig`].
#[derive(Debug)]
pub struct ToolOutputBudget {
    config: ToolOutputConfig,
    /// Without one there is nowhere to put a file.
    sandboxes: Option<Arc<dyn SandboxProvider>>,
}

impl ToolOutputBudget {
    pub fn new(config: ToolOutputConfig, sandboxes: Option<Arc<dyn SandboxProvider>>) -> Self {
        Self { config, sandboxes }
    }

    /// Puts a result into a file of the thread.
    async fn store(&self, cx: &RunContext, tool: &str, call: &str, text: &str) -> Result<VPath, String> {
        let sandboxes = self.sandboxes.as_ref().ok_or("there is no sandbox")?;
        let path = self.config.path(tool, cx.run_id.as_str(), call).map_err(|error| error.to_string())?;
        let sandbox =
            sandboxes.acquire(&cx.thread_id, &cx.user_id).await.map_err(|error| error.to_string())?;
        if !path.is_under(LARGE_RESULTS) {
            let written = sandbox.write(&path, text.as_bytes(), WriteMode::Overwrite).await;
            return written.map(|()| path).map_err(|error| error.to_string());
        }
        for namesake in 1..=MAX_NAMESAKES {
            let path = if namesake == 1 {
                path.clone()
            } else {
                VPath::parse(&format!("{path}-{namesake}")).map_err(|error| error.to_string())?
            };
            match sandbox.archive(&path, text.as_bytes(), WriteMode::CreateNew).await {
                Ok(()) => return Ok(path),
                Err(SandboxError::AlreadyExists(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("there are {MAX_NAMESAKES} results called `{path}` already"))
    }

    /// Puts a user's message into a file of the thread; the same message always into the same.
    async fn store_message(&self, cx: &RunContext, id: &MessageId, text: &str) -> Result<VPath, String> {
        let sandboxes = self.sandboxes.as_ref().ok_or("there is no sandbox")?;
        let path = long_message_path(id.as_str()).map_err(|error| error.to_string())?;
        let sandbox =
            sandboxes.acquire(&cx.thread_id, &cx.user_id).await.map_err(|error| error.to_string())?;
        match sandbox.archive(&path, text.as_bytes(), WriteMode::CreateNew).await {
            Ok(()) | Err(SandboxError::AlreadyExists(_)) => Ok(path),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes the long messages nobody has written yet, and returns them with their tags.
    async fn evict(&self, cx: &RunContext, seen: &Evicted, request: &ModelRequest) -> Vec<Message> {
        let known = seen.lock().view.known(&request.chat.messages);
        let mut tagged = Vec::new();
        // From the thread: what goes out may be marked or rewritten already, and the file holds what was said.
        for message in request.state.messages().iter_from(known) {
            let Some(id) = message.id.as_ref().filter(|_| self.is_long(message)) else { continue };
            match self.store_message(cx, id, &message.text()).await {
                Ok(path) => {
                    seen.lock().paths.insert(id.clone(), path.as_str().to_owned());
                    let mut message = Message::clone(message);
                    message.additional_kwargs.insert(EVICTED_TO.to_owned(), Value::from(path.as_str()));
                    tagged.push(message);
                }
                Err(why) => tracing::warn!(%why, "a very long message could not be put into a file"),
            }
        }
        tagged
    }

    fn is_long(&self, message: &Message) -> bool {
        let limit = self.config.human_min_chars;
        message.body == Body::Human
            && evicted_to(message).is_none()
            && text_bytes(message) >= limit
            && message.text().chars().count() >= limit
    }
}

#[async_trait]
impl Middleware for ToolOutputBudget {
    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let seen = cx.scratch.get_or_default::<Evicted>();
        let tagged = self.evict(cx, &seen, &request).await;
        request.chat.messages = seen.lock().shown(&request.chat.messages);
        let mut response = next.run(request).await?;
        if !tagged.is_empty() {
            response.update.extend(Update::none().messages(tagged));
        }
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        let mut outcome = next.run(request).await?;
        let Some(threshold) = self.config.threshold(&call.name) else { return Ok(outcome) };
        let text = outcome.message.text();
        if text.chars().count() < threshold {
            return Ok(outcome);
        }
        let id = call.id.as_ref().map(ToString::to_string).unwrap_or_default();
        let shown = match self.store(cx, &call.name, &id, &text).await {
            Ok(path) => Some(self.config.preview(&text, &path)),
            Err(why) => {
                tracing::warn!(tool = %call.name, %why, "a long result could not be put into a file");
                self.config.fallback(&text, &why)
            }
        };
        if let Some(shown) = shown {
            replace_text(&mut outcome.message, shown);
        }
        Ok(outcome)
    }
}

/// What this run knows of long messages: the state learns of their tags with the answer.
#[derive(Default)]
struct Evicted(
    /// Never held across an await.
    Mutex<Known>,
);

#[derive(Default)]
struct Known {
    paths: HashMap<MessageId, String>,
    view: Projection,
}

impl Evicted {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The conversation with previews. One without long messages stays the very same.
    fn shown(&mut self, messages: &MessageList) -> MessageList {
        let Self { paths, view } = self;
        let preview = |message: &Arc<Message>| {
            let known = message.id.as_ref().and_then(|id| paths.get(id)).map(String::as_str);
            evicted_to(message).or(known).map_or_else(|| Arc::clone(message), |path| shown(message, path))
        };
        let is_whole = |message: &Arc<Message>| {
            evicted_to(message).is_none() && !message.id.as_ref().is_some_and(|id| paths.contains_key(id))
        };
        let begin = |messages: &MessageList| {
            if messages.iter().all(is_whole) {
                messages.clone()
            } else {
                messages.iter().map(&preview).collect()
            }
        };
        view.of(messages, begin, preview)
    }
}

fn evicted_to(message: &Message) -> Option<&str> {
    message.additional_kwargs.get(EVICTED_TO)?.as_str().filter(|_| message.body == Body::Human)
}

/// No less than its characters, and known without copying them.
fn text_bytes(message: &Message) -> usize {
    match &message.content {
        Content::Text(text) => text.len(),
        Content::Blocks(blocks) => blocks.iter().filter_map(Block::as_text).map(str::len).sum(),
    }
}

fn shown(message: &Arc<Message>, path: &str) -> Arc<Message> {
    let mut shown = Message::clone(message);
    let text = shown.text();
    replace_text(&mut shown, line_preview("message", &text, path));
    Arc::new(shown)
}

/// What is not text, such as an image, stays.
fn replace_text(message: &mut Message, text: String) {
    message.content = match std::mem::take(&mut message.content) {
        Content::Text(_) => Content::Text(text),
        Content::Blocks(blocks) => {
            let others = blocks.into_iter().filter(|block| block.as_text().is_none());
            Content::Blocks(std::iter::once(Block::text(text)).chain(others).collect())
        }
    };
}
