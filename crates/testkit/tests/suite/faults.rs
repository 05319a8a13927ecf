//! Errors, silence, cuts and departures.

use std::time::Duration;

use futures_util::StreamExt;
use hart_testkit::{ModelServer, Turn};
use serde_json::json;

use crate::client::{anthropic, asking, http, json_of, openai, parse};

#[tokio::test]
async fn an_exhausted_script_says_so_in_each_dialect() {
    let server = ModelServer::start().await;
    let response = openai(&server, &asking(true)).await;
    assert_eq!(response.status(), 500);
    let error = json_of(response).await;
    assert!(error["error"]["message"].as_str().unwrap().contains("exhausted"));
    assert_eq!(error["error"]["type"], "server_error");
    let error = json_of(anthropic(&server, &asking(true)).await).await;
    assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!("api_error")));
}

#[tokio::test]
async fn an_error_turn_has_status_headers_and_body() {
    let server = ModelServer::start().await;
    server.push(Turn::status(429).header("retry-after", "1").message("slow down"));
    server.push(Turn::status(529));
    server.push(Turn::status(400).body(json!({"odd": true})));
    server.push(Turn::status(502).body_text("<html>"));
    let response = openai(&server, &asking(true)).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    let expected =
        json!({"error": {"message": "slow down", "type": "rate_limit_error", "param": null, "code": null}});
    assert_eq!(json_of(response).await, expected);
    let response = anthropic(&server, &asking(true)).await;
    assert_eq!(response.status(), 529);
    assert_eq!(json_of(response).await["error"]["type"], "overloaded_error");
    assert_eq!(json_of(openai(&server, &asking(true)).await).await, json!({"odd": true}));
    assert_eq!(openai(&server, &asking(true)).await.text().await.unwrap(), "<html>");
    assert_eq!(server.disconnects(), 0);
}

#[tokio::test]
async fn a_hanging_stream_notices_that_its_client_left() {
    let server = ModelServer::start().await;
    server.push(Turn::hang());
    let response = openai(&server, &asking(true)).await;
    assert_eq!((response.status().as_u16(), server.disconnects()), (200, 0));
    drop(response);
    server.wait_for_disconnect().await;
    assert_eq!(server.disconnects(), 1);
}

#[tokio::test]
async fn silence_before_the_headers_notices_that_its_client_left() {
    let server = ModelServer::start().await;
    server.push(Turn::hang_before_headers());
    let body = asking(true);
    tokio::select! {
        _ = openai(&server, &body) => panic!("an answer came"),
        () = server.wait_for_requests(1) => {}
    }
    server.wait_for_disconnect().await;
}

#[tokio::test]
async fn silence_after_some_events_still_delivers_them() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("partial").hang_after(2));
    let mut stream = openai(&server, &asking(true)).await.bytes_stream();
    let mut text = String::new();
    while !text.contains("partial") {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    drop(stream);
    server.wait_for_disconnect().await;
}

#[tokio::test]
async fn a_cut_stream_delivers_its_events_and_then_breaks() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("x".repeat(5000)).chunk_chars(1).cut_after(3000));
    let mut stream = openai(&server, &asking(true)).await.bytes_stream();
    let mut received = Vec::new();
    let broken = loop {
        match stream.next().await {
            Some(Ok(bytes)) => received.extend_from_slice(&bytes),
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    assert!(broken, "the body must not end properly");
    let events = parse(std::str::from_utf8(&received).unwrap());
    assert_eq!(events.len(), 3000);
    assert_eq!(server.disconnects(), 0);
}

#[tokio::test]
async fn a_cut_message_breaks_in_the_middle() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("x").cut_after(1));
    assert!(openai(&server, &asking(false)).await.bytes().await.is_err());
}

#[tokio::test]
async fn raw_bytes_and_tiny_wire_chunks_arrive_unchanged() {
    let raw = "data: {\"ü\":\r\n: comment\r\n\r\ndata: é";
    let server = ModelServer::start().await;
    server.push(Turn::raw_sse(raw).wire_bytes(1));
    let mut stream = openai(&server, &asking(true)).await.bytes_stream();
    let mut received = Vec::new();
    let mut pieces = 0;
    while let Some(piece) = stream.next().await {
        received.extend_from_slice(&piece.unwrap());
        pieces += 1;
    }
    assert_eq!(received, raw.as_bytes());
    assert_eq!(pieces, raw.len());
}

#[tokio::test]
async fn a_delayed_turn_is_the_same_turn() {
    let server = ModelServer::start().await;
    let pause = Duration::from_millis(1);
    server.push(Turn::new().text("late").delay(pause).event_delay(pause));
    assert!(openai(&server, &asking(true)).await.text().await.unwrap().contains("late"));
}

#[tokio::test]
async fn dropping_the_server_ends_its_open_streams() {
    let server = ModelServer::start().await;
    server.push(Turn::hang());
    let response = openai(&server, &asking(true)).await;
    let url = server.url();
    drop(server);
    assert!(response.bytes().await.is_err());
    assert!(http().get(url).send().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn waiting_works_where_the_clock_of_the_test_is_paused() {
    let server = ModelServer::start().await;
    server.push(Turn::hang());
    drop(openai(&server, &asking(true)).await);
    server.wait_for_disconnect().await;
}
