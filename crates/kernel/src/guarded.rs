//! Runs foreign code so that it can neither take the run down nor keep it.
//!
//! Invariant: a panic becomes an error here, and a cancellation is obeyed within its grace, whoever is deaf to it.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;

use crate::{HookError, ModelError, RunContext};

/// `limit` is how long it may take, if there is a limit.
pub(crate) async fn guarded<T>(
    cx: &RunContext,
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, HookError>>,
) -> Result<T, HookError> {
    let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
    // Most hooks wait for nothing: for them no clock is read, no timer set and nothing listened to.
    let finished = match at_once(work.as_mut()).await {
        Some(finished) => finished,
        None => {
            let heeding = heeding(cx, work);
            match limit {
                None => heeding.await?,
                Some(limit) => match tokio::time::timeout(limit, heeding).await {
                    Ok(finished) => finished?,
                    Err(_) => return Err(HookError::TimedOut(limit)),
                },
            }
        }
    };
    finished.unwrap_or_else(|panic| Err(HookError::Panic(panic_text(panic.as_ref()))))
}

/// What comes of the first poll.
async fn at_once<F: Future>(mut work: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(finished) => Poll::Ready(Some(finished)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// To its end, or until its grace after the cancellation is over.
async fn heeding<F: Future>(cx: &RunContext, mut work: Pin<&mut F>) -> Result<F::Output, HookError> {
    tokio::select! {
        biased;
        finished = &mut work => Ok(finished),
        () = cx.cancel.cancelled() => {
            let finished = tokio::time::timeout_at(cx.deadline(), work).await;
            finished.map_err(|_| ModelError::cancelled().into())
        }
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
