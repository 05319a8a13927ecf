//! Starts the runs of crons when they are due.
//!
//! Invariant: each due time starts one run, also over a crash; times that nobody was there for start one run together.

use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{Timestamp, async_trait};
use hart_types::CronId;
use jiff::tz::TimeZone;

use super::{Runtime, StartError};
use crate::port::{Cron, StoreError};
use crate::request::StartRun;
use crate::schedule::{Schedule, ScheduleError};

/// Knows what a cron's payload asks for.
#[async_trait]
pub trait CronRequests: Send + Sync + 'static {
    /// The run that is due, or why there will never be one.
    async fn request(&self, cron: &Cron) -> Result<StartRun, CronRequestError>;
}

#[derive(Debug, thiserror::Error)]
pub enum CronRequestError {
    /// It stays like this: the cron is switched off.
    #[error("{0}")]
    Never(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a cron cannot be like this.
#[derive(Debug, thiserror::Error)]
pub enum CronError {
    #[error("there is no cron `{0}`")]
    Unknown(CronId),
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error("`{0}` is not a time zone; names are those of the IANA database, such as `Europe/Paris`")]
    Timezone(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The clock may be set, and other processes may have crons: nobody sleeps longer.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// How many are looked at together.
const AT_ONCE: u64 = 100;

impl Runtime {
    /// Starts runs when they are due, until this runtime closes.
    pub fn keep_crons(&self, requests: Arc<dyn CronRequests>) {
        let runtime = self.clone();
        self.inner.tasks.spawn(async move {
            loop {
                let changed = runtime.inner.crons_changed.notified();
                let wait = match runtime.run_due_crons(&*requests).await {
                    Ok(next) => next.map_or(LONGEST_SLEEP, |next| runtime.until(next).min(LONGEST_SLEEP)),
                    Err(error) => {
                        tracing::error!(%error, "crons could not be looked at; trying again");
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

    /// Starts what is due; when the next one is.
    pub async fn run_due_crons(&self, requests: &dyn CronRequests) -> Result<Option<Timestamp>, StoreError> {
        loop {
            let now = self.now();
            let due = self.inner.store.due_crons(now, AT_ONCE).await?;
            if due.is_empty() || self.inner.closing.is_cancelled() {
                return self.inner.store.next_due().await;
            }
            for cron in due {
                self.fire(cron, now, requests).await?;
            }
        }
    }

    /// Stores it with the time it is first due.
    pub async fn create_cron(&self, cron: Cron) -> Result<Cron, CronError> {
        let cron = Cron { next_run: next_run(&cron, self.now())?, ..cron };
        self.inner.store.create_cron(cron.clone()).await?;
        self.inner.crons_changed.notify_waiters();
        Ok(cron)
    }

    /// Changes it; what it missed until then does not come again.
    pub async fn change_cron(&self, id: &CronId, change: impl Fn(&mut Cron)) -> Result<Cron, CronError> {
        loop {
            let found = self.inner.store.cron(id).await?;
            let mut cron = found.ok_or_else(|| CronError::Unknown(id.clone()))?;
            let (seen, was) = (cron.updated_at, cron.clone());
            change(&mut cron);
            cron.updated_at = self.now();
            let moved = (&was.schedule, &was.timezone, was.end_time, was.enabled)
                != (&cron.schedule, &cron.timezone, cron.end_time, cron.enabled);
            if moved {
                cron.next_run = next_run(&cron, self.now())?;
            }
            if self.inner.store.replace_cron(cron.clone(), seen).await? {
                self.inner.crons_changed.notify_waiters();
                return Ok(cron);
            }
        }
    }

    async fn fire(&self, cron: Cron, now: Timestamp, requests: &dyn CronRequests) -> Result<(), StoreError> {
        let Some(due) = cron.next_run else { return Ok(()) };
        let seen = cron.updated_at;
        let next = next_run(&cron, now).unwrap_or_else(|error| {
            tracing::error!(cron = %cron.id, %error, "a cron cannot go on");
            None
        });
        let mut advanced = Cron { next_run: next, updated_at: now, ..cron.clone() };
        if cron.end_time.is_some_and(|end| end < now) {
            self.inner.store.replace_cron(Cron { next_run: None, ..advanced }, seen).await?;
            return Ok(());
        }
        let started = match requests.request(&cron).await {
            Err(CronRequestError::Store(error)) => return Err(error),
            Err(CronRequestError::Never(reason)) => Err(reason),
            Ok(request) => {
                // A second attempt after a crash is the same run.
                let key = format!("cron/{}/{}", cron.id, due.as_microsecond());
                match self.admit(StartRun { idempotency_key: Some(key), ..request }).await {
                    Ok(run) => Ok(Some(run)),
                    Err(StartError::Busy) => {
                        tracing::warn!(cron = %cron.id, "left out: its thread is busy, and it rejects that");
                        Ok(None)
                    }
                    Err(StartError::Closing) => return Ok(()),
                    Err(StartError::Store(error)) => return Err(error),
                    Err(error @ (StartError::NoThread(_) | StartError::KeyTaken)) => Err(error.to_string()),
                }
            }
        };
        let run = started.unwrap_or_else(|reason| {
            tracing::error!(cron = %cron.id, %reason, "a cron is switched off: what it starts cannot be started");
            advanced.enabled = false;
            None
        });
        // Before the run begins: as long as it waits, its key is there for whoever tries again.
        self.inner.store.replace_cron(advanced, seen).await?;
        if let Some(run) = run {
            tracing::info!(cron = %cron.id, run = %run.id, "a cron was due");
            self.inner.spawn_lane(run.thread, None);
        }
        Ok(())
    }
}

/// The first time after now, if it does not come to its end before.
fn next_run(cron: &Cron, now: Timestamp) -> Result<Option<Timestamp>, CronError> {
    let schedule = Schedule::parse(&cron.schedule)?;
    let zone = TimeZone::get(&cron.timezone).map_err(|_| CronError::Timezone(cron.timezone.clone()))?;
    Ok(schedule.after(now, &zone).filter(|next| cron.end_time.is_none_or(|end| *next <= end)))
}
