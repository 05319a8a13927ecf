use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::StreamExt as _;
use hart_kernel::{ChatChunk, Restart};
use hart_types::Message;
use tokio::time::Instant;

use serde_json::{Value, json};

use super::call::Item;
use super::*;
use crate::config::ModelEntry;
use crate::tokens::{Family, TokenCounter};

/// A model in memory: each call takes one script, which is what its stream yields.
struct Fake {
    profile: ModelProfile,
    scripts: Mutex<VecDeque<Vec<Item>>>,
    asked: Mutex<Vec<Instant>>,
    counter: TokenCounter,
}

impl Fake {
    fn new(name: &str, scripts: impl IntoIterator<Item = Vec<Item>>) -> Arc<Self> {
        let profile =
            ModelProfile { name: name.to_owned(), context_window: Some(1000), ..ModelProfile::default() };
        let scripts = Mutex::new(scripts.into_iter().collect());
        let counter = TokenCounter::new(Family::Other).estimating();
        Arc::new(Self { profile, scripts, asked: Mutex::default(), counter })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl ChatModel for Fake {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn count_request(&self, request: &ChatRequest) -> u64 {
        self.counter.count_request(request)
    }

    async fn stream(&self, _: ChatRequest, cancel: &CancellationToken) -> Result<ChatStream, ModelError> {
        self.asked.lock().unwrap().push(Instant::now());
        let mut script = self.scripts.lock().unwrap().pop_front().expect("a script");
        // What fails at once fails before there is a stream.
        if script.len() == 1 && script[0].is_err() {
            script.remove(0)?;
        }
        let cancel = cancel.clone();
        // What the script does not end hangs until it is cancelled, and then says what had come.
        let hangs = stream::once(async move {
            cancel.cancelled().await;
            Err(ModelError::cancelled().partial(Some(Message::ai("so far"))))
        });
        Ok(Box::pin(stream::iter(script).chain(hangs)))
    }
}

fn config(more: Value) -> ModelConfig {
    let mut entry = json!({"use": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:9/v1"});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let entry: ModelEntry = serde_json::from_value(entry).unwrap();
    ModelConfig::resolve(entry, &|_| None).unwrap()
}

fn resilient(model: &Arc<Fake>, more: Value, limits: &Arc<Limits>) -> Resilient {
    Resilient::new(Route::new(model.clone(), &config(more), limits), [], limits)
}

fn fail(kind: ModelErrorKind) -> Vec<Item> {
    vec![Err(ModelError::new(kind, "m", "boom"))]
}

fn text(text: &str) -> Item {
    Ok(ChatChunk::Text(text.to_owned()))
}

fn done(text: &str) -> Item {
    Ok(ChatChunk::Done(Box::new(Message::ai(text))))
}

fn request() -> ChatRequest {
    ChatRequest {
        caller: "lead".into(),
        system: None,
        messages: [Message::human("four score and seven years")].into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        settings: hart_kernel::ModelSettings::default(),
    }
}

/// What came, in words, and how it ended.
async fn ask(model: &Resilient) -> (Vec<String>, Result<Message, ModelError>) {
    ask_until(model, &CancellationToken::new()).await
}

async fn ask_until(
    model: &Resilient,
    cancel: &CancellationToken,
) -> (Vec<String>, Result<Message, ModelError>) {
    ask_for(model, request(), cancel).await
}

async fn ask_for(
    model: &Resilient,
    request: ChatRequest,
    cancel: &CancellationToken,
) -> (Vec<String>, Result<Message, ModelError>) {
    let mut told = Vec::new();
    let mut stream = match model.stream(request, cancel).await {
        Ok(stream) => stream,
        Err(error) => return (told, Err(error)),
    };
    let mut end = None;
    while let Some(item) = stream.next().await {
        assert!(end.is_none(), "nothing comes after the end");
        match item {
            Ok(ChatChunk::Text(text) | ChatChunk::Reasoning(text)) => told.push(text),
            Ok(ChatChunk::ToolCall(_)) => told.push("call".to_owned()),
            Ok(ChatChunk::Restart(restart)) => {
                told.push(format!(
                    "{} → {} {}/{}",
                    restart.failed, restart.model, restart.attempt, restart.max_attempts
                ));
            }
            Ok(ChatChunk::Waiting(waiting)) => told.push(waiting.to_string()),
            Ok(ChatChunk::Done(message)) => end = Some(Ok(*message)),
            Err(error) => end = Some(Err(error)),
        }
    }
    (told, end.expect("every call ends"))
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_may_pass_is_repeated_and_told() {
    let limits = Limits::new(LimitSettings::default());
    let scripts =
        [fail(ModelErrorKind::Overloaded), vec![text("hal"), fail(ModelErrorKind::Interrupted).remove(0)]];
    let model = Fake::new("m", scripts.into_iter().chain([vec![text("half"), done("half")]]));
    let (told, answer) = ask(&resilient(&model, json!({}), &limits)).await;
    assert_eq!(told, ["m → m 2/3", "hal", "m → m 3/3", "half"]);
    assert_eq!(answer.unwrap().text(), "half");
    let asked = model.asked.lock().unwrap().clone();
    let pauses: Vec<Duration> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let allowed = Duration::from_secs(1)..=Duration::from_millis(8002);
    assert!(pauses.iter().all(|pause| allowed.contains(pause)), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_and_the_last_error_says_so() {
    let limits = Limits::new(LimitSettings::default());
    let broken = |text: &str| {
        let error = ModelError::new(ModelErrorKind::Interrupted, "m", "cut");
        vec![Err(error.partial(Some(Message::ai(text))))]
    };
    let model = Fake::new("m", [broken("first"), broken("second"), broken("")]);
    let (told, answer) = ask(&resilient(&model, json!({}), &limits)).await;
    let mut error = answer.unwrap_err();
    assert_eq!((told.len(), model.asked()), (2, 3));
    assert_eq!(error.message, "cut; 3 attempts");
    assert_eq!(error.take_partial().unwrap().text(), "second", "the latest that said anything");
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_not_repeated() {
    let overflow = ModelErrorKind::ContextOverflow { limit: None, used: None };
    for kind in [ModelErrorKind::Auth, ModelErrorKind::BadRequest, ModelErrorKind::ContentFilter, overflow] {
        let limits = Limits::new(LimitSettings::default());
        let model = Fake::new("m", [fail(kind)]);
        let (told, answer) = ask(&resilient(&model, json!({}), &limits)).await;
        assert_eq!((told.len(), answer.unwrap_err().kind), (0, kind));
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_a_provider_asks_for_is_kept_up_to_a_limit() {
    let limits = Limits::new(LimitSettings::default());
    let asks = |seconds| {
        let error = ModelError::new(ModelErrorKind::RateLimit, "m", "slow down");
        vec![Err(error.retry_after(Some(Duration::from_secs(seconds))))]
    };
    let model = Fake::new("m", [asks(40), vec![done("ok")]]);
    let before = Instant::now();
    assert!(ask(&resilient(&model, json!({}), &limits)).await.1.is_ok());
    assert!(before.elapsed() >= Duration::from_secs(40));

    let model = Fake::new("m", [asks(300)]);
    let error = ask(&resilient(&model, json!({}), &limits)).await.1.unwrap_err();
    assert_eq!((model.asked(), error.message.as_str()), (1, "slow down; it asks to wait 300 s"));
}

#[tokio::test(start_paused = true)]
async fn another_model_takes_over_and_the_first_ones_error_is_the_last_word() {
    let limits = Limits::new(LimitSettings::default());
    let build = |scripts: [Vec<Item>; 2], larger: bool| {
        let [first, second] = scripts;
        let main = Fake::new("main", [first]);
        let mut other = Fake::new("other", [second]);
        if larger {
            Arc::get_mut(&mut other).unwrap().profile.context_window = Some(2000);
        }
        let once = config(json!({"max_retries": 0, "model": format!("{larger}")}));
        let route = |model: &Arc<Fake>| Route::new(model.clone(), &once, &limits);
        (Resilient::new(route(&main), [route(&other)], &limits), other)
    };
    for kind in
        [ModelErrorKind::Network, ModelErrorKind::Auth, ModelErrorKind::BadRequest, ModelErrorKind::Resting]
    {
        let (model, _) = build([fail(kind), vec![text("b"), done("b")]], false);
        let (told, answer) = ask(&model).await;
        assert_eq!(told, ["main → other 1/1", "b"], "{kind:?}");
        assert_eq!(answer.unwrap().text(), "b");
    }
    let overflow = ModelErrorKind::ContextOverflow { limit: Some(1000), used: None };
    for (kind, larger, asked) in
        [(overflow, false, 0), (overflow, true, 1), (ModelErrorKind::ContentFilter, true, 0)]
    {
        let (model, other) = build([fail(kind), vec![done("b")]], larger);
        let (_, answer) = ask(&model).await;
        assert_eq!((other.asked(), answer.is_ok()), (asked, asked == 1), "{kind:?} {larger}");
    }
    let (model, _) = build([fail(ModelErrorKind::Auth), fail(ModelErrorKind::Network)], false);
    let error = ask(&model).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(error.message, "boom; then `m` cannot be reached: boom");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_keeps_failing_rests_for_every_model_of_it() {
    let limits = Limits::new(LimitSettings { failure_threshold: 4, ..LimitSettings::default() });
    let broken = || vec![text("x"), Err(ModelError::new(ModelErrorKind::Network, "m", "boom"))];
    let failures = [fail(ModelErrorKind::Network), broken(), broken(), fail(ModelErrorKind::Network)];
    let model = Fake::new("m", failures);
    let first = resilient(&model, json!({}), &limits);
    let second = resilient(&model, json!({}), &limits);
    assert_eq!(ask(&first).await.1.unwrap_err().kind, ModelErrorKind::Network);
    let error = ask(&second).await.1.unwrap_err();
    assert_eq!(
        (error.kind, model.asked()),
        (ModelErrorKind::Network, 4),
        "the fourth failure ends the attempts"
    );
    assert_eq!(error.message, "boom; it is given a rest");

    let error = ask(&first).await.1.unwrap_err();
    assert_eq!((error.kind, model.asked()), (ModelErrorKind::Resting, 4));
    assert!(error.message.contains("4 failures in a row, at last it cannot be reached"), "{error}");
    assert!(error.retry_after.is_some_and(|wait| wait <= Duration::from_secs(60)));
    // Another model at the same address is not affected.
    let other = Fake::new("o", [vec![done("fine")]]);
    assert!(ask(&resilient(&other, json!({"model": "o"}), &limits)).await.1.is_ok());

    tokio::time::advance(Duration::from_secs(61)).await;
    model.scripts.lock().unwrap().extend([vec![done("back")], vec![done("again")]]);
    assert_eq!(ask(&first).await.1.unwrap().text(), "back");
    assert_eq!(ask(&second).await.1.unwrap().text(), "again");
}

#[tokio::test(start_paused = true)]
async fn a_call_has_a_total_time_and_keeps_what_had_come() {
    let limits = Limits::new(LimitSettings::default());
    let model = Fake::new("m", [vec![text("so "), text("far")]]);
    let (told, answer) = ask(&resilient(&model, json!({"total_timeout": 30}), &limits)).await;
    let mut error = answer.unwrap_err();
    assert_eq!(told, ["so ", "far"]);
    assert_eq!(error.kind, ModelErrorKind::Timeout(TimeoutPhase::Total));
    assert_eq!(error.take_partial().unwrap().text(), "so far");

    // A pause that would outlast it is not begun.
    let late =
        ModelError::new(ModelErrorKind::RateLimit, "m", "x").retry_after(Some(Duration::from_secs(50)));
    let model = Fake::new("m", [vec![Err(late)]]);
    let error = ask(&resilient(&model, json!({"total_timeout": 30}), &limits)).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::RateLimit);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_pause_a_queue_and_a_stream() {
    let limits = Limits::new(LimitSettings { max_concurrent_calls: 1, ..LimitSettings::default() });
    let hanging = || vec![text("x")];
    let model = Fake::new("m", [fail(ModelErrorKind::Network), hanging(), hanging()]);
    let resilient = resilient(&model, json!({}), &limits);
    // In the pause after the first failure.
    let cancel = CancellationToken::new();
    let mut stream = resilient.stream(request(), &cancel).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(ChatChunk::Restart(_)))));
    cancel.cancel();
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind, ModelErrorKind::Cancelled);
    assert!(stream.next().await.is_none());

    // In the stream, with another call waiting for its place.
    let mut stream = resilient.stream(request(), &CancellationToken::new()).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(ChatChunk::Text(_)))));
    let cancel = CancellationToken::new();
    let mut queued = resilient.stream(request(), &cancel).await.unwrap();
    assert!(matches!(queued.next().await, Some(Ok(ChatChunk::Waiting(_)))));
    cancel.cancel();
    assert_eq!(queued.next().await.unwrap().unwrap_err().kind, ModelErrorKind::Cancelled);
    assert_eq!(model.asked(), 2);
    // A stream that is dropped gives its place back.
    drop(stream);
    let cancel = CancellationToken::new();
    let mut stream = resilient.stream(request(), &cancel).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(ChatChunk::Text(_)))));
    cancel.cancel();
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind, ModelErrorKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn calls_queue_for_places_in_order() {
    let limits = Limits::new(LimitSettings::default());
    let model = Fake::new("m", std::iter::repeat_with(|| vec![text("a"), done("a")]).take(3));
    let resilient = resilient(&model, json!({"max_concurrent_calls": 1}), &limits);
    let cancel = CancellationToken::new();
    let mut first = resilient.stream(request(), &cancel).await.unwrap();
    assert!(matches!(first.next().await, Some(Ok(ChatChunk::Text(_)))));
    let order = Mutex::new(Vec::new());
    let waits = async |number: u32| {
        let (told, answer) = ask(&resilient).await;
        assert!(answer.is_ok() && told[0] == "`m` may have 1 call at once, waiting", "{told:?}");
        order.lock().unwrap().push(number);
    };
    tokio::join!(waits(1), waits(2), async {
        tokio::task::yield_now().await;
        assert_eq!(model.asked(), 1);
        while first.next().await.is_some() {}
    });
    assert_eq!(*order.lock().unwrap(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn rates_make_calls_wait_and_learn_from_usage() {
    let limits = Limits::new(LimitSettings::default());
    let answer = || {
        let mut message = Message::ai("ok");
        message.body = hart_types::Body::Ai(hart_types::Ai {
            usage: Some(hart_types::UsageMetadata::new(10, 10)),
            ..hart_types::Ai::default()
        });
        vec![Ok(ChatChunk::Done(Box::new(message)))]
    };
    let model = Fake::new("m", std::iter::repeat_with(answer).take(5));
    let slow = resilient(&model, json!({"requests_per_minute": 2}), &limits);
    let before = Instant::now();
    assert!(ask(&slow).await.0.is_empty() && ask(&slow).await.0.is_empty());
    let (told, _) = ask(&slow).await;
    assert_eq!(told, ["`m` has used up its rate, waiting 30 s"]);
    assert!(before.elapsed() >= Duration::from_secs(30));

    // The longest answer is set aside, and what was not used goes back.
    let model = Fake::new("m", std::iter::repeat_with(answer).take(5));
    let metered =
        resilient(&model, json!({"model": "x", "tokens_per_minute": 1000, "max_tokens": 900}), &limits);
    for _ in 0..5 {
        assert!(ask(&metered).await.0.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_costs_tokens_only_if_some_came() {
    let limits = Limits::new(LimitSettings::default());
    let more =
        |model: &str| json!({"model": model, "tokens_per_minute": 600, "max_tokens": 590, "max_retries": 0});
    for (model, script, waits) in [
        ("refused", fail(ModelErrorKind::Overloaded), false),
        ("broken", vec![text("x"), fail(ModelErrorKind::Interrupted).remove(0)], true),
    ] {
        let fake = Fake::new("m", [script, vec![done("ok")]]);
        let metered = resilient(&fake, more(model), &limits);
        assert!(ask(&metered).await.1.is_err());
        let (told, answer) = ask(&metered).await;
        assert!(answer.is_ok());
        assert_eq!(told.iter().any(|told| told.contains("has used up its rate")), waits, "{model}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_request_takes_is_counted_as_the_model_counts() {
    let limits = Limits::new(LimitSettings::default());
    let image = json!({"type": "image", "mime_type": "image/png", "base64": "iVBORw0KGgo="});
    for (name, content, waits) in [
        // Many bytes that are few tokens, and few bytes that are many.
        ("spaces", hart_types::Content::from(" ".repeat(1600)), false),
        ("an image", hart_types::Content::Blocks(vec![hart_types::Block::object(image)]), true),
    ] {
        let fake = Fake::new("m", [vec![done("ok")], vec![done("ok")]]);
        let more = json!({"model": name, "tokens_per_minute": 300, "max_tokens": 10});
        let metered = resilient(&fake, more, &limits);
        let mut request = request();
        request.messages = [Arc::new(Message::human(content))].into_iter().collect();
        let cancel = CancellationToken::new();
        let (mut told, answer) = ask_for(&metered, request.clone(), &cancel).await;
        assert!(answer.is_ok());
        told.extend(ask_for(&metered, request, &cancel).await.0);
        assert_eq!(told.iter().any(|told| told.contains("has used up its rate")), waits, "{name}: {told:?}");
    }
}

/// Hangs whatever happens.
struct Deaf(ModelProfile);

#[async_trait]
impl ChatModel for Deaf {
    fn profile(&self) -> &ModelProfile {
        &self.0
    }

    async fn stream(&self, _: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        Ok(Box::pin(stream::pending()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_listen_is_left_as_well() {
    let limits = Limits::new(LimitSettings::default());
    let deaf = Arc::new(Deaf(Fake::new("m", []).profile.clone()));
    let route = Route::new(deaf, &config(json!({"total_timeout": 5})), &limits);
    let error = ask(&Resilient::new(route, [], &limits)).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout(TimeoutPhase::Total));
}

#[tokio::test(start_paused = true)]
async fn sentences_for_people() {
    let mut restart = Restart {
        failed: "a".into(),
        kind: ModelErrorKind::Overloaded,
        reason: String::new(),
        model: "a".into(),
        attempt: 2,
        max_attempts: 3,
        wait: Duration::from_millis(1900),
    };
    assert_eq!(restart.to_string(), "`a` is overloaded, trying again in 2 s (attempt 2 of 3)");
    (restart.model, restart.attempt, restart.wait) = ("b".into(), 1, Duration::ZERO);
    assert_eq!(restart.to_string(), "`a` is overloaded, asking `b` instead");
}
