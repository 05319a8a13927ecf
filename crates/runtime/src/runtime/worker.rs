//! Executes the runs of a thread, one after the other.
//!
//! Invariant: the record says how a run ended before its stream does.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::OptionFuture;
use hart_kernel::{
    Agent, Deck, Ended, ModelErrorKind, Preparation, Resume, ResumeError, RunContext, RunError, RunInput,
};
use hart_types::{CancelAction, Durability, RunId, RunStatus, ThreadId};
use serde_json::json;
use tracing::Instrument as _;

use super::nodes::begin;
use super::{Inner, LINGER, LINGERING, Live, Settings, ShownStep, Stage};
use crate::event::LogEvent;
use crate::failure::chain;
use crate::journal::RunJournal;
use crate::port::{Claimed, EventScope, Lease, RunEnd, StoreError};
use crate::recording::Recordable;
use crate::request::{Input, StartRun};
use crate::sink::RunSink;
use crate::tape::Turn;
use crate::values::{Spelling, ValuesEncoder};
use crate::workspaces::{Workspace, WorkspaceError};
use crate::{Entry, Failure, Run};

impl Inner {
    /// Runs what is claimed already, then whatever waits on the thread. Two lanes of one thread do no harm: a claim is
    /// given once.
    pub(super) fn spawn_lane(self: &Arc<Self>, thread: ThreadId, mut claimed: Option<Claimed>) {
        let inner = Arc::clone(self);
        self.tasks.spawn(async move {
            loop {
                let claimed = match claimed.take() {
                    Some(claimed) => Ok(Some(claimed)),
                    None => inner.store.claim(&thread, &inner.node, inner.clock.now()).await,
                };
                let next = match claimed {
                    Ok(Some(claimed)) => {
                        let span =
                            tracing::info_span!("run", id = %claimed.run.id, thread = %claimed.run.thread);
                        match execute(&inner, claimed).instrument(span).await {
                            Left::Thread => continue,
                            // Nobody can wait on a thread that is gone.
                            Left::Nothing => return,
                        }
                    }
                    Ok(None) => inner.until_next(&thread).await,
                    Err(error) => Err(error),
                };
                match next {
                    Ok(Some(wait)) => tokio::time::sleep(wait).await,
                    Ok(None) => return,
                    // The store tells of it.
                    Err(StoreError::Full) => tokio::time::sleep(Duration::from_secs(1)).await,
                    Err(error) => {
                        let error = chain(&error);
                        tracing::error!(%thread, error, "the next run of a thread cannot be claimed");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            }
        });
    }

    /// Tells everybody that it is over; the log stays at hand for a while.
    pub(super) fn finish(&self, run: &RunId, live: &Live, last: Vec<Arc<Entry>>) {
        live.tape.close(last);
        live.stage.send_replace(Stage::Ended);
        let _ = live.ended_at.set(Instant::now());
        let mut lingering = self.lingering.lock().unwrap_or_else(PoisonError::into_inner);
        lingering.push_back(run.clone());
        let mut all = self.lock_live();
        while let Some(oldest) = lingering.front() {
            let ended_at = all.get(oldest).and_then(|live| live.ended_at.get());
            if lingering.len() <= LINGERING && ended_at.is_some_and(|at| at.elapsed() < LINGER) {
                break;
            }
            all.remove(oldest);
            lingering.pop_front();
        }
    }

    /// The run is another process's, now or as soon as there is one: it is followed in the store.
    async fn let_go(&self, run: &RunId, live: &Arc<Live>, lease: &Lease) {
        tracing::warn!(%run, "no longer executed by this process");
        self.step_aside(run, live);
        if self.closing.is_cancelled()
            && let Err(error) = self.store.release(lease).await
        {
            tracing::warn!(%run, %error, "a run could not be let go of; others take it over a little later");
        }
    }

    /// Whoever follows the run reads the store.
    pub(super) fn step_aside(&self, run: &RunId, live: &Arc<Live>) {
        live.lost.cancel();
        live.tape.leave();
        live.stage.send_replace(Stage::Elsewhere);
        let mut all = self.lock_live();
        if all.get(run).is_some_and(|known| Arc::ptr_eq(known, live)) {
            all.remove(run);
        }
    }

    /// A thread that goes with its run takes the recording with it: none is made.
    async fn deck(&self, run: &Run, live: &Live, lease: &Lease, attempt: u32) -> Option<Arc<dyn Deck>> {
        let (store, clock, request) = (&self.store, &self.clock, &live.request);
        if live.request.is_passing() {
            return None;
        }
        // Where that cannot be found out, the recording is a little longer.
        let recorded = if attempt > 1 { store.recorded_bytes(&run.id).await.unwrap_or(0) } else { 0 };
        self.agents.deck(&Recordable { store, lease, run, request, attempt, recorded, clock })
    }

    /// Whoever started it has followed it, and nobody else finds it any more.
    fn forget_passing(&self, run: &Run) {
        self.lock_live().remove(&run.id);
        let mut encoders = self.encoders.lock().unwrap_or_else(PoisonError::into_inner);
        for spelling in [Spelling::State, Spelling::Blocks] {
            encoders.remove(&(run.thread.clone(), spelling));
        }
    }

    /// The run in this process, known since it was admitted or from now on.
    fn claimed(&self, run: &Run, request: Option<StartRun>) -> Arc<Live> {
        if let Some(live) = self.here(&run.id)
            && live.lease.get().is_none()
        {
            return live;
        }
        // Where what was asked cannot be read, the thread must not go with the run.
        let unknown = || StartRun { thread: Some(run.thread.clone()), ..StartRun::default() };
        let live = Arc::new(self.live(run, request.unwrap_or_else(unknown)));
        self.lock_live().insert(run.id.clone(), Arc::clone(&live));
        live
    }
}

/// What is left when a run is over.
pub(super) enum Left {
    Thread,
    /// The thread went with its run.
    Nothing,
}

pub(super) async fn execute(inner: &Arc<Inner>, claimed: Claimed) -> Left {
    let refusal = refusal(&inner.settings, &claimed);
    let Claimed { run, lease, request, attempt, stop, .. } = claimed;
    let live = inner.claimed(&run, request);
    begin(&live, &lease, attempt);
    if let Some(action) = stop {
        live.stop(action);
    }
    let recorder = {
        let (tape, lease, lost) = (Arc::clone(&live.tape), lease.clone(), live.lost.clone());
        inner.tasks.spawn(async move {
            if tape.record(&lease).await.is_err() {
                lost.cancel();
            }
        })
    };
    let sink = Arc::new(RunSink::new(
        run.id.clone(),
        Arc::clone(&live.tape),
        inner.watch(&run, &live.request.agent),
    ));
    let files = Workspace { thread: run.thread.clone(), user: run.user.clone() };
    let working = async {
        if attempt > 1 {
            sink.recall(&insist(inner, || earlier(inner, &run.id, lease.token)).await.unwrap_or_default());
        }
        if let Some(failure) = refusal {
            return Err(Failed::Error(failure));
        }
        sink.log(LogEvent::Started { attempt }).await;
        inner.doorbells.run_began(&run.thread);
        if attempt > 1 {
            sink.log(LogEvent::Custom { data: json!({"type": "run_resumed", "attempt": attempt}) }).await;
        }
        work(inner, &run, &live, (&lease, attempt), &sink, &files).await
    };
    // Whoever has lost a run does not take another step of it, also when it could.
    let outcome = tokio::select! {
        biased;
        () = live.lost.cancelled() => {
            inner.let_go(&run.id, &live, &lease).await;
            return Left::Thread;
        }
        outcome = working => outcome,
    };
    let settled = tokio::select! {
        biased;
        () = live.lost.cancelled() => None,
        settled = settle(inner, &run, &live, &files, &sink, outcome) => settled,
    };
    let Some((last, turn)) = settled else {
        inner.let_go(&run.id, &live, &lease).await;
        return Left::Thread;
    };
    if has_webhook(&run) {
        inner.letters_changed.notify_waiters();
    }
    inner.finish(&run.id, &live, last);
    drop(turn);
    // Its last events are on the disk before anything else happens on the thread.
    let _ = recorder.await;
    if !live.request.is_passing() {
        return Left::Thread;
    }
    // Whoever is behind reads the rest from the store.
    tokio::select! {
        () = live.tape.unread() => {}
        () = tokio::time::sleep(LINGER) => {}
        () = inner.closing.cancelled() => {}
    }
    insist(inner, || inner.store.delete_thread(&run.thread)).await;
    if live.tape.was_read() {
        inner.forget_passing(&run);
    }
    if let Err(error) = inner.workspaces.delete(&files).await {
        tracing::warn!(thread = %run.thread, %error, "the files of a thread that is gone are still there");
    }
    Left::Nothing
}

/// What could not be done with a thread's files is said where the run is followed, and to the operator.
async fn told(sink: &RunSink, kind: &str, done: Result<(), WorkspaceError>) {
    if let Err(error) = done {
        tracing::warn!(kind, %error, "files of a thread");
        let data = json!({"type": kind, "message": error.to_string()});
        sink.log(LogEvent::Custom { data }).await;
    }
}

fn has_webhook(run: &Run) -> bool {
    run.kwargs.get("webhook").is_some_and(|webhook| !webhook.is_null())
}

/// What a run came to, if somebody is to be told of its end.
fn told_of(run: &Run, sink: &RunSink) -> Option<bytes::Bytes> {
    let reached = if has_webhook(run) { sink.reached() } else { None };
    reached.map(|reached| ValuesEncoder::default().encode(&reached.values, None))
}

/// Writes how the run ended; its last events, or none if that was not ours to write. Nobody else writes events until they
/// are told.
async fn settle<'a>(
    inner: &Inner,
    run: &Run,
    live: &'a Live,
    files: &Workspace,
    sink: &RunSink,
    outcome: Result<Ended, Failed>,
) -> Option<(Vec<Arc<Entry>>, Turn<'a>)> {
    let rolled_back = matches!(outcome, Err(Failed::Cancelled))
        && *live.action.lock().unwrap_or_else(PoisonError::into_inner) == CancelAction::Rollback;
    let lease = live.lease.get();
    // Of a thread that goes with its run nobody needs the files as they were.
    let keeps_files = !live.request.is_passing();
    if !rolled_back && keeps_files {
        told(sink, "workspace_not_kept", inner.workspaces.after_run(files, &run.id).await).await;
    }
    let end = end_of(inner, sink, outcome, live);
    sink.ended(end.status, end.error.as_ref());
    // Whoever hears why it failed finds that in its record.
    let broken_off = end.error.as_ref().map(|why| sink.broken_off(why)).unwrap_or_default();
    let failed = end.error.clone().map(LogEvent::Failed);
    let last_words =
        broken_off.into_iter().chain(failed).chain([LogEvent::Ended { status: end.status }]).collect();
    if rolled_back {
        if keeps_files {
            told(sink, "workspace_not_restored", inner.workspaces.undo_run(files, &run.id).await).await;
        }
        let turn = live.tape.turn().await;
        let undone = insist(inner, || inner.store.undo_run(&run.id, inner.clock.now(), lease)).await?;
        return if undone { Some((live.tape.last(last_words).await?, turn)) } else { None };
    }
    // The end of the log is one write with the end of the run.
    let turn = live.tape.turn().await;
    let last = live.tape.last(last_words).await?;
    let events = turn.events().into_iter().chain(live.tape.stored(&last)).collect();
    let end = RunEnd { values: told_of(run, sink), events, ..end };
    let stored = insist(inner, || inner.store.end_run(&run.id, end.clone(), lease)).await?;
    stored.map(|_| (last, turn))
}

/// Why a run did not succeed.
enum Failed {
    Cancelled,
    Timeout(Failure),
    Error(Failure),
}

async fn work(
    inner: &Arc<Inner>,
    run: &Run,
    live: &Live,
    (lease, attempt): (&Lease, u32),
    sink: &Arc<RunSink>,
    files: &Workspace,
) -> Result<Ended, Failed> {
    let (making, steps) = inner.agent_of(run, live);
    let named = match &live.request.checkpoint {
        // Others may have paused there anew while this one waited.
        Some(name) => inner.state_at(&run.thread, name).await.map_err(unreadable)?,
        None => None,
    };
    if attempt == 1 && run.base.is_none() {
        // Whoever claimed it saw that nothing was before it.
        steps.found_empty();
    } else if let Some(step) = stands_behind(inner, run, named.as_ref(), attempt).await {
        sink.stands_behind(step);
    }
    let journal = RunJournal {
        store: Arc::clone(&inner.store),
        thread: run.thread.clone(),
        lease: lease.clone(),
        lost: live.lost.clone(),
        steps: Arc::clone(&steps),
        tape: Arc::clone(&live.tape),
    };
    let agent = making
        .await
        .map_err(|error| Failed::Error(Failure { error: error.error, message: error.message }))?;
    let input = input(&agent, &live.request.input)?;
    let mut cx = RunContext::new(run.thread.clone())
        .with_events(Arc::clone(sink) as Arc<dyn hart_kernel::EventSink>)
        .with_cancel(live.cancel.clone());
    cx.run_id = run.id.clone();
    cx.user_id = run.user.clone();
    cx.attempt = attempt;
    if live.may_be_resumed() {
        cx.journal = Some(Arc::new(journal));
    }
    cx.deck = inner.deck(run, live, lease, attempt).await;
    let played = cx.deck.as_ref().and_then(|deck| deck.clock());
    cx.clock = played.unwrap_or_else(|| Arc::clone(&inner.clock));
    cx.from = named.map(|state| state.at).or_else(|| live.request.checkpoint.clone());
    cx.input_ids.clone_from(&live.request.input_ids);
    cx.breakpoints = live.request.breakpoints.clone();
    cx.late_answers = live.request.late_answers;
    cx.recursion_limit = live.request.recursion_limit;
    // Of a thread that goes with its run nobody needs the files as they were.
    cx.preparation = (!live.request.is_passing()).then(|| keep_files(inner, run, files, live, sink));
    let kept = OptionFuture::from(cx.preparation.clone());
    let (report, _) = tokio::join!(agent.run(input, &cx), kept);
    if let Some(deck) = &cx.deck {
        deck.reached(None).await;
    }
    let flushed = steps.flush(&run.thread).await.map_err(RunError::Checkpoint);
    report.outcome.and_then(|ended| flushed.map(|()| ended)).map_err(Failed::from)
}

/// A run that cannot be begun where it was told to is not begun elsewhere.
fn unreadable(error: StoreError) -> Failed {
    Failed::Error(Failure { error: "StorageError".to_owned(), message: chain(&error) })
}

/// The step that the run begins from. Where that cannot be read, its steps are told as those of a new thread.
async fn stands_behind(
    inner: &Inner,
    run: &Run,
    named: Option<&ShownStep>,
    attempt: u32,
) -> Option<ShownStep> {
    let at = match (attempt, named) {
        (1, Some(named)) => return Some(named.clone()),
        (1, None) => run.base.clone(),
        _ => inner.store.thread(&run.thread).await.ok().flatten().and_then(|thread| thread.head),
    };
    inner.shown_step(&run.thread, &at?).await.ok()?
}

/// The files as they are before a run, which its tools may change: they wait until there is room for a copy.
fn keep_files(
    inner: &Arc<Inner>,
    run: &Run,
    files: &Workspace,
    live: &Live,
    sink: &Arc<RunSink>,
) -> Preparation {
    let (inner, run, files, sink) = (Arc::clone(inner), run.id.clone(), files.clone(), Arc::clone(sink));
    let (tape, cancel) = (Arc::clone(&live.tape), live.cancel.clone());
    let keep = async move {
        let mut is_told = false;
        let kept = loop {
            match inner.workspaces.before_run(&files, &run).await {
                Err(WorkspaceError::Full) if !cancel.is_cancelled() => tape.wait_for_room(&mut is_told).await,
                kept => break kept,
            }
        };
        told(&sink, "workspace_not_kept", kept).await;
    };
    keep.boxed().shared()
}

fn input(agent: &Agent, input: &Input) -> Result<RunInput, Failed> {
    let parse = |values: &serde_json::Map<_, _>| {
        agent.input(values.clone()).map_err(|error| Failed::from(RunError::Input(error)))
    };
    Ok(match input {
        Input::Continue => RunInput::Continue,
        Input::Values(values) => RunInput::Words(parse(values)?),
        Input::Write(values) => RunInput::Write(parse(values)?),
        Input::End(values) => RunInput::End(parse(values)?),
        Input::Resume { answer, update } => {
            RunInput::Answer { resume: Resume::from_json(answer.clone()), update: parse(update)? }
        }
    })
}

fn end_of(inner: &Inner, sink: &RunSink, outcome: Result<Ended, Failed>, live: &Live) -> RunEnd {
    let (status, error) = match outcome {
        Ok(Ended::Finished | Ended::Paused) => (RunStatus::Success, None),
        Err(Failed::Cancelled) => (RunStatus::Interrupted, None),
        Err(Failed::Timeout(failure)) => (RunStatus::Timeout, Some(failure)),
        Err(Failed::Error(failure)) => (RunStatus::Error, Some(failure)),
    };
    RunEnd {
        status,
        error,
        totals: sink.totals(),
        at: inner.clock.now(),
        base: live.request.checkpoint.clone(),
        values: None,
        events: Vec::new(),
    }
}

impl From<RunError> for Failed {
    fn from(error: RunError) -> Self {
        let class = match &error {
            RunError::Cancelled => return Self::Cancelled,
            RunError::RecursionLimit { .. } => "GraphRecursionError",
            RunError::EmptyInput => "EmptyInputError",
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
            RunError::Resume(ResumeError::Several { .. }) => "ResumeError",
            // As LangGraph's server names it.
            RunError::Resume(_) => "UnknownInterruptError",
            RunError::Checkpoint(_) => "StorageError",
            _ => "InternalError",
        };
        Self::Error(Failure { error: class.to_owned(), message: chain(&error) })
    }
}

/// Tries until the store takes it, as a run must not end in memory alone; or until the server ends, after which
/// another process finds the run.
async fn insist<T, F: Future<Output = Result<T, StoreError>>>(
    inner: &Inner,
    work: impl Fn() -> F,
) -> Option<T> {
    loop {
        match work().await {
            Ok(done) => return Some(done),
            // The store tells of it.
            Err(StoreError::Full) => {}
            Err(error) => {
                let error = chain(&error);
                tracing::error!(error, "how a run ended could not be stored; trying again");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = inner.closing.cancelled() => return None,
        }
    }
}

/// What earlier attempts have told.
async fn earlier(inner: &Inner, run: &RunId, before: u64) -> Result<Vec<Entry>, StoreError> {
    let (scope, mut all, mut after) = (EventScope::Run(run.clone()), Vec::new(), 0);
    // What the run has done is in its steps: it goes on also where what it told of that cannot be read any more.
    let unreadable = |error: StoreError| {
        let error = chain(&error);
        tracing::error!(%run, error, "a part of what a run has told is lost");
    };
    loop {
        let page = match inner.store.events(&scope, after, 1024).await {
            Err(error @ StoreError::Damaged(_)) => {
                unreadable(error);
                return Ok(all);
            }
            page => page?,
        };
        let Some(last) = page.last().map(|event| event.id.seq).filter(|_| after < before) else {
            return Ok(all);
        };
        after = last;
        for event in page.into_iter().filter(|event| event.id.seq < before) {
            match Entry::stored(event) {
                Ok(entry) => all.push(entry),
                Err(error) => unreadable(error),
            }
        }
    }
}

/// Why a run is not executed (again).
fn refusal(settings: &Settings, claimed: &Claimed) -> Option<Failure> {
    let Claimed { request, attempt, tries, .. } = claimed;
    let (error, message) = match request {
        None => (
            "Orphaned",
            "the server stopped before the run did, and what was asked is not known any more; \
                              send a message to go on"
                .to_owned(),
        ),
        Some(_) if *attempt == 1 => return None,
        Some(_) if !settings.resume => (
            "Orphaned",
            "the server stopped before the run did; what was done until \
                                         then is kept, send a message to go on"
                .to_owned(),
        ),
        Some(request) if request.durability == Durability::Exit => (
            "Orphaned",
            "the server stopped before the run did, and with `durability: exit` nothing of it was \
              kept; start it again, or choose `sync`"
                .to_owned(),
        ),
        Some(_) if *tries > settings.max_tries => {
            let tries = tries - 1;
            (
                "GivenUp",
                format!(
                    "{tries} attempts at the same step ended with their server, so there is no further \
              one; what was done until then is kept. Look into the server's log for what happened, then send a \
              message to go on"
                ),
            )
        }
        Some(_) => return None,
    };
    Some(Failure { error: error.to_owned(), message })
}
