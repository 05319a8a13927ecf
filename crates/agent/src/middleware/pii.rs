//! Keeps personal data out of what the model reads or says.
//!
//! Invariant: one pass over a text finds all kinds; what is to be blocked stops the call before anything leaves.

use std::sync::Arc;

use hart_guard::{PiiError, PiiStrategy};
use hart_kernel::{
    Command, HookError, HookResult, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, State,
    ToolNext, ToolOutcome, ToolRequest, async_trait,
};
use hart_types::Body;
use serde::Deserialize;

pub use crate::personal_data::PiiBlocked;
use crate::personal_data::{Treated, Treatment};
use crate::view::SharedView;

/// What is looked for, where, and what becomes of it. Off without rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PiiConfig {
    pub rules: Vec<PiiRule>,
}

/// One kind of personal data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PiiRule {
    /// `email`, `credit_card`, `ip`, `mac_address`, `url`, or a name of your own together with `detector`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A regular expression, for a kind of your own or instead of the built-in way to find one.
    pub detector: Option<String>,
    #[serde(default)]
    pub strategy: PiiStrategy,
    /// In users' messages, as the model gets them.
    #[serde(default = "yes")]
    pub apply_to_input: bool,
    /// In the model's answers, as the thread keeps them.
    #[serde(default)]
    pub apply_to_output: bool,
    /// In what tools return.
    #[serde(default)]
    pub apply_to_tool_results: bool,
}

fn yes() -> bool {
    true
}

/// Finds personal data and blocks, redacts, masks or hashes it, kind by kind.
///
/// - **Input**: users' messages are changed in the request only; the thread keeps what was said.
/// - **Output**: an answer is changed before it enters the thread, and its fragments before they are streamed, which makes
///   them at most a word late (256 characters with patterns of your own). A model's reasoning is left alone: providers
///   want theirs back unchanged.
/// - **Tool results** are changed before they enter the thread; what tools print while they run is then not shown.
///
/// With the strategy `block` the run fails with the kind that was found, and never with the value.
#[derive(Clone, Debug, Default)]
pub struct Pii {
    input: Treatment,
    output: Arc<Treatment>,
    tool_results: Treatment,
}

impl Pii {
    pub fn new(config: PiiConfig) -> Result<Self, PiiError> {
        let places =
            |applies: fn(&PiiRule) -> bool| Treatment::new(config.rules.iter().filter(|rule| applies(rule)));
        Ok(Self {
            input: places(|rule| rule.apply_to_input)?,
            output: Arc::new(places(|rule| rule.apply_to_output)?),
            tool_results: places(|rule| rule.apply_to_tool_results)?,
        })
    }
}

#[async_trait]
impl Middleware for Pii {
    async fn before_agent(&self, cx: &RunContext, _state: &State) -> HookResult {
        if !self.tool_results.is_empty() {
            cx.mute_tools();
        }
        Ok(Command::none())
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let view = cx.scratch.get_or_default::<RedactedView>();
        request.chat.messages = view.0.show(&request.chat.messages, |message| match message.body {
            Body::Human => self.input.rewritten(message, "the messages", true),
            _ => Ok(None),
        })?;
        if self.output.is_empty() {
            return next.run(request).await;
        }
        request.model = Arc::new(Treated::new(request.model, Arc::clone(&self.output)));
        let mut response = match next.run(request).await {
            // What had been said when it broke off is kept too.
            Err(HookError::Model(mut error)) => {
                let partial = error.take_partial();
                let treated = partial.map(|partial| {
                    let rewritten = self.output.rewritten(&partial, "the model's answer", false)?;
                    Ok::<_, HookError>(rewritten.unwrap_or(partial))
                });
                return Err(error.partial(treated.transpose()?).into());
            }
            answer => answer?,
        };
        if let Some(message) = self.output.rewritten(&response.message, "the model's answer", false)? {
            response.message = message;
        }
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        _cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let mut outcome = next.run(request).await?;
        if let Some(message) = self.tool_results.rewritten(&outcome.message, "a tool's result", false)? {
            outcome.message = message;
        }
        Ok(outcome)
    }
}

#[derive(Default)]
struct RedactedView(SharedView);
