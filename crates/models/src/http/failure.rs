//! What a provider says when it does not answer.
//!
//! Invariant: the provider's own words are kept, short and without the key.

use std::error::Error;
use std::time::Duration;

use hart_kernel::{ModelError, ModelErrorKind};
use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::page;

const MAX_MESSAGE: usize = 600;

/// An error as the provider describes it.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u16,
    /// The provider's word for it, `type` or `code`.
    kind: String,
    message: String,
    told_by_status: bool,
    /// How long the provider asks to wait, where the error itself says so.
    retry_after: Option<Duration>,
}

impl Failure {
    /// The error inside an HTTP error response, whatever its shape.
    pub(super) fn of_response(status: u16, body: &[u8]) -> Self {
        let mut failure = Self::of_body(body).unwrap_or_else(|| {
            let message = if page::is_page(body) {
                page::told(body)
            } else {
                String::from_utf8_lossy(body).trim().to_owned()
            };
            Self { status, kind: String::new(), message, told_by_status: true, retry_after: None }
        });
        failure.status = status;
        failure.told_by_status = true;
        if failure.message.is_empty() {
            failure.message = "no reason given".to_owned();
        }
        failure
    }

    /// The error object in a JSON body, if it is one.
    pub(super) fn of_body(body: &[u8]) -> Option<Self> {
        let mut value: Value = serde_json::from_slice(body).ok()?;
        // Gemini wraps its error into a list.
        if let Some(first) = value.as_array_mut().and_then(|list| list.first_mut()) {
            value = first.take();
        }
        let told =
            ["error", "detail", "message"].iter().find_map(|key| value.get(key).filter(|v| !v.is_null()))?;
        // `{"message": …}` alone is the error itself: Mistral's shape.
        Some(Self::of_error(if told.is_object() || value.get("message").is_none() { told } else { &value }))
    }

    /// The value of an `error` field: an object, or just a text.
    pub(crate) fn of_error(error: &Value) -> Self {
        let words = |key: &str| match error.get(key) {
            Some(Value::String(word)) => word.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let (kind, code) = (words("type"), words("code"));
        let message = match error.get("message") {
            Some(Value::String(message)) => message.clone(),
            Some(other) if !other.is_null() => other.to_string(),
            _ => error.as_str().map_or_else(|| error.to_string(), str::to_owned),
        };
        let numeric = code.parse().ok().filter(|code| (400..600).contains(code));
        let status = numeric.unwrap_or_else(|| status_of(&kind));
        let kind = if numeric.is_some() || code.is_empty() { kind } else { format!("{kind} {code}") };
        let google = Google::of(error);
        let kind = if google.words.is_empty() { kind } else { format!("{kind} {}", google.words) };
        Self { status, kind, message, told_by_status: false, retry_after: google.retry_after }
    }

    pub(super) fn redact(&mut self, key: &str) {
        // A shorter text is no key, and would be found everywhere.
        if key.len() >= 8 {
            self.message = self.message.replace(key, "[api key]");
        }
    }

    pub(crate) fn into_error(self, model: &str, retry_after: Option<Duration>) -> ModelError {
        let kind = self.error_kind();
        let retry_after = retry_after.or(self.retry_after);
        let error = ModelError::new(kind, model, shortened(&self.message)).retry_after(retry_after);
        // What an error inside a stream stands for is not a status anybody sent.
        if self.told_by_status { error.status(self.status) } else { error }
    }

    pub(crate) fn error_kind(&self) -> ModelErrorKind {
        if self.is_overflow() {
            let (used, limit) = overflow_numbers(&self.message);
            return ModelErrorKind::ContextOverflow { limit, used };
        }
        if self.is_content_filter() {
            return ModelErrorKind::ContentFilter;
        }
        match self.status {
            // Google tells a wrong key from a wrong request by this word alone.
            400 if self.kind.contains("API_KEY_INVALID") => ModelErrorKind::Auth,
            401 | 403 => ModelErrorKind::Auth,
            429 => ModelErrorKind::RateLimit,
            408 | 409 | 425 | 500.. => ModelErrorKind::Overloaded,
            _ => ModelErrorKind::BadRequest,
        }
    }

    fn is_content_filter(&self) -> bool {
        let kind = self.kind.to_ascii_lowercase();
        ["content_filter", "content_policy", "responsibleaipolicyviolation", "data_inspection_failed"]
            .iter()
            .any(|word| kind.contains(word))
    }

    fn is_overflow(&self) -> bool {
        let kind = self.kind.to_ascii_lowercase();
        if ["context_length_exceeded", "exceed_context_size_error"].iter().any(|word| kind.contains(word)) {
            return true;
        }
        let message = self.message.to_ascii_lowercase();
        matches!(self.status, 400 | 413 | 422 | 429 | 500)
            && OVERFLOW.iter().any(|words| message.contains(words))
    }
}

/// How providers say that a conversation is too long.
const OVERFLOW: [&str; 14] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "maximum context length",
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeds the maximum number of tokens",
    "greater than the context length",
    "exceeds the context length",
    "exceeds maximum context length",
    "reduce the length of the messages",
    "maximum prompt length",
];

/// Used and allowed tokens, where the message tells them: the two largest numbers, the limit being the smaller.
fn overflow_numbers(message: &str) -> (Option<u64>, Option<u64>) {
    let digits = message.replace(',', "");
    let numbers = digits.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
    let mut large: Vec<u64> = numbers.filter(|number| *number >= 256).collect();
    large.sort_unstable();
    large.dedup();
    match large.as_slice() {
        [.., limit, used] => (Some(*used), Some(*limit)),
        [limit] => (None, Some(*limit)),
        [] => (None, None),
    }
}

/// What Google adds to an error: its own word for the status, and details that say why and how long to wait.
#[derive(Default)]
struct Google {
    words: String,
    retry_after: Option<Duration>,
}

impl Google {
    fn of(error: &Value) -> Self {
        let mut google = Self::default();
        let status = error.get("status").and_then(Value::as_str);
        let details = error.get("details").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let reasons = details.iter().filter_map(|detail| detail.get("reason").and_then(Value::as_str));
        google.words = status.into_iter().chain(reasons).collect::<Vec<_>>().join(" ");
        let delays = details.iter().filter_map(|detail| detail.get("retryDelay").and_then(Value::as_str));
        google.retry_after = delays.filter_map(seconds).max();
        google
    }
}

/// `"34.07s"`, as Google writes a duration in JSON.
fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.trim().strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Inside a stream there is no HTTP status; the kind of error stands for one.
fn status_of(kind: &str) -> u16 {
    match kind {
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" | "tokens" | "requests" => 429,
        "overloaded_error" => 529,
        _ if kind.starts_with("invalid") || kind.contains("context") => 400,
        _ => 500,
    }
}

/// How long the provider asks to wait: `retry-after-ms`, `retry-after` in seconds, or as a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str| text.parse::<f64>().ok();
    let millis = text("retry-after-ms").and_then(seconds).map(|millis| millis / 1000.0);
    let after = text(RETRY_AFTER.as_str());
    if let Some(wait) = millis.or_else(|| after.and_then(seconds)) {
        return Duration::try_from_secs_f64(wait).ok();
    }
    // Against the server's own clock, so that ours need not be right.
    let date = |text: &str| rfc2822::parse(text).ok().map(|zoned| zoned.timestamp());
    let wait = date(after?)?.as_second() - date(text(DATE.as_str())?)?.as_second();
    u64::try_from(wait).ok().map(Duration::from_secs)
}

/// What the provider calls the request.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let names = ["request-id", "x-request-id", "x-amzn-requestid", "cf-ray"];
    let value = names.iter().find_map(|name| headers.get(*name))?;
    value.to_str().ok().map(str::to_owned)
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn shortened(message: &str) -> String {
    let one_line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(MAX_MESSAGE) {
        Some((cut, _)) => format!("{}…", one_line.get(..cut).unwrap_or_default()),
        None => one_line,
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
