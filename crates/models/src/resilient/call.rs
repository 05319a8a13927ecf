//! One call of a resilient model: its attempts, its pauses, the models it falls back to.
//!
//! Invariant: a pass, a place and a reservation are held by exactly one attempt, and go back however it ends.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hart_kernel::{
    ChatChunk, ChatRequest, ChatStream, ModelError, ModelErrorKind, Restart, TimeoutPhase, Waiting,
};
use hart_types::Message;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

use super::Route;
use super::breaker::{Pass, Rest};
use super::limits::{Limits, Reserved};

/// A shorter wait is not worth a word.
const WORTH_TELLING: Duration = Duration::from_secs(1);
/// For a stream to say, once it is cancelled, what had come.
const GRACE: Duration = Duration::from_secs(1);

pub(super) type Item = Result<ChatChunk, ModelError>;

/// One call, from its first request to its end.
pub(super) struct Call {
    routes: Arc<[Route]>,
    limits: Arc<Limits>,
    request: ChatRequest,
    cancel: CancellationToken,
    total: Duration,
    deadline: Pin<Box<Sleep>>,
    phase: Phase,
    /// The route that is being tried, and how many requests it got.
    at: usize,
    made: u32,
    last_pause: Duration,
    /// The last error of the first route.
    failure: Option<ModelError>,
    /// What became of the routes before this one, in words.
    tried: Vec<String>,
    /// What had arrived of the latest answer that broke off.
    partial: Option<Message>,
}

enum Phase {
    Enter,
    /// Before the next attempt.
    Pause(Duration),
    /// For the provider's rates.
    Pace(Reserved),
    /// For a free place.
    Queue(Reserved),
    Ask(Reserved, Vec<OwnedSemaphorePermit>),
    Read(Box<Reading>),
    Over,
}

struct Reading {
    stream: ChatStream,
    cancel: CancellationToken,
    pass: Pass,
    reserved: Reserved,
    some_came: bool,
    _places: Vec<OwnedSemaphorePermit>,
}

/// Why a wait was given up.
enum Stop {
    Cancelled,
    OutOfTime,
}

impl Call {
    /// Boxed: it is moved once per fragment.
    pub(super) fn new(
        routes: Arc<[Route]>,
        limits: Arc<Limits>,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Box<Self> {
        let total = routes.first().map_or(Duration::MAX, |route| route.policy.total);
        Box::new(Self {
            routes,
            limits,
            request,
            cancel: cancel.clone(),
            total,
            deadline: Box::pin(tokio::time::sleep(total)),
            phase: Phase::Enter,
            at: 0,
            made: 0,
            last_pause: Duration::ZERO,
            failure: None,
            tried: Vec::new(),
            partial: None,
        })
    }

    pub(super) async fn next(&mut self) -> Option<Item> {
        loop {
            // Nearly every call of this function is for one more fragment.
            let told = match &mut self.phase {
                Phase::Read(reading) => tokio::select! {
                    biased;
                    item = reading.stream.next() => Ok(item),
                    () = &mut self.deadline => Err(Stop::OutOfTime),
                },
                Phase::Over => return None,
                _ => match self.step().await {
                    Some(item) => return Some(item),
                    None => continue,
                },
            };
            match told {
                Ok(Some(Ok(ChatChunk::Done(message)))) => return Some(Ok(self.answered(message))),
                Ok(Some(Ok(chunk))) => {
                    if let Phase::Read(reading) = &mut self.phase {
                        reading.some_came = true;
                    }
                    return Some(Ok(chunk));
                }
                Ok(Some(Err(error))) => return Some(self.broken(error)),
                Ok(None) => {
                    let why = "the stream ended before the answer was complete";
                    let error = ModelError::new(ModelErrorKind::Interrupted, self.name(), why);
                    return Some(self.broken(error));
                }
                Err(_) => return Some(self.cut_short().await),
            }
        }
    }

    /// One step towards an answer that can be read; what there is to tell, if anything.
    async fn step(&mut self) -> Option<Item> {
        let route = self.routes.get(self.at)?.clone();
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Enter => {
                if let Some(rest) = route.gate.breaker.resting() {
                    return Some(self.resting(&rest));
                }
                let reserved = route.gate.reserve(&self.request, route.model.as_ref());
                let wait = reserved.wait();
                self.phase = Phase::Pace(reserved);
                if wait >= WORTH_TELLING {
                    return Some(self.waiting("has used up its rate".to_owned(), Some(wait)));
                }
            }
            Phase::Pause(wait) => {
                match bounded(&self.cancel, &mut self.deadline, tokio::time::sleep(wait)).await {
                    Ok(()) => self.phase = Phase::Enter,
                    Err(stop) => return Some(self.stopped(&stop)),
                }
            }
            Phase::Pace(reserved) => {
                let wait = reserved.wait();
                if !wait.is_zero()
                    && let Err(stop) =
                        bounded(&self.cancel, &mut self.deadline, tokio::time::sleep(wait)).await
                {
                    return Some(self.stopped(&stop));
                }
                match route.gate.try_places() {
                    Ok(places) => self.phase = Phase::Ask(reserved, places),
                    Err(all) => {
                        self.phase = Phase::Queue(reserved);
                        let plural = if all == 1 { "call" } else { "calls" };
                        return Some(self.waiting(format!("may have {all} {plural} at once"), None));
                    }
                }
            }
            Phase::Queue(reserved) => {
                match bounded(&self.cancel, &mut self.deadline, route.gate.places()).await {
                    Ok(places) => self.phase = Phase::Ask(reserved, places),
                    Err(stop) => return Some(self.stopped(&stop)),
                }
            }
            Phase::Ask(reserved, places) => {
                let pass = match route.gate.breaker.enter() {
                    Ok(pass) => pass,
                    Err(rest) => return Some(self.resting(&rest)),
                };
                self.made += 1;
                let cancel = self.cancel.child_token();
                let asked = route.model.stream(self.request.clone(), &cancel);
                match bounded(&self.cancel, &mut self.deadline, asked).await {
                    Ok(Ok(stream)) => {
                        let some_came = false;
                        let reading = Reading { stream, cancel, pass, reserved, some_came, _places: places };
                        self.phase = Phase::Read(Box::new(reading));
                    }
                    Ok(Err(error)) => {
                        judge(pass, &error);
                        reserved.failed(false);
                        drop(places);
                        return Some(self.failed(error));
                    }
                    Err(stop) => return Some(self.stopped(&stop)),
                }
            }
            Phase::Read(_) | Phase::Over => {}
        }
        None
    }

    fn answered(&mut self, message: Box<Message>) -> ChatChunk {
        if let Phase::Read(reading) = std::mem::replace(&mut self.phase, Phase::Over) {
            reading.pass.works();
            reading.reserved.answered(&message);
        }
        ChatChunk::Done(message)
    }

    /// The stream that was being read ended with `error`.
    fn broken(&mut self, error: ModelError) -> Item {
        if let Phase::Read(reading) = std::mem::replace(&mut self.phase, Phase::Over) {
            judge(reading.pass, &error);
            reading.reserved.failed(reading.some_came);
        }
        self.failed(error)
    }

    /// Time is up in the middle of an answer; whoever is writing it says what had come.
    async fn cut_short(&mut self) -> Item {
        if let Phase::Read(mut reading) = std::mem::replace(&mut self.phase, Phase::Over) {
            reading.cancel.cancel();
            let last = tokio::time::timeout(GRACE, reading.stream.next()).await;
            if let Ok(Some(Err(mut error))) = last {
                self.keep(error.take_partial());
            }
            reading.reserved.failed(reading.some_came);
        }
        self.stopped(&Stop::OutOfTime)
    }

    fn stopped(&mut self, stop: &Stop) -> Item {
        self.phase = Phase::Over;
        match stop {
            Stop::Cancelled => Err(ModelError::cancelled()),
            Stop::OutOfTime => {
                let why = format!("no answer within `total_timeout` ({} s)", self.total.as_secs_f64());
                let kind = ModelErrorKind::Timeout(TimeoutPhase::Total);
                let error = ModelError::new(kind, self.name(), why);
                // What went wrong before time ran out is the better half of the story.
                let before = self.failure.take().map(|before| format!("before that: {before}"));
                self.tried.extend(before);
                Err(self.finished(error))
            }
        }
    }

    fn resting(&mut self, rest: &Rest) -> Item {
        let again = match rest.again_in {
            Some(wait) => format!("it is asked again in {:.0} s", wait.as_secs_f64().ceil()),
            None => "it is being tried at this moment".to_owned(),
        };
        let why = format!("{} failures in a row, at last {}; {again}", rest.failures, rest.last);
        let error = ModelError::new(ModelErrorKind::Resting, self.name(), why);
        self.failed(error.retry_after(rest.again_in))
    }

    /// Decides what comes after `error`: the same model again, another one, or the end.
    fn failed(&mut self, mut error: ModelError) -> Item {
        let routes = Arc::clone(&self.routes);
        let Some(route) = routes.get(self.at).filter(|_| error.kind != ModelErrorKind::Cancelled) else {
            return Err(error);
        };
        self.keep(error.take_partial());
        let left = self.deadline.deadline().saturating_duration_since(Instant::now());
        let pause = route.policy.pause(&error, self.made, &mut self.last_pause, &self.limits.dice);
        if let Some(wait) = pause.filter(|wait| *wait < left) {
            let restart = restart(&error, route, route, self.made + 1, wait);
            // Whoever listens is told by the stream itself.
            tracing::debug!(model = route.name(), kind = error.kind.code(), ?wait, "asking again");
            self.remember(error, false);
            self.phase = Phase::Pause(wait);
            return Ok(restart);
        }
        let others = routes.iter().enumerate().skip(self.at + 1);
        if let Some((at, other)) = others.into_iter().find(|(_, other)| other.replaces(route, &error)) {
            let restart = restart(&error, route, other, 1, Duration::ZERO);
            tracing::warn!(
                model = route.name(),
                kind = error.kind.code(),
                other = other.name(),
                "falling back"
            );
            self.remember(error, true);
            (self.at, self.made, self.last_pause) = (at, 0, Duration::ZERO);
            self.phase = Phase::Enter;
            return Ok(restart);
        }
        self.remember(error, true);
        let error = self.failure.take();
        Err(self.finished(error.unwrap_or_else(ModelError::cancelled)))
    }

    /// Keeps the first model's error whole and the others' in words. `last`: this model is not asked again.
    fn remember(&mut self, error: ModelError, last: bool) {
        let attempts = if self.made > 1 { format!("{} attempts", self.made) } else { String::new() };
        if self.at > 0 {
            if last {
                let attempts = if attempts.is_empty() { attempts } else { format!(" ({attempts})") };
                let why =
                    if error.message.is_empty() { String::new() } else { format!(": {}", error.message) };
                self.tried.push(format!("then `{}` {}{why}{attempts}", error.model, error.kind.what()));
            }
            return;
        }
        let mut notes: Vec<String> = Vec::new();
        if last {
            notes.extend(Some(attempts).filter(|attempts| !attempts.is_empty()));
            let asked = error.retry_after.filter(|_| error.kind != ModelErrorKind::Resting);
            notes.extend(asked.map(|wait| format!("it asks to wait {:.0} s", wait.as_secs_f64().ceil())));
        }
        let rests = error.kind == ModelErrorKind::Resting;
        // That it rests now is less telling than what it failed with a moment ago.
        let error = match self.failure.take() {
            Some(before) if rests => before.note("it is given a rest"),
            _ => error,
        };
        self.failure = Some(notes.iter().fold(error, |error, note| error.note(note)));
    }

    fn keep(&mut self, partial: Option<Message>) {
        self.partial = partial.filter(|partial| !partial.content.is_empty()).or(self.partial.take());
    }

    fn finished(&mut self, error: ModelError) -> ModelError {
        let error = self.tried.drain(..).fold(error, |error, tried| error.note(&tried));
        error.partial(self.partial.take())
    }

    fn waiting(&self, reason: String, wait: Option<Duration>) -> Item {
        Ok(ChatChunk::Waiting(Box::new(Waiting { model: self.name().to_owned(), reason, wait })))
    }

    fn name(&self) -> &str {
        self.routes.get(self.at).map_or("", |route| route.name())
    }
}

fn restart(error: &ModelError, failed: &Route, next: &Route, attempt: u32, wait: Duration) -> ChatChunk {
    ChatChunk::Restart(Box::new(Restart {
        failed: failed.name().to_owned(),
        kind: error.kind,
        reason: error.to_string(),
        model: next.name().to_owned(),
        attempt,
        max_attempts: next.policy.attempts_for(error),
        wait,
    }))
}

/// Tells the breaker. A model that refuses a request is one that works.
fn judge(pass: Pass, error: &ModelError) {
    if error.kind.is_transient() {
        pass.fails(error);
    } else if error.kind != ModelErrorKind::Cancelled {
        pass.works();
    }
}

/// Waits for `work`, but not beyond cancellation or the end of the call's time.
async fn bounded<T>(
    cancel: &CancellationToken,
    deadline: &mut Pin<Box<Sleep>>,
    work: impl Future<Output = T>,
) -> Result<T, Stop> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Stop::Cancelled),
        done = work => Ok(done),
        () = deadline => Err(Stop::OutOfTime),
    }
}
