//! Executes the runs of a thread, one after the other.
//!
//! Invariant: the record says how a run ended before its stream does.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use hart_kernel::{Agent, Ended, ModelErrorKind, Resume, RunContext, RunError, RunInput};
use hart_types::{CancelAction, RunStatus, ThreadId, ThreadStatus};

use super::{Inner, LINGER, Live, Runtime, interrupted, orphaned};
use crate::checkpoints::StepLog;
use crate::event::LogEvent;
use crate::port::{RunEnd, RunQuery, StoreError};
use crate::request::{AgentRequest, Input};
use crate::sink::RunSink;
use crate::values::ValuesEncoder;
use crate::workspaces::{Workspace, WorkspaceError};
use crate::{Failure, Run};

impl Runtime {
    /// Runs whatever waits on the thread. Two lanes of one thread do no harm: a claim is given once.
    pub(super) fn spawn_lane(&self, thread: ThreadId) {
        let inner = Arc::clone(&self.inner);
        self.inner.tasks.spawn(async move {
            loop {
                match inner.store.claim(&thread, inner.clock.now()).await {
                    Ok(Some(run)) => execute(&inner, run).await,
                    Ok(None) => match inner.until_next(&thread).await {
                        Some(wait) => tokio::time::sleep(wait).await,
                        None => return,
                    },
                    Err(error) => {
                        tracing::error!(%thread, %error, "the next run of a thread cannot be claimed");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            }
        });
    }

    pub(super) async fn end_pending(
        &self,
        run: &Run,
        live: &Live,
        action: CancelAction,
    ) -> Result<(), StoreError> {
        let ended = match action {
            CancelAction::Interrupt => {
                self.inner.store.end_run(&run.id, interrupted(self.now())).await?.is_some()
            }
            CancelAction::Rollback => self.inner.store.undo_run(&run.id, self.now()).await?,
        };
        if ended {
            self.inner.finish(live, RunStatus::Interrupted).await;
        }
        Ok(())
    }
}

impl Inner {
    /// How long until a run of the thread is due, if none runs now.
    async fn until_next(&self, thread: &ThreadId) -> Option<Duration> {
        let query = RunQuery {
            thread: Some(thread.clone()),
            status: vec![RunStatus::Pending, RunStatus::Running],
            limit: 100,
            ..RunQuery::default()
        };
        let active = self.store.runs(&query).await.ok()?;
        if active.iter().any(|run| run.status == RunStatus::Running) {
            // Whoever runs it looks for the next one.
            return None;
        }
        let due = active.iter().map(|run| run.start_at).min()?;
        let wait = due.duration_since(self.clock.now());
        Some(Duration::try_from(wait).unwrap_or_default().max(Duration::from_millis(1)))
    }

    /// Tells everybody that it is over; the log stays at hand for a while.
    async fn finish(&self, live: &Live, status: RunStatus) {
        live.tape
            .push(crate::event::Logged { namespace: Vec::new(), event: LogEvent::Ended { status } }, None)
            .await;
        live.tape.close();
        live.ended.send_replace(true);
        let _ = live.ended_at.set(Instant::now());
        self.lock_live().retain(|_, live| live.ended_at.get().is_none_or(|at| at.elapsed() < LINGER));
    }
}

async fn execute(inner: &Arc<Inner>, run: Run) {
    let Some(live) = inner.lock_live().get(&run.id).cloned() else {
        // Admitted by a process that this one does not know: what it was to do is known there alone.
        settle(inner, || inner.store.end_run(&run.id, orphaned(inner.clock.now()))).await;
        return;
    };
    let recorder = {
        let (tape, store) = (Arc::clone(&live.tape), Arc::clone(&inner.store));
        inner.tasks.spawn(async move { tape.record(&*store).await })
    };
    let sink = Arc::new(RunSink::new(run.id.clone(), Arc::clone(&live.tape)));
    sink.log(LogEvent::Started { attempt: 1 }).await;
    let files = Workspace { thread: run.thread.clone(), user: run.user.clone() };
    told(&sink, "workspace_not_kept", inner.workspaces.before_run(&files, &run.id).await).await;
    let outcome = work(inner, &run, &live, &sink).await;
    let rolled_back = matches!(outcome, Err(Failed::Cancelled))
        && *live.action.lock().unwrap_or_else(PoisonError::into_inner) == CancelAction::Rollback;
    if !rolled_back {
        told(&sink, "workspace_not_kept", inner.workspaces.after_run(&files, &run.id).await).await;
    }
    let status = if rolled_back {
        told(&sink, "workspace_not_restored", inner.workspaces.undo_run(&files, &run.id).await).await;
        settle(inner, || inner.store.undo_run(&run.id, inner.clock.now())).await;
        RunStatus::Interrupted
    } else {
        let end = RunEnd { values: told_of(&run, &sink), ..end_of(inner, &sink, outcome, &live).await };
        let status = end.status;
        settle(inner, || inner.store.end_run(&run.id, end.clone())).await;
        status
    };
    inner.letters_changed.notify_waiters();
    inner.finish(&live, status).await;
    // Its last events are on the disk before anything else happens on the thread.
    let _ = recorder.await;
    if live.request.thread.is_none() && !live.request.keep_thread {
        settle(inner, || inner.store.delete_thread(&run.thread)).await;
        if let Err(error) = inner.workspaces.delete(&files).await {
            tracing::warn!(thread = %run.thread, %error, "the files of a thread that is gone are still there");
        }
    }
}

/// What could not be done with a thread's files is said where the run is followed, and to the operator.
async fn told(sink: &RunSink, kind: &str, done: Result<(), WorkspaceError>) {
    if let Err(WorkspaceError { message }) = done {
        tracing::warn!(kind, message, "files of a thread");
        let data = serde_json::json!({"type": kind, "message": message});
        sink.log(LogEvent::Custom { data }).await;
    }
}

/// What a run came to, if somebody is to be told of its end.
fn told_of(run: &Run, sink: &RunSink) -> Option<bytes::Bytes> {
    let asked = run.kwargs.get("webhook").is_some_and(|webhook| !webhook.is_null());
    let reached = if asked { sink.reached() } else { None };
    reached.map(|reached| ValuesEncoder::default().encode(&reached.values, None))
}

/// Why a run did not succeed.
enum Failed {
    Cancelled,
    Timeout(Failure),
    Error(Failure),
}

async fn work(inner: &Arc<Inner>, run: &Run, live: &Live, sink: &Arc<RunSink>) -> Result<Ended, Failed> {
    let (store, durability) = (Arc::clone(&inner.store), live.request.durability);
    let steps = Arc::new(StepLog::new(store, durability, inner.tasks.clone()));
    let request = AgentRequest {
        agent: live.request.agent.clone(),
        thread: run.thread.clone(),
        user: run.user.clone(),
        options: live.request.options.clone(),
        recursion_limit: live.request.recursion_limit,
        checkpointer: steps.clone(),
    };
    let agent = inner
        .agents
        .build(&request)
        .await
        .map_err(|error| Failed::Error(Failure { error: error.error, message: error.message }))?;
    let input = input(&agent, &live.request.input)?;
    let mut cx = RunContext::new(run.thread.clone())
        .with_events(Arc::clone(sink) as Arc<dyn hart_kernel::EventSink>)
        .with_cancel(live.cancel.clone());
    cx.run_id = run.id.clone();
    cx.user_id = run.user.clone();
    cx.clock = Arc::clone(&inner.clock);
    cx.from.clone_from(&live.request.checkpoint);
    cx.breakpoints = live.request.breakpoints.clone();
    let report = agent.run(input, &cx).await;
    let flushed = steps.flush(&run.thread).await.map_err(RunError::Checkpoint);
    report.outcome.and_then(|ended| flushed.map(|()| ended)).map_err(Failed::from)
}

fn input(agent: &Agent, input: &Input) -> Result<RunInput, Failed> {
    let parse = |values: &serde_json::Map<_, _>| {
        agent.input(values.clone()).map_err(|error| Failed::from(RunError::Input(error)))
    };
    Ok(match input {
        Input::Continue => RunInput::Continue,
        Input::Values(values) => RunInput::Words(parse(values)?),
        Input::Resume { answer, update } => {
            RunInput::Answer { resume: Resume::from_json(answer.clone()), update: parse(update)? }
        }
    })
}

async fn end_of(inner: &Inner, sink: &RunSink, outcome: Result<Ended, Failed>, live: &Live) -> RunEnd {
    // Something left to do on a thread that stopped midway makes it interrupted.
    let left = sink.reached().is_some_and(|reached| reached.next.is_some());
    let waiting = if left { ThreadStatus::Interrupted } else { ThreadStatus::Idle };
    let (status, error, thread_status) = match outcome {
        Ok(Ended::Finished) => (RunStatus::Success, None, ThreadStatus::Idle),
        Ok(Ended::Paused) => (RunStatus::Success, None, ThreadStatus::Interrupted),
        Err(Failed::Cancelled) => (RunStatus::Interrupted, None, waiting),
        Err(Failed::Timeout(failure)) => (RunStatus::Timeout, Some(failure), ThreadStatus::Error),
        Err(Failed::Error(failure)) => (RunStatus::Error, Some(failure), ThreadStatus::Error),
    };
    if let Some(failure) = &error {
        sink.log(LogEvent::Failed(failure.clone())).await;
    }
    RunEnd {
        status,
        error,
        totals: sink.totals(),
        thread_status,
        at: inner.clock.now(),
        base: live.request.checkpoint.clone(),
        values: None,
    }
}

impl From<RunError> for Failed {
    fn from(error: RunError) -> Self {
        let class = match &error {
            RunError::Cancelled => return Self::Cancelled,
            RunError::RecursionLimit { .. } => "GraphRecursionError",
            RunError::Model(error) => match error.kind {
                ModelErrorKind::Timeout(_) => {
                    return Self::Timeout(Failure {
                        error: "TimeoutError".to_owned(),
                        message: chain(error),
                    });
                }
                _ => "ModelError",
            },
            RunError::Input(_) => "ValueError",
            RunError::Resume(_) => "ResumeError",
            RunError::Checkpoint(_) => "StorageError",
            _ => "InternalError",
        };
        Self::Error(Failure { error: class.to_owned(), message: chain(&error) })
    }
}

/// The whole story in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Tries until the store takes it, as a run must not end in memory alone; or until the server ends, after which the
/// next one finds the run and ends it.
async fn settle<T, F: Future<Output = Result<T, StoreError>>>(inner: &Inner, work: impl Fn() -> F) {
    while let Err(error) = work().await {
        tracing::error!(%error, "how a run ended could not be stored; trying again");
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = inner.closing.cancelled() => return,
        }
    }
}
