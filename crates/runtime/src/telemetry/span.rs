//! One piece of work with a beginning and an end.
//!
//! Invariant: its names are OpenTelemetry's, those about models the generative-AI ones.

use hart_kernel::Timestamp;

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// What belongs together; a run's own id.
    pub trace: u128,
    pub id: u64,
    pub parent: Option<u64>,
    pub name: String,
    pub kind: SpanKind,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// The class of what went wrong.
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// It waited for somebody else.
    Client,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    Text(String),
    Number(u64),
}

impl Span {
    pub fn new(trace: u128, id: u64, name: String, start: Timestamp) -> Self {
        let kind = SpanKind::Internal;
        Self { trace, id, parent: None, name, kind, start, end: start, attributes: Vec::new(), error: None }
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}
