//! Commands that run on while their caller does something else.
//!
//! Invariant: they have an owner, a [`Background`]; when it is stopped or dropped, none of them is left.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::contract::Sandbox;
use crate::error::{Result, SandboxError};
use crate::exec::{Capture, Exec, Exit, OutputSink, Stream};
use crate::path::VPath;

/// Running at once.
pub const MAX_BACKGROUND: usize = 8;
/// Ended ones that are still known.
const REMEMBERED: usize = 32;
/// Of the output that nobody has looked at yet; the middle of more is left out.
const UNSEEN: usize = 64 << 10;
/// Nobody waits for it, so it may take long; it ends with its owner.
const FOREVER: Duration = Duration::from_secs(7 * 24 * 3600);

/// The background commands of one run.
#[derive(Debug, Default)]
pub struct Background(
    /// Never held across an await.
    Mutex<Jobs>,
);

#[derive(Debug, Default)]
struct Jobs {
    tasks: JoinSet<()>,
    known: Vec<Arc<Job>>,
    started: u32,
}

/// A look at one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReport {
    pub id: String,
    pub command: String,
    pub state: JobState,
    /// What it printed since the last look, both streams in the order they came.
    pub output: String,
    /// Where all of it is, if that was asked for and it was long.
    pub saved_at: Option<VPath>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    Running,
    Ended(Exit),
    /// It could not be run.
    Failed(String),
}

impl Background {
    /// Starts a command and returns the id it goes by.
    pub fn start(&self, sandbox: Arc<dyn Sandbox>, exec: Exec) -> Result<String> {
        let mut jobs = self.lock();
        while jobs.tasks.try_join_next().is_some() {}
        if jobs.tasks.len() >= MAX_BACKGROUND {
            return Err(SandboxError::TooManyBackground { limit: MAX_BACKGROUND });
        }
        jobs.started += 1;
        let job = Arc::new(Job {
            id: format!("bg-{}", jobs.started),
            command: exec.command.clone(),
            saved: exec.save.clone(),
            cancel: CancellationToken::new(),
            progress: Mutex::new(Progress { unseen: Capture::new(UNSEEN), state: JobState::Running }),
            changed: Notify::new(),
        });
        if jobs.known.len() >= REMEMBERED + MAX_BACKGROUND {
            let oldest = jobs.known.iter().position(|job| job.lock().state != JobState::Running);
            oldest.map(|at| jobs.known.remove(at));
        }
        jobs.known.push(Arc::clone(&job));
        let id = job.id.clone();
        let work = async move {
            let ended = sandbox.exec(exec.timeout(FOREVER), Some(job.as_ref()), &job.cancel).await;
            job.end(match ended {
                Ok(output) => JobState::Ended(output.exit),
                Err(error) => JobState::Failed(error.to_string()),
            });
        };
        // What it does is logged as what its run does.
        jobs.tasks.spawn(work.in_current_span());
        Ok(id)
    }

    /// All there are, without their output.
    pub fn list(&self) -> Vec<JobReport> {
        self.lock().known.iter().map(|job| job.report(false)).collect()
    }

    /// What is new, waiting for something new for at most `wait`. `None` if there is no such command.
    pub async fn look(&self, id: &str, wait: Duration) -> Option<JobReport> {
        let job = self.find(id)?;
        // A time-out is no failure: there is simply nothing new.
        let _ = tokio::time::timeout(wait, job.news()).await;
        Some(job.report(true))
    }

    /// Ends a command with everything it started, and says what it still had to say.
    pub async fn kill(&self, id: &str) -> Option<JobReport> {
        let job = self.find(id)?;
        job.cancel.cancel();
        job.ended().await;
        Some(job.report(true))
    }

    /// Ends all of them and waits until they are gone.
    pub async fn stop(&self) {
        let mut tasks = {
            let mut jobs = self.lock();
            jobs.known.iter().for_each(|job| job.cancel.cancel());
            std::mem::take(&mut jobs.tasks)
        };
        while tasks.join_next().await.is_some() {}
    }

    fn find(&self, id: &str) -> Option<Arc<Job>> {
        self.lock().known.iter().find(|job| job.id == id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Job {
    id: String,
    command: String,
    saved: Option<Arc<crate::save::SavedOutput>>,
    cancel: CancellationToken,
    progress: Mutex<Progress>,
    changed: Notify,
}

#[derive(Debug)]
struct Progress {
    unseen: Capture,
    state: JobState,
}

impl Job {
    fn report(&self, take_output: bool) -> JobReport {
        let mut progress = self.lock();
        let output = if take_output {
            std::mem::replace(&mut progress.unseen, Capture::new(UNSEEN)).finish().0
        } else {
            String::new()
        };
        let saved = self.saved.as_ref();
        let in_file = saved.filter(|saved| matches!(saved.outcome(), crate::save::Saved::InFile { .. }));
        JobReport {
            id: self.id.clone(),
            command: self.command.clone(),
            state: progress.state.clone(),
            output,
            saved_at: in_file.map(|saved| saved.path().clone()),
        }
    }

    fn end(&self, state: JobState) {
        self.lock().state = state;
        self.changed.notify_waiters();
    }

    async fn news(&self) {
        self.until(|progress| progress.state != JobState::Running || !progress.unseen.is_empty()).await;
    }

    async fn ended(&self) {
        self.until(|progress| progress.state != JobState::Running).await;
    }

    async fn until(&self, condition: impl Fn(&Progress) -> bool) {
        loop {
            // Registered before the look, so that a change between the two is not missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if condition(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputSink for Job {
    fn output(&self, _stream: Stream, text: &str) {
        self.lock().unseen.push(text.as_bytes());
        self.changed.notify_waiters();
    }
}
