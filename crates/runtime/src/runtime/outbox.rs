//! Delivers what is to be told of runs that have ended.
//!
//! Invariant: an attempt is counted before it is made, so a crash in the middle of one costs an attempt and no letter.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
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
            let mut on_their_way = FuturesUnordered::new();
            loop {
                let changed = runtime.inner.letters_changed.notified();
                let room = AT_ONCE.saturating_sub(on_their_way.len() as u64);
                let wait = match runtime.due_letters(room).await {
                    Ok((due, next)) => {
                        on_their_way.extend(due.into_iter().map(|letter| runtime.attempt(letter, &*postman)));
                        next.map_or(LONGEST_SLEEP, |next| runtime.until(next).min(LONGEST_SLEEP))
                    }
                    Err(error) => {
                        tracing::error!(%error, "the outbox could not be looked at; trying again");
                        Duration::from_secs(1)
                    }
                };
                tokio::select! {
                    biased;
                    // What is on its way is tried again by the next server.
                    () = runtime.inner.closing.cancelled() => return,
                    Some(attempt) = on_their_way.next() => {
                        if let Err(error) = attempt {
                            tracing::error!(%error, "what became of a webhook could not be noted");
                        }
                    }
                    () = tokio::time::sleep(wait) => {}
                    () = changed => {}
                }
            }
        });
    }

    /// Those that are due, as many as there is room for, and when the next one is. One that is on its way already is not
    /// due, or refuses to set out twice.
    async fn due_letters(&self, room: u64) -> Result<(Vec<Letter>, Option<Timestamp>), StoreError> {
        if room == 0 {
            return Ok((Vec::new(), None));
        }
        let due = self.inner.store.due_letters(self.now(), room).await?;
        let next = if due.is_empty() { self.inner.store.next_letter().await? } else { None };
        Ok((due, next))
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
