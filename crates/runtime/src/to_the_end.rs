//! Work that is finished also when nobody waits for it any more.
//!
//! Invariant: what was begun comes to its end, here or in a task of its own, unless the whole program ends.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Costs whoever waits to the end nothing: only work that is left alone becomes a task.
pub(crate) struct ToTheEnd<F: Future<Output: Send> + Send + 'static> {
    work: Option<Pin<Box<F>>>,
    tasks: TaskTracker,
    /// Whoever waits for all tasks waits for this, too.
    _counted: TaskTrackerToken,
}

impl<F: Future<Output: Send> + Send + 'static> ToTheEnd<F> {
    pub(crate) fn new(work: F, tasks: &TaskTracker) -> Self {
        Self { work: Some(Box::pin(work)), tasks: tasks.clone(), _counted: tasks.token() }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for ToTheEnd<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Out of our hands while it works: what panics is not begun again.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let done = work.as_mut().poll(cx);
        if done.is_pending() {
            self.work = Some(work);
        }
        done
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for ToTheEnd<F> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take()
            && Handle::try_current().is_ok()
        {
            self.tasks.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_was_begun_goes_on_without_whoever_waited() {
        let tasks = TaskTracker::new();
        let ((open, opened), (tell, told)) = (oneshot::channel::<()>(), oneshot::channel());
        let work = async move {
            let _ = opened.await;
            let _ = tell.send("done");
        };
        let waiting = ToTheEnd::new(work, &tasks);
        assert!(tokio::time::timeout(Duration::from_millis(1), waiting).await.is_err());
        tasks.close();
        open.send(()).unwrap();
        assert_eq!(told.await, Ok("done"));
        tasks.wait().await;
    }
}
