//! Runs foreign code so that it can neither take the run down nor keep it.
//!
//! Invariant: a panic becomes an error here, and a cancellation is obeyed within its grace, whoever is deaf to it.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use crate::{HookError, ModelError, RunContext};

pub(crate) async fn guarded<T>(
    cx: &RunContext,
    work: impl Future<Output = Result<T, HookError>>,
) -> Result<T, HookError> {
    let mut work = Box::pin(AssertUnwindSafe(work).catch_unwind());
    let finished = tokio::select! {
        biased;
        finished = &mut work => finished,
        () = cx.cancel.cancelled() => match tokio::time::timeout_at(cx.deadline(), &mut work).await {
            Ok(finished) => finished,
            Err(_) => return Err(ModelError::cancelled().into()),
        },
    };
    finished.unwrap_or_else(|panic| Err(HookError::Panic(panic_text(panic.as_ref()))))
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
