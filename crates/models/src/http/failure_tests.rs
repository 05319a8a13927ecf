use reqwest::header::HeaderValue;

use super::*;

fn error(status: u16, body: &str) -> ModelError {
    Failure::of_response(status, body.as_bytes()).into_error("m", None)
}

#[test]
fn the_providers_words_are_found_in_every_shape() {
    let bodies = [
        r#"{"error":{"message":"no such model","type":"invalid_request_error","code":null}}"#,
        r#"{"type":"error","error":{"type":"not_found_error","message":"no such model"}}"#,
        r#"{"error":"no such model"}"#,
        r#"[{"error":{"code":404,"message":"no such model","status":"NOT_FOUND"}}]"#,
        r#"{"object":"error","message":"no such model","type":"NotFound","code":404}"#,
        r#"{"detail":"no such model"}"#,
        "no such model",
    ];
    for body in bodies {
        let error = error(404, body);
        assert_eq!((error.kind, error.status), (ModelErrorKind::BadRequest, Some(404)), "{body}");
        assert_eq!(error.message, "no such model", "{body}");
    }
}

#[test]
fn a_conversation_that_is_too_long_is_recognised() {
    let cases = [
        (
            400,
            r#"{"error":{"message":"too many","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        ),
        (400, r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":400}}"#),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 1 > 0"}}"#,
        ),
        (500, r#"{"error":{"code":500,"message":"the request exceeds","type":"exceed_context_size_error"}}"#),
        (
            400,
            r#"{"error":{"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}"#,
        ),
    ];
    for (status, body) in cases {
        assert!(matches!(error(status, body).kind, ModelErrorKind::ContextOverflow { .. }), "{body}");
    }
}

#[test]
fn refusals_and_limits_have_their_kind() {
    for (status, kind) in [
        (401, ModelErrorKind::Auth),
        (403, ModelErrorKind::Auth),
        (404, ModelErrorKind::BadRequest),
        (408, ModelErrorKind::Overloaded),
        (429, ModelErrorKind::RateLimit),
        (500, ModelErrorKind::Overloaded),
        (529, ModelErrorKind::Overloaded),
    ] {
        assert_eq!(error(status, "{}").kind, kind, "{status}");
    }
    let filtered = r#"{"error":{"message":"no","type":"invalid_request_error","code":"content_filter"}}"#;
    assert_eq!(error(400, filtered).kind, ModelErrorKind::ContentFilter);
}

#[test]
fn an_error_in_a_stream_gets_the_status_its_kind_stands_for() {
    let status = |json: &str| Failure::of_error(&serde_json::from_str(json).unwrap()).status;
    assert_eq!(status(r#"{"type":"overloaded_error","message":"x"}"#), 529);
    assert_eq!(status(r#"{"type":"rate_limit_error","message":"x"}"#), 429);
    assert_eq!(status(r#"{"code":502,"message":"x"}"#), 502);
    assert_eq!(status(r#""just text""#), 500);
}

#[test]
fn a_long_message_is_cut_and_a_page_becomes_one_line() {
    let error = error(502, &format!("<oops>\n\n{}", "ü ".repeat(2000)));
    let message = &error.message;
    assert!(message.starts_with("<oops> ü") && message.ends_with('…'));
    assert_eq!(message.chars().count(), MAX_MESSAGE + 1);
}

#[test]
fn the_key_is_taken_out() {
    let mut failure = Failure::of_response(400, br#"{"error":"bad key sk-secret-123"}"#);
    failure.redact("sk-secret-123");
    assert_eq!(failure.message, "bad key [api key]");
}

#[test]
fn waiting_times_come_in_three_spellings() {
    let wait = |pairs: &[(&'static str, &'static str)]| {
        let pairs = pairs.iter().map(|(k, v)| (k.parse().unwrap(), HeaderValue::from_static(v)));
        retry_after(&pairs.collect())
    };
    assert_eq!(wait(&[("retry-after", "3")]), Some(Duration::from_secs(3)));
    assert_eq!(wait(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
    assert_eq!(wait(&[("retry-after", "3"), ("retry-after-ms", "250")]), Some(Duration::from_millis(250)));
    let dates = [("date", "Wed, 21 Oct 2015 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")];
    assert_eq!(wait(&dates), Some(Duration::from_secs(30)));
    assert_eq!(wait(&[("retry-after", "soon")]), None);
    assert_eq!(wait(&[("retry-after", "-1")]), None);
    assert_eq!(wait(&[]), None);
}

#[test]
fn the_numbers_of_an_overflow_are_read() {
    for (message, expected) in [
        ("prompt is too long: 300,000 tokens > 200000 maximum", (Some(300_000), Some(200_000))),
        ("This model's maximum context length is 8192 tokens.", (None, Some(8192))),
        ("prompt is too long", (None, None)),
    ] {
        assert_eq!(overflow_numbers(message), expected, "{message}");
    }
}

#[test]
fn google_says_in_the_error_how_long_to_wait_and_that_a_key_is_wrong() {
    let limited = r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota","details":[
        {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#;
    let limited_error = error(429, limited);
    assert_eq!(limited_error.kind, ModelErrorKind::RateLimit);
    assert_eq!(limited_error.retry_after, Some(Duration::from_millis(34_500)));
    // A header is the more exact word: it was written for this answer.
    let wait = Some(Duration::from_secs(2));
    let told = Failure::of_response(429, limited.as_bytes()).into_error("m", wait);
    assert_eq!(told.retry_after, wait);

    let wrong = r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid.","details":[
        {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
    assert_eq!(error(400, wrong).kind, ModelErrorKind::Auth);
    let plain = r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"no","details":"odd"}}"#;
    assert_eq!(error(400, plain).kind, ModelErrorKind::BadRequest);
    for odd in ["soon", "s", "-1s", "1e400s", ""] {
        assert_eq!(seconds(odd), None, "{odd}");
    }
}
