//! Plan mode: the model keeps a list of steps and is held to it.
//!
//! Invariant: while steps are open, the model sees the list, and it ends only after it was reminded of them twice or
//! did them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{
    Command, Goto, HookError, HookResult, MessageList, Middleware, ModelNext, ModelRequest, ModelResponse,
    ReduceError, RunContext, Schema, Scope, State, StateError, StateKey, Tool, ToolNext, ToolOutcome,
    ToolRequest, Update, async_trait,
};
use hart_tools::{Todo as Step, TodoStatus, Todos};
use hart_types::{Message, MessageId, ToolStatus};
use serde::{Deserialize, Serialize};

use crate::escape;
use crate::reminder::reminder;
use crate::view::{Shown, View};

/// Gives the model the tool `write_todos` and keeps the list in the state key `todos`, where clients show it.
///
/// - Two calls of `write_todos` in one answer are both refused: each replaces the whole list, so one would be lost.
/// - When the list is no longer in the conversation (it was summed up), a reminder with its steps is put into the
///   request, always at the same place, until the model writes the list again.
/// - When the model ends with open steps it is reminded, twice at most in a run; then it may end.
///
/// It is off unless plan mode is on ([`crate::SuperAgentBuilder::plan_mode`], or the modes `pro` and `ultra`).
#[derive(Clone, Copy, Debug)]
pub struct Todo;

const TOOL: &str = "write_todos";
const NAME: &str = "todo_reminder";
const MAX_REMINDERS: u32 = 2;

#[async_trait]
impl Middleware for Todo {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Todos>()?.declare::<Reminded>()?;
        Ok(())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![hart_tools::write_todos()]
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let kept = cx.scratch.get_or_default::<Kept>();
        let (messages, new) = kept.shown(&request.chat.messages, &request.state);
        request.chat.messages = messages;
        let mut response = next.run(request).await?;
        if let Some(place) = new {
            response.update.extend(Update::none().set::<Reminded>(place));
        }
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        _cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        if call.name != TOOL || calls_in_last_answer(&request.state) < 2 {
            return next.run(request).await;
        }
        let id = call.id.clone().unwrap_or_else(|| "".into());
        let text = "Error: write_todos was called more than once in this answer, and each call replaces the whole \
                    list, so nothing was changed; call it once, with all steps";
        let message = Message::tool(&id, TOOL, ToolStatus::Error, text);
        Ok(ToolOutcome { message, command: Command::none() })
    }

    async fn after_model(&self, cx: &RunContext, state: &State) -> HookResult {
        let steps = state.get::<Todos>().map_or(&[][..], Vec::as_slice);
        let ends = state
            .messages()
            .last()
            .and_then(|last| last.as_ai())
            .is_some_and(|ai| ai.tool_calls.is_empty() && ai.invalid_tool_calls.is_empty());
        if !ends || !has_open(steps) {
            return Ok(Command::none());
        }
        let reminders = cx.scratch.get_or_default::<Reminders>();
        if reminders.0.fetch_add(1, Ordering::Relaxed) >= MAX_REMINDERS {
            return Ok(Command::none());
        }
        let text = format!(
            "Your list has open steps:\n{}Go on with them. Mark what is done as completed and take out what is no \
             longer needed, with write_todos. If you cannot go on without the user, say so and end.",
            rendered(steps)
        );
        Ok(Command::from(Update::none().messages(reminder(NAME, &text))).goto(Goto::Model))
    }
}

fn has_open(steps: &[Step]) -> bool {
    steps.iter().any(|step| step.status != TodoStatus::Completed)
}

fn calls_in_last_answer(state: &State) -> usize {
    let answer = state.messages().iter().rev().find(|message| message.as_ai().is_some());
    answer.map_or(0, |answer| answer.tool_calls().iter().filter(|call| call.name == TOOL).count())
}

fn rendered(steps: &[Step]) -> String {
    steps.iter().fold(String::new(), |mut text, step| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- [{}] {}", step.status.name(), escape(step.content.trim()));
        text
    })
}

/// How often the model was held back in this run.
#[derive(Default)]
struct Reminders(AtomicU32);

/// Where in the conversation the list is repeated: the same place in every request, so that the start of the
/// conversation stays the same.
#[derive(Debug)]
struct Reminded;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    after: MessageId,
    text: String,
}

impl StateKey for Reminded {
    type Value = Place;
    type Update = Place;
    const NAME: &'static str = "todo_reminder";
    const SCOPE: Scope = Scope::Private;

    fn reduce(_: Option<Place>, update: Place) -> Result<Place, ReduceError> {
        Ok(update)
    }
}

/// Never held across an await.
#[derive(Default)]
struct Kept(Mutex<Conversation>);

#[derive(Default)]
struct Conversation {
    seen: MessageList,
    /// Whether the list, or a reminder of it, is in what was seen.
    has_list: bool,
    place: Option<(Place, Arc<Message>)>,
    view: View,
}

impl Kept {
    /// The messages with the reminder, if one is due, and where it stands, if that is new.
    fn shown(&self, messages: &MessageList, state: &State) -> (MessageList, Option<Place>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.place.is_none()
            && let Some(place) = state.get::<Reminded>()
        {
            kept.set(place.clone());
        }
        let steps = state.get::<Todos>().map_or(&[][..], Vec::as_slice);
        let mut new = None;
        if !kept.has_list(messages)
            && has_open(steps)
            && let Some(after) = messages.last().and_then(|last| last.id.clone())
        {
            let place = Place {
                after,
                text: format!("The list you keep with write_todos:\n{}", rendered(steps).trim_end()),
            };
            kept.set(place.clone());
            kept.has_list = true;
            new = Some(place);
        }
        let Conversation { place, view, .. } = &mut *kept;
        let shown = match place {
            Some((place, reminder)) => view.of(messages, |message| {
                if message.id.as_ref() == Some(&place.after) {
                    Shown::FollowedBy(Arc::clone(reminder))
                } else {
                    Shown::AsItIs
                }
            }),
            None => messages.clone(),
        };
        (shown, new)
    }
}

impl Conversation {
    fn has_list(&mut self, messages: &MessageList) -> bool {
        if self.seen.common_prefix(messages) < self.seen.len() {
            (self.seen, self.has_list) = (MessageList::default(), false);
        }
        let after = self.place.as_ref().map(|(place, _)| &place.after);
        self.has_list |= messages.iter_from(self.seen.len()).any(|message| {
            let writes = message.tool_calls().iter().any(|call| call.name == TOOL);
            writes || (after.is_some() && message.id.as_ref() == after)
        });
        self.seen = messages.clone();
        self.has_list
    }

    fn set(&mut self, place: Place) {
        let reminder = Arc::new(reminder(NAME, &place.text));
        self.place = Some((place, reminder));
        self.view.forget();
    }
}
