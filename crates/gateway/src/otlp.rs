//! Traces as OpenTelemetry's collectors take them: OTLP over HTTP, as JSON.
//!
//! Invariant: one batch is one request that takes a bounded time; what is refused is not sent again.

use std::time::Duration;

use hart_kernel::{Timestamp, async_trait};
use hart_runtime::{Attribute, NotExported, Span, SpanKind, TraceExporter};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

/// Sends spans to a collector.
#[derive(Debug)]
pub struct OtlpExporter {
    url: Url,
    client: reqwest::Client,
}

#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    #[error("`{0}` is no address of a collector; write one like http://127.0.0.1:4318")]
    Endpoint(String),
    #[error("`{0}` is no header; they are written as name=value, name=value")]
    Header(String),
    #[error("no client for traces could be made")]
    Client(#[source] reqwest::Error),
}

const TIMEOUT: Duration = Duration::from_secs(10);

impl OtlpExporter {
    /// `endpoint` is the collector's base address, `headers` a list as `OTEL_EXPORTER_OTLP_HEADERS` has it.
    pub fn new(endpoint: &str, headers: &str) -> Result<Self, OtlpError> {
        let wrong = || OtlpError::Endpoint(endpoint.to_owned());
        let url = format!("{}/v1/traces", endpoint.trim().trim_end_matches('/'));
        let url = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let client = reqwest::Client::builder().timeout(TIMEOUT).default_headers(parse(headers)?);
        let client = client.build().map_err(OtlpError::Client)?;
        Ok(Self { url: url.ok_or_else(wrong)?, client })
    }
}

#[async_trait]
impl TraceExporter for OtlpExporter {
    async fn export(&self, spans: Vec<Span>) -> Result<(), NotExported> {
        let request = self.client.post(self.url.clone()).header("content-type", "application/json");
        let sent = request.body(document(&spans).to_string()).send().await;
        match sent {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(NotExported(format!("the collector answered {}", response.status()))),
            Err(error) => Err(NotExported(error.without_url().to_string())),
        }
    }
}

fn parse(headers: &str) -> Result<HeaderMap, OtlpError> {
    let mut map = HeaderMap::new();
    for pair in headers.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        // The value may be a key: only the name is ever shown.
        let (name, value) = pair.split_once('=').ok_or_else(|| OtlpError::Header("…".to_owned()))?;
        let wrong = || OtlpError::Header(name.to_owned());
        let header = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
        let value = decoded(value.trim()).ok_or_else(wrong)?;
        let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// The list is written as W3C baggage is: what would end a value stands there as `%2C` and the like.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match (first, after) {
            (b'%', [high, low, after @ ..]) => digit(*high).zip(digit(*low)).map(|pair| (pair, after)),
            _ => None,
        };
        match escaped {
            Some(((high, low), after)) => {
                bytes.push(high * 16 + low);
                rest = after;
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

fn document(spans: &[Span]) -> Value {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            text("service.name", "hart"),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ]},
        "scopeSpans": [{"scope": {"name": "hart"}, "spans": spans.iter().map(span).collect::<Vec<_>>()}],
    }]})
}

fn span(span: &Span) -> Value {
    let attributes = span.attributes.iter().map(|(key, value)| match value {
        Attribute::Text(text) => json!({"key": key, "value": {"stringValue": text}}),
        // 64-bit numbers are texts in the JSON of protocol buffers.
        Attribute::Number(number) => json!({"key": key, "value": {"intValue": number.to_string()}}),
    });
    json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.id),
        "parentSpanId": span.parent.map(|parent| format!("{parent:016x}")).unwrap_or_default(),
        "name": span.name,
        "kind": match span.kind { SpanKind::Internal => 1, SpanKind::Client => 3 },
        "startTimeUnixNano": nanos(span.start),
        "endTimeUnixNano": nanos(span.end),
        "attributes": attributes.collect::<Vec<_>>(),
        "status": match &span.error {
            Some(error) => json!({"code": 2, "message": error}),
            None => json!({"code": 0}),
        },
    })
}

fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_baggage_is_written() {
        let headers =
            parse("authorization=Basic%20dXNlcjpwYXNz%3D%2C, x-plain = 100% sure ,,x-name=gr%C3%BCn")
                .unwrap();
        assert_eq!(headers["authorization"], "Basic dXNlcjpwYXNz=,");
        assert_eq!(headers["x-plain"], "100% sure");
        assert_eq!(headers["x-name"].as_bytes(), "grün".as_bytes());
        for wrong in ["nothing", "a b=c", "x=%ff", "x=%0a"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("is no header") && !error.contains('%'), "{error}");
        }
    }
}
