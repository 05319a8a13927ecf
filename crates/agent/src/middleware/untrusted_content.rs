//! Seals the results of tools that bring in what strangers wrote.
//!
//! Invariant: such a result enters the thread neutralised and between markers that its author could not know.

use std::sync::Arc;

use hart_guard::{Seal, Untrusted};
use hart_kernel::{HookError, Middleware, RunContext, ToolNext, ToolOutcome, ToolRequest, async_trait};
use hart_types::{Block, Content};
use serde::Deserialize;

/// Which tools bring in foreign text.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UntrustedContentConfig {
    pub enabled: bool,
    pub tools: Vec<String>,
}

impl Default for UntrustedContentConfig {
    fn default() -> Self {
        let tools = ["web_fetch", "web_search", "image_search", "web_capture"];
        Self { enabled: true, tools: tools.map(str::to_owned).to_vec() }
    }
}

/// Treats what certain tools return as material: tags that frameworks use are escaped, characters that do not show are
/// dropped, and the text is put into a block whose markers carry a fresh random number, with the word that it is data
/// and not instructions. Results and errors alike; images stay as they are.
///
/// The tools are named in [`UntrustedContentConfig::tools`]; by default those that read the web.
#[derive(Clone, Debug, Default)]
pub struct UntrustedContent {
    config: UntrustedContentConfig,
}

impl UntrustedContent {
    pub fn new(config: UntrustedContentConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for UntrustedContent {
    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        let mut outcome = next.run(request).await?;
        if self.config.enabled && self.config.tools.iter().any(|tool| cx.tool_name(tool) == call.name) {
            outcome.message.content = sealed(&call.name, std::mem::take(&mut outcome.message.content));
        }
        Ok(outcome)
    }
}

fn sealed(source: &str, content: Content) -> Content {
    let seal = Seal::fresh();
    let enclose = |text: &str| seal.enclose(source, &Untrusted::new(text).sanitised());
    match content {
        Content::Text(text) => Content::Text(enclose(&text)),
        Content::Blocks(blocks) => Content::Blocks(
            blocks
                .into_iter()
                .map(|block| match block.as_text().map(enclose) {
                    Some(text) => Block::text(text),
                    None => block,
                })
                .collect(),
        ),
    }
}
