//! Shows the model the tools that fit what is being talked about.
//!
//! Invariant: within a run the choice stays, in the order the tools had; a tool that the thread has called stays for good.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{
    HookError, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, Schema, StateError,
    ToolChoice, Update, async_trait,
};

use crate::tool_ranking::{ToolSelectionConfig, ToolsUsed, best, topic};

/// Shows the model at most `max_tools` of many tools: those whose names and descriptions fit best, by the words of the
/// user's newest message and the latest calls.
///
/// No model is asked, unlike LangChain's `LLMToolSelector`; the choice takes no time and costs nothing. It is made
/// once a run, so that a provider's prompt cache holds. Tools in `always_include` and those the thread has called before
/// are shown in any case and not counted. A tool that is not shown still works if it is called. Off unless it is
/// switched on.
///
/// Settings: `tool_selection`, [`ToolSelectionConfig`].
#[derive(Clone, Debug)]
pub struct ToolSelection {
    config: ToolSelectionConfig,
}

impl ToolSelection {
    pub fn new(config: ToolSelectionConfig) -> Self {
        Self { config }
    }

    fn choose(&self, request: &ModelRequest, used: &BTreeSet<String>) -> BTreeSet<String> {
        let mut kept: BTreeSet<String> = self.config.always_include.iter().chain(used).cloned().collect();
        if let ToolChoice::Named(name) = &request.chat.settings.tool_choice {
            kept.insert(name.clone());
        }
        let chosen = best(&request.chat.tools, &kept, &topic(&request.chat.messages), self.config.max_tools);
        kept.extend(chosen);
        kept
    }
}

#[async_trait]
impl Middleware for ToolSelection {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<ToolsUsed>()?;
        Ok(())
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let known = request.state.get::<ToolsUsed>().cloned();
        let is_new = known.is_none();
        // A thread from before this was switched on is read once.
        let used = known.unwrap_or_else(|| {
            let calls = request.state.messages().iter().flat_map(|message| message.tool_calls());
            calls.map(|call| call.name.clone()).collect()
        });
        if request.chat.tools.len() > self.config.max_tools {
            let chosen = cx.scratch.get_or_default::<Chosen>();
            let mut names = chosen
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(|| self.choose(&request, &used))
                .clone();
            names.extend(used.iter().cloned());
            let shown = request.chat.tools.iter().filter(|tool| names.contains(&tool.name));
            request.chat.tools = shown.map(Arc::clone).collect();
        }
        let mut response = next.run(request).await?;
        let mut called: BTreeSet<String> =
            response.message.tool_calls().iter().map(|call| call.name.clone()).collect();
        called.retain(|name| !used.contains(name));
        if is_new {
            called.extend(used);
        }
        if is_new || !called.is_empty() {
            response.update.extend(Update::none().set::<ToolsUsed>(called));
        }
        Ok(response)
    }
}

/// The run's choice.
#[derive(Default)]
struct Chosen(Mutex<Option<BTreeSet<String>>>);
