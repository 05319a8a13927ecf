//! Shows the model the images it asked to see.
//!
//! Invariant: images are in requests, not in messages; a model that cannot see gets words instead.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{
    Command, HookError, MessageList, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, Schema,
    State, StateError, Tool, ToolNext, ToolOutcome, ToolRequest, async_trait,
};
use hart_sandbox::SandboxProvider;
use hart_tools::{ViewedImages, viewed};
use hart_types::{Block, Content, Message, MessageId, ToolStatus};
use serde::Deserialize;

use crate::view::{Shown, View};

/// Offers `view_image` to models that can see, and puts the images into the tool's results when they are sent.
///
/// The image's bytes are in the thread's log once; each request that has the result in it has the image in it, at the
/// same place. (DeerFlow adds a message for one call and takes it out again; then the provider reads the whole
/// conversation anew, and the model forgets what it saw.) When there are more than [`ViewImageConfig::max_images`] or
/// [`ViewImageConfig::max_total_bytes`] of them, the older half gives way to a note.
///
/// A model that is not known to see (`supports_vision`) is not offered the tool; if it calls it all the same, or takes
/// over a thread with images, it is told that it cannot see and what to do instead. Needs a sandbox.
#[derive(Clone, Debug)]
pub struct ViewImage {
    sandboxes: Arc<dyn SandboxProvider>,
    config: ViewImageConfig,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ViewImageConfig {
    /// How many images one request shows.
    pub max_images: usize,
    /// How much they may have together, as base64.
    pub max_total_bytes: usize,
}

impl Default for ViewImageConfig {
    fn default() -> Self {
        // Providers refuse requests of more than about 30 MB.
        Self { max_images: 20, max_total_bytes: 28 * 1024 * 1024 }
    }
}

impl ViewImage {
    pub fn new(sandboxes: Arc<dyn SandboxProvider>, config: ViewImageConfig) -> Self {
        Self { sandboxes, config }
    }
}

const TOOL: &str = "view_image";
const BLIND: &str = "This model cannot see images (for all that is known of it), so nothing was shown. Examine the file \
                     with a program in bash instead, or tell the user that a model with vision is needed.";
const OLD: &str = "An older image, no longer shown. Call view_image again if you need to see it.";

#[async_trait]
impl Middleware for ViewImage {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<ViewedImages>()?;
        Ok(())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![hart_tools::view_image(Arc::clone(&self.sandboxes))]
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let sees = request.model.profile().vision;
        if !sees && request.chat.tools.iter().any(|tool| tool.name == TOOL) {
            let tools = request.chat.tools.iter().filter(|tool| tool.name != TOOL);
            request.chat.tools = tools.cloned().collect();
        }
        let sight = cx.scratch.get_or_default::<Sight>();
        request.chat.messages = sight.shown(&request.chat.messages, &request.state, sees, &self.config);
        next.run(request).await
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        if request.call.name != TOOL || cx.scratch.get_or_default::<Sight>().sees() {
            return next.run(request).await;
        }
        let id = request.call.id.clone().unwrap_or_else(|| "".into());
        let message = Message::tool(&id, TOOL, ToolStatus::Error, format!("Error: {BLIND}"));
        Ok(ToolOutcome { message, command: Command::none() })
    }
}

/// What is shown in this run. Never held across an await.
#[derive(Default)]
struct Sight(Mutex<Gallery>);

#[derive(Default)]
struct Gallery {
    sees: bool,
    seen: MessageList,
    /// The results that are shown with their images, and how much these have.
    hung: VecDeque<(MessageId, usize)>,
    /// Those that no longer are.
    taken_down: HashSet<MessageId>,
    view: View,
}

impl Sight {
    fn sees(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sees
    }

    fn shown(
        &self,
        messages: &MessageList,
        state: &State,
        sees: bool,
        config: &ViewImageConfig,
    ) -> MessageList {
        let mut gallery = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if gallery.sees != sees || gallery.seen.common_prefix(messages) < gallery.seen.len() {
            *gallery = Gallery { sees, ..Gallery::default() };
        }
        gallery.hang(messages, state, config);
        let Gallery { taken_down, view, .. } = &mut *gallery;
        let images = state.get::<ViewedImages>();
        view.of(messages, |message| {
            let down = message.id.as_ref().is_some_and(|id| taken_down.contains(id));
            let block = |digest: &str| match images.and_then(|images| images.get(digest)) {
                _ if !sees => Block::text(BLIND),
                Some(image) if !down => Block::image_base64(&image.mime_type, &image.base64),
                _ => Block::text(OLD),
            };
            let mut blocks: Vec<Block> = viewed(message).map(block).collect();
            if blocks.is_empty() {
                return Shown::AsItIs;
            }
            let mut message = Message::clone(message);
            let mut all = message.content.to_blocks();
            all.append(&mut blocks);
            message.content = Content::Blocks(all);
            Shown::Instead(Arc::new(message))
        })
    }
}

impl Gallery {
    /// One after the other, so that the same conversation always shows the same images.
    fn hang(&mut self, messages: &MessageList, state: &State, config: &ViewImageConfig) {
        let images = state.get::<ViewedImages>();
        let size =
            |digest: &str| images.and_then(|images| images.get(digest)).map(|image| image.base64.len());
        for message in messages.iter_from(self.seen.len()) {
            let Some(id) = &message.id else { continue };
            self.hung.extend(viewed(message).filter_map(size).map(|size| (id.clone(), size)));
            if self.hung.len() > config.max_images || self.bytes() > config.max_total_bytes {
                // Half at once: each time one goes, the provider reads all that follows it anew.
                while self.hung.len() > config.max_images / 2 || self.bytes() > config.max_total_bytes / 2 {
                    let Some((oldest, _)) = self.hung.front().filter(|(oldest, _)| oldest != id) else {
                        break;
                    };
                    let oldest = oldest.clone();
                    self.hung.retain(|(id, _)| *id != oldest);
                    self.taken_down.insert(oldest);
                    self.view.forget();
                }
            }
        }
        self.seen = messages.clone();
    }

    fn bytes(&self) -> usize {
        self.hung.iter().map(|(_, size)| size).sum()
    }
}
