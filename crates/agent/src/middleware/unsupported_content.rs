//! Asks again in words when a model refuses images or files.
//!
//! Invariant: only what is sent changes; the thread keeps what the user gave.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{
    HookError, MessageList, Middleware, ModelErrorKind, ModelNext, ModelRequest, ModelResponse, RunContext,
    async_trait,
};
use hart_types::{Block, BlockView, Content, ImageSource, Message};
use serde_json::Value;

use crate::view::{Shown, View};

/// Puts a notice where an image, a file, a recording or a film would stand that the model does not take.
///
/// What is known of a model beforehand (`supports_vision`, the catalogue, a probe) is applied where the model is
/// configured, and what is merely unknown is sent: leaving an image out on a guess would be worse. If the provider then
/// refuses the request, it is asked once more with notices in the place of all such content; if it accepts that, the
/// notices stay for the rest of the run and an operator finds one line in the log. If not, the first refusal stands.
#[derive(Clone, Copy, Debug)]
pub struct UnsupportedContent;

#[async_trait]
impl Middleware for UnsupportedContent {
    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let refused = cx.scratch.get_or_default::<Refused>();
        let model = request.model.profile().name.clone();
        if let Some(messages) = refused.without_media(&model, &request.chat.messages) {
            request.chat.messages = messages;
            return next.run(request).await;
        }
        let error = match next.run(request.clone()).await {
            Err(HookError::Model(error)) if error.kind == ModelErrorKind::BadRequest => error,
            answer => return answer,
        };
        if !request.chat.messages.iter().any(|message| has_media(message)) {
            return Err(error.into());
        }
        request.chat.messages = refused.add(&model, &request.chat.messages);
        match next.run(request).await {
            Ok(answer) => {
                tracing::warn!(%model, %error, "the model takes the request only without images and files");
                Ok(answer)
            }
            Err(_) => {
                refused.remove(&model);
                Err(error.into())
            }
        }
    }
}

/// The models that refused, and the conversation as they get it. Never held across an await.
#[derive(Default)]
struct Refused(Mutex<HashMap<String, View>>);

impl Refused {
    fn without_media(&self, model: &str, messages: &MessageList) -> Option<MessageList> {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get_mut(model).map(|view| view.of(messages, |message| in_words(model, message)))
    }

    fn add(&self, model: &str, messages: &MessageList) -> MessageList {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.entry(model.to_owned()).or_default().of(messages, |message| in_words(model, message))
    }

    fn remove(&self, model: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(model);
    }
}

fn in_words(model: &str, message: &Arc<Message>) -> Shown {
    if !has_media(message) {
        return Shown::AsItIs;
    }
    let notice = |block: &Block| match kind(block) {
        Some(kind) => Block::text(format!("[{kind} was here; the model `{model}` did not take it.]")),
        None => block.clone(),
    };
    let mut message = Message::clone(message);
    message.content = Content::Blocks(message.content.to_blocks().iter().map(notice).collect());
    Shown::Instead(Arc::new(message))
}

/// What a model said itself is its own to judge; a signed block must not change.
fn has_media(message: &Message) -> bool {
    let Content::Blocks(blocks) = &message.content else { return false };
    message.as_ai().is_none() && blocks.iter().any(|block| kind(block).is_some())
}

fn kind(block: &Block) -> Option<String> {
    match block.view() {
        BlockView::Image(ImageSource::Base64 { mime_type, .. }) => Some(format!("An image ({mime_type})")),
        BlockView::Image(ImageSource::Url(_)) => Some("An image".to_owned()),
        BlockView::File { mime_type, name, .. } => {
            Some(format!("The file {} ({mime_type})", name.unwrap_or("without a name")))
        }
        BlockView::Other(map) => match map.get("type").and_then(Value::as_str)? {
            "audio" | "input_audio" | "audio_url" => Some("A recording".to_owned()),
            "video" | "video_url" => Some("A film".to_owned()),
            "media" | "file" | "document" => Some("A file".to_owned()),
            _ => None,
        },
        BlockView::Text(_) | BlockView::Reasoning { .. } => None,
    }
}
