//! Delivers what is to be told of runs that have ended.
//!
//! Invariant: an attempt is counted before it is made, so a crash in the middle of one costs an attempt and no letter.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use hart_kernel::{Timestamp, async_trait};

use super::Runtime;
use crate::port::{Letter, StoreError};

/// Takes letters to where they are addressed to.
#[async_trait]
pub trait Postman: Send + Sync + 'static {
    /// Answers within [`ATTEMPT`].
    async fn deliver(&self, letter: &Letter) -> Result<(), Undelivered>;
}

/// Why a letter was not taken.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Undelivered {
    pub reason: String,
    /// Whether trying again could help.
    pub again: bool,
}

/// How long one attempt may take; another one is not made before.
pub const ATTEMPT: Duration = Duration::from_secs(30);
/// How long after each attempt that failed the next one is made; after the last one it is given up.
const PAUSES: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
];
/// Other processes put letters in, too: nobody sleeps longer.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// How many are on their way together; one slow address must not hold up the others.
const AT_ONCE: u64 = 16;

impl Runtime {
    /// Delivers letters until this runtime closes.
    pub fn keep_outbox(&self, postman: Arc<dyn Postman>) {
        let runtime = self.clone();
        self.inner.tasks.spawn(async move {
            loop {
                let changed = runtime.inner.letters_changed.notified();
                let delivered = tokio::select! {
                    delivered = runtime.deliver_due(&*postman) => delivered,
                    // What is on its way is tried again by the next server.
                    () = runtime.inner.closing.cancelled() => return,
                };
                let wait = match delivered {
                    Ok(next) => next.map_or(LONGEST_SLEEP, |next| runtime.until(next).min(LONGEST_SLEEP)),
                    Err(error) => {
                        tracing::error!(%error, "the outbox could not be looked at; trying again");
                        Duration::from_secs(1)
                    }
                };
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = changed => {}
                    () = runtime.inner.closing.cancelled() => return,
                }
            }
        });
    }

    /// Tries all letters that are due; when the next one is.
    pub async fn deliver_due(&self, postman: &dyn Postman) -> Result<Option<Timestamp>, StoreError> {
        let due = self.inner.store.due_letters(self.now(), AT_ONCE).await?;
        let attempts = stream::iter(due).map(|letter| self.attempt(letter, postman));
        let mut attempts = attempts.buffer_unordered(AT_ONCE as usize);
        while let Some(attempt) = attempts.next().await {
            attempt?;
        }
        self.inner.store.next_letter().await
    }

    async fn attempt(&self, letter: Letter, postman: &dyn Postman) -> Result<(), StoreError> {
        let attempts = letter.attempts + 1;
        if !self.inner.store.put_off(&letter, attempts, self.later(ATTEMPT * 2)).await? {
            return Ok(());
        }
        let Err(error) = postman.deliver(&letter).await else {
            return self.inner.store.drop_letter(letter.id).await;
        };
        let run = &letter.run.id;
        let pause = PAUSES.get(letter.attempts as usize).filter(|_| error.again);
        let Some(pause) = pause else {
            tracing::error!(%run, attempts, %error, "a webhook was given up");
            return self.inner.store.drop_letter(letter.id).await;
        };
        tracing::warn!(%run, attempts, %error, again_in = ?pause, "a webhook did not arrive");
        let tried = Letter { attempts, ..letter };
        self.inner.store.put_off(&tried, attempts, self.later(*pause)).await.map(|_| ())
    }

    fn later(&self, by: Duration) -> Timestamp {
        let now = self.now();
        now.checked_add(by).unwrap_or(now)
    }
}
