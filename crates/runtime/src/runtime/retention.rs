//! How long streams can be read again, and what a crash left behind.
//!
//! Invariant: only logs of runs that have ended are forgotten, each as a whole; threads, runs and states stay, but for
//! threads that were to go with their run, or when nobody uses them.

use std::sync::Weak;
use std::time::Duration;

use tokio::task::JoinError;
use tokio::time::MissedTickBehavior;

use super::Inner;
use crate::Thread;
use crate::port::StoreError;
use crate::workspaces::Workspace;

/// What is kept of the streams of runs that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How long after the run's end.
    pub age: Duration,
    /// How often what is older is looked for.
    pub every: Duration,
}

impl Default for Retention {
    /// A week, looked after every hour.
    fn default() -> Self {
        Self { age: Duration::from_secs(7 * 24 * 3600), every: Duration::from_secs(3600) }
    }
}

/// Whoever still reads such a thread's stream is done with it by then, in whatever process.
const LEFT_BEHIND: Duration = Duration::from_secs(600);

/// How often threads are looked for whose time is over: it is told in minutes.
const EXPIRE: Duration = Duration::from_secs(30);

impl Inner {
    /// A process that dies between the end of a run and the end of its thread leaves the thread to the next one.
    async fn sweep(&self) {
        let Ok(before) = self.clock.now().checked_sub(LEFT_BEHIND) else { return };
        let threads = self.store.left_behind(before).await.unwrap_or_else(|error| {
            if is_trouble(&error) {
                tracing::warn!(%error, "threads that were left behind cannot be looked for");
            }
            Vec::new()
        });
        for thread in threads {
            match self.store.delete_thread(&thread.id).await {
                Ok(_) => self.delete_files(thread).await,
                Err(error) => {
                    tracing::warn!(thread = %thread.id, %error, "a thread that was left behind is still there");
                }
            }
        }
    }

    /// Threads that nobody has used for as long as was asked.
    async fn expire(&self) -> Result<(), StoreError> {
        loop {
            let gone = self.store.expire_threads(self.clock.now()).await?;
            if gone.is_empty() {
                return Ok(());
            }
            tracing::info!(
                count = gone.len(),
                "threads are gone that nobody had used for as long as was asked"
            );
            for thread in gone {
                self.delete_files(thread).await;
            }
        }
    }

    async fn delete_files(&self, thread: Thread) {
        let files = Workspace { thread: thread.id, user: thread.user };
        if let Err(error) = self.workspaces.delete(&files).await {
            tracing::warn!(thread = %files.thread, %error, "the files of a thread that is gone are still there");
        }
    }
}

/// Forgets what is old as long as the runtime is there.
pub(super) async fn forget(runtime: Weak<Inner>, retention: Retention) {
    let every = retention.every.max(Duration::from_millis(1));
    let [mut look, mut expire] = [every, every.min(EXPIRE)].map(tokio::time::interval);
    for interval in [&mut look, &mut expire] {
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    let mut known = None;
    loop {
        let expires = tokio::select! {
            biased;
            _ = expire.tick() => true,
            _ = look.tick() => false,
        };
        let Some(inner) = runtime.upgrade() else { return };
        if expires {
            let trouble = inner.expire().await.err().filter(is_trouble).map(|error| error.to_string());
            // It is looked for so often that the same again is no news.
            if let Some(error) = trouble.as_ref().filter(|_| trouble != known) {
                tracing::warn!(error, "threads whose time is over cannot be looked for");
            }
            known = trouble;
            continue;
        }
        inner.sweep().await;
        let Ok(before) = inner.clock.now().checked_sub(retention.age) else { continue };
        match inner.store.forget_events(before).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "old events were forgotten"),
            Err(error) if is_trouble(&error) => {
                tracing::warn!(%error, "old events cannot be forgotten; trying again later");
            }
            Err(_) => {}
        }
    }
}

/// A process that ends cuts off what it is about to read; nobody needs to know.
fn is_trouble(error: &StoreError) -> bool {
    let StoreError::Failed { source: Some(source), .. } = error else { return true };
    !source.downcast_ref::<JoinError>().is_some_and(JoinError::is_cancelled)
}
