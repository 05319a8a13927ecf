//! Everything that can go wrong between a model and us.

use std::time::Duration;

use futures_util::StreamExt as _;
use hart_kernel::{ChatChunk, ModelErrorKind};
use hart_models::Dialect;
use hart_testkit::{ModelServer, Turn};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{DIALECTS, KEY, config, fails, http, human, model, try_ask};

#[tokio::test]
async fn refusals_have_their_kind_and_the_providers_words() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        server.push(Turn::status(401).message(format!("invalid key {KEY}")));
        let error = fails(&*model, human("hi")).await;
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Auth, "invalid key [api key]"));
        assert!(!error.to_string().contains(KEY));

        server.push(Turn::status(429).message("slow down").header("retry-after", "2"));
        let error = fails(&*model, human("hi")).await;
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::RateLimit, "slow down"));
        assert_eq!(error.retry_after, Some(Duration::from_secs(2)));

        server.push(Turn::status(500).message("boom"));
        let error = fails(&*model, human("hi")).await;
        assert!(error.status == Some(500) && error.message == "boom", "{error:?}");

        server.push(Turn::status(502).body_text("<html><title>Bad gateway</title></html>"));
        let error = fails(&*model, human("hi")).await;
        assert!(error.status == Some(502) && error.message.contains("Bad gateway"));

        server.push(Turn::status(400).message("prompt is too long: 300000 tokens > 200000 maximum"));
        assert!(matches!(fails(&*model, human("hi")).await.kind, ModelErrorKind::ContextOverflow { .. }));
        server.push(
            Turn::status(400).body(json!({"error": {"message": "x", "code": "context_length_exceeded"}})),
        );
        assert!(matches!(fails(&*model, human("hi")).await.kind, ModelErrorKind::ContextOverflow { .. }));
    }
}

#[tokio::test]
async fn an_error_inside_the_stream_is_an_error() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        server.push(Turn::new().text("half").stream_error("overloaded_error", "too busy"));
        let error = fails(&*model, human("hi")).await;
        assert!(error.kind == ModelErrorKind::Overloaded && error.message == "too busy", "{error:?}");
        assert_eq!((error.status, error.partial.as_ref().unwrap().text().as_str()), (None, "half"));
        server.push(Turn::new().stream_error("rate_limit_error", "wait"));
        // Ollama has only words for it.
        let kind =
            if dialect == Dialect::Ollama { ModelErrorKind::Overloaded } else { ModelErrorKind::RateLimit };
        assert_eq!(fails(&*model, human("hi")).await.kind, kind);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_interrupted() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        for events in 0..4 {
            server.push(Turn::new().text("a long answer").chunk_chars(2).cut_after(events));
            let error = fails(&*model, human("hi")).await;
            assert!(matches!(error.kind, ModelErrorKind::Interrupted), "{dialect:?} {events}: {error:?}");
        }
        // The body ends properly, but the model never said that it had finished.
        let (before, after) = if dialect == Dialect::Ollama { ("", "\n") } else { ("data: ", "\n\n") };
        server.push(Turn::raw_sse(format!(
            "{before}{{\"type\":\"ping\",\"choices\":[]}}{after}{before}{{\"ty"
        )));
        let error = fails(&*model, human("hi")).await;
        assert!(matches!(error.kind, ModelErrorKind::Interrupted), "{error:?}");
    }
}

#[tokio::test]
async fn nonsense_is_a_protocol_error() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        server.push(Turn::raw_sse("data: <html>\n\n"));
        assert!(matches!(fails(&*model, human("hi")).await.kind, ModelErrorKind::Malformed));
        server.push(Turn::new().body(json!({"choices": []})));
        assert!(matches!(fails(&*model, human("hi")).await.kind, ModelErrorKind::Malformed));
        server.push(Turn::new().body(json!({"error": {"message": "no credit", "code": 402}})));
        assert_eq!(fails(&*model, human("hi")).await.kind, ModelErrorKind::BadRequest);
    }
}

#[tokio::test]
async fn silence_is_noticed_before_and_inside_an_answer() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let quick = config(&server, dialect, json!({"stream_chunk_timeout": 0.05}));
        let model = hart_models::build(&quick, &http());
        for turn in [
            Turn::hang_before_headers(),
            Turn::hang(),
            Turn::new().text("some text").chunk_chars(1).hang_after(3),
        ] {
            server.push(turn);
            let error = fails(&*model, human("hi")).await;
            assert!(matches!(error.kind, ModelErrorKind::Timeout(_)), "{error:?}");
        }
    }
}

#[tokio::test]
async fn silence_after_the_last_word_is_the_end() {
    let server = ModelServer::start().await;
    let quick = config(&server, Dialect::OpenAi, json!({"stream_chunk_timeout": 2}));
    let model = hart_models::build(&quick, &http());
    // Role, text, finish reason; then neither usage nor the end marker.
    server.push(Turn::new().text("all").hang_after(3));
    assert_eq!(try_ask(&*model, human("hi")).await.unwrap().message.unwrap().text(), "all");
}

#[tokio::test]
async fn cancelling_ends_the_request_wherever_it_is() {
    for dialect in DIALECTS {
        // Before it is sent.
        let server = ModelServer::start().await;
        let model = model(&server, dialect);
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert!(model.stream(human("hi"), &cancel).await.err().unwrap().kind == ModelErrorKind::Cancelled);
        assert!(server.requests().is_empty());

        // While it waits for headers.
        server.push(Turn::hang_before_headers());
        let cancel = CancellationToken::new();
        let (answer, ()) = tokio::join!(model.stream(human("hi"), &cancel), async {
            server.wait_for_requests(1).await;
            cancel.cancel();
        });
        assert!(answer.err().unwrap().kind == ModelErrorKind::Cancelled);
        server.wait_for_disconnect().await;
    }
}

#[tokio::test]
async fn cancelling_or_dropping_mid_stream_disconnects() {
    for dialect in DIALECTS {
        for by_drop in [false, true] {
            let server = ModelServer::start().await;
            let model = model(&server, dialect);
            server.push(Turn::new().text("endless").chunk_chars(1).hang_after(5));
            let cancel = CancellationToken::new();
            let mut stream = model.stream(human("hi"), &cancel).await.unwrap();
            assert!(matches!(stream.next().await, Some(Ok(ChatChunk::Text(_)))));
            if by_drop {
                drop(stream);
            } else {
                cancel.cancel();
                let mut last = None;
                while let Some(chunk) = stream.next().await {
                    last = Some(chunk);
                }
                assert!(matches!(last, Some(Err(error)) if error.kind == ModelErrorKind::Cancelled));
            }
            server.wait_for_disconnect().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let mut config = config(&server, dialect, json!({}));
        config.base_url = format!("http://127.0.0.1:{port}/v1").into();
        let error = fails(&*hart_models::build(&config, &http()), human("hi")).await;
        assert!(error.to_string().contains(&format!("http://127.0.0.1:{port}/v1/")), "{error}");
        assert!(matches!(error.kind, ModelErrorKind::Network));
    }
}

#[tokio::test]
async fn a_password_in_an_address_is_not_shown() {
    let server = ModelServer::start().await;
    let mut config = config(&server, Dialect::OpenAi, json!({}));
    config.base_url = "http://ada:hunter22@127.0.0.1:9/v1".into();
    let model = hart_models::build(&config, &http());
    let error = fails(&*model, human("hi")).await;
    let shown = format!("{error} {error:?}");
    assert!(
        shown.contains("http://********@127.0.0.1:9/v1/chat/completions") && !shown.contains("hunter22"),
        "{shown}"
    );
}
