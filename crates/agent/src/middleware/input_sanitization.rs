//! What a user wrote reaches the model neutralised and between markers.
//!
//! Invariant: only the request is changed, and a message is changed the same way in every request, so that providers
//! can reuse the beginning of the last one.

use hart_guard::{Untrusted, user_input};
use hart_kernel::{HookError, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, async_trait};
use hart_types::{Block, Body, Content, Message};
use serde_json::Value;

use crate::view::SharedView;

/// Keeps users, and whatever they paste, from writing parts of the prompt.
///
/// In the request, never in the thread, each message of a user is neutralised: tags that frameworks use
/// (`<system-reminder>` and the like) are escaped, characters that do not show are dropped, forged markers lose their
/// dashes. Then the text is put between `--- BEGIN USER INPUT ---` and `--- END USER INPUT ---`. The original stays in
/// `additional_kwargs.original_user_content`, for whoever further in needs it.
///
/// DeerFlow treats only the newest message so, and shows it bare later on. Here all are treated alike: a request then
/// begins with exactly what the one before it held, which is what prompt caches need. Messages that hart itself adds
/// (`hide_from_ui`) are left alone, unless they answer a question of the agent's.
#[derive(Clone, Copy, Debug)]
pub struct InputSanitization;

#[async_trait]
impl Middleware for InputSanitization {
    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let view = cx.scratch.get_or_default::<SanitisedView>();
        request.chat.messages =
            view.0.show(&request.chat.messages, |message| Ok::<_, HookError>(sanitised(message)))?;
        next.run(request).await
    }
}

#[derive(Default)]
struct SanitisedView(SharedView);

fn sanitised(message: &Message) -> Option<Message> {
    let text = message.text();
    if !is_of_the_user(message) || text.trim().is_empty() {
        return None;
    }
    let mut shown = message.clone();
    shown.content = match std::mem::take(&mut shown.content) {
        Content::Text(text) => Content::Text(user_input(&Untrusted::new(text).sanitised())),
        Content::Blocks(blocks) => Content::Blocks(one_text(blocks, &text)),
    };
    shown.additional_kwargs.insert("original_user_content".to_owned(), Value::from(text));
    Some(shown)
}

/// The blocks with all their text in the place of the first: markers between two blocks would be two inputs.
fn one_text(blocks: Vec<Block>, text: &str) -> Vec<Block> {
    let mut whole = Some(Block::text(user_input(&Untrusted::new(text).sanitised())));
    let replaced = blocks.into_iter().filter_map(|block| match block.as_text() {
        Some(_) => whole.take(),
        None => Some(block),
    });
    replaced.collect()
}

fn is_of_the_user(message: &Message) -> bool {
    let kwargs = &message.additional_kwargs;
    let hidden = kwargs.get("hide_from_ui").is_some_and(|hidden| hidden == true);
    matches!(message.body, Body::Human) && (!hidden || kwargs.contains_key("human_input_response"))
}
