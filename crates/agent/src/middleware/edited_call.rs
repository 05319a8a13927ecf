//! Runs what a person made of a call instead of what the model asked for.
//!
//! Invariant: everything further in, the guards among it, sees the call that really runs; the model reads that it was
//! changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use hart_kernel::{
    HookError, Middleware, RunContext, Schema, State, StateError, ToolNext, ToolOutcome, ToolRequest, Update,
    async_trait,
};
use hart_types::{Block, Content, Message, ToolCall};

use super::human_in_the_loop::{EditedCall, EditedCalls};

/// The other half of [`super::HumanInTheLoop`], outermost around tools: a decision to `edit` takes effect here.
#[derive(Clone, Copy, Debug)]
pub struct EditedToolCall;

#[async_trait]
impl Middleware for EditedToolCall {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<EditedCalls>()?;
        Ok(())
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        mut request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let Some((id, edit)) = edit_of(&request.call, &request.state) else { return next.run(request).await };
        let original = request.call.name.clone();
        let name = cx.tool_name(&edit.action.name).to_owned();
        let call = ToolCall { name, args: edit.action.args.clone(), ..ToolCall::clone(&request.call) };
        request.call = Arc::new(call);
        let mut outcome = next.run(request).await?;
        note(&mut outcome.message, &original, &edit);
        outcome.command.update.extend(Update::none().set::<EditedCalls>(BTreeMap::from([(id, None)])));
        Ok(outcome)
    }
}

fn edit_of(call: &ToolCall, state: &State) -> Option<(String, EditedCall)> {
    let id = call.id.as_ref()?.as_str();
    let edit = state.get::<EditedCalls>()?.get(id)?;
    let asked = state.messages().iter().rev().find(|message| message.as_ai().is_some())?;
    (asked.id == edit.message).then(|| (id.to_owned(), edit.clone()))
}

fn note(message: &mut Message, original: &str, edit: &EditedCall) {
    const SHOWN: usize = 2_000;
    let args = serde_json::to_string(&edit.action.args).unwrap_or_default();
    let shown: String = args.chars().take(SHOWN).collect();
    let cut = if shown.len() < args.len() { "…" } else { "" };
    let note = format!(
        "[A reviewer changed this call of `{original}` before it ran. What ran was `{}` with {shown}{cut}. Its result \
         follows.]\n",
        edit.action.name
    );
    match &mut message.content {
        Content::Text(text) => text.insert_str(0, &note),
        Content::Blocks(blocks) => blocks.insert(0, Block::text(note)),
    }
}
