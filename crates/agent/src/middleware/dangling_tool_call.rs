//! Repairs, in the request, a history that no provider would accept.
//!
//! Invariant: the thread keeps what really happened; only what is sent is repaired, before every model call.

use std::sync::{Mutex, PoisonError};

use hart_kernel::{HookError, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, async_trait};

use crate::repair::History;

/// Gives every tool call a name, an id of its own and a result, whatever a crash, a model or another provider left
/// behind.
///
/// A call that was interrupted is answered with an error that says so; results without a call are left out; a call
/// without a name becomes `unknown_tool`; missing, repeated and unusable ids are replaced in the call and in its result
/// alike. It has no settings and is always on: without it one crash makes a thread unusable. What the model is told of
/// arguments that were no JSON is told by the loop itself; here they only get the result they may lack.
#[derive(Clone, Copy, Debug)]
pub struct DanglingToolCall;

#[async_trait]
impl Middleware for DanglingToolCall {
    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let checked = cx.scratch.get_or_default::<Checked>();
        let repaired =
            checked.0.lock().unwrap_or_else(PoisonError::into_inner).repair(&request.chat.messages);
        if let Some(messages) = repaired {
            request.chat.messages = messages;
        }
        next.run(request).await
    }
}

/// What has been looked at in this run.
#[derive(Default)]
struct Checked(
    /// Never held across an await.
    Mutex<History>,
);
