//! Keeps long tool results out of the conversation: the model sees their ends and the path of the rest.
//!
//! Invariant: a result leaves here whole, or with a note that says where the rest is or why it is gone.

use std::sync::Arc;

use hart_kernel::{HookError, Middleware, RunContext, ToolNext, ToolOutcome, ToolRequest, async_trait};
use hart_sandbox::{SandboxProvider, VPath, WriteMode};
use hart_tools::ToolOutputConfig;
use hart_types::{Block, Content, Message};

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

    /// Puts the text into a file of the thread.
    async fn store(&self, cx: &RunContext, tool: &str, call: &str, text: &str) -> Result<VPath, String> {
        let sandboxes = self.sandboxes.as_ref().ok_or("there is no sandbox")?;
        let path =
            self.config.path(tool, &format!("{}:{call}", cx.run_id)).map_err(|error| error.to_string())?;
        let sandbox =
            sandboxes.acquire(&cx.thread_id, &cx.user_id).await.map_err(|error| error.to_string())?;
        let written = sandbox.write(&path, text.as_bytes(), WriteMode::Overwrite).await;
        written.map(|()| path).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Middleware for ToolOutputBudget {
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
