//! A request as the model server received it, with questions a test asks of it in any dialect.
//!
//! Invariant: a recorded request is what came over the wire; nothing is defaulted, reordered or repaired.

use std::fmt::Write as _;

use axum::http::request::Parts;
use bytes::Bytes;
use serde_json::Value;

/// The ways a model is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    OpenAi,
    Anthropic,
    Responses,
    Gemini,
    Ollama,
}

/// One request to a [`crate::ModelServer`].
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    /// In the order received, names in lower case.
    pub headers: Vec<(String, String)>,
    /// `Null` when the body is empty or not JSON; then see `raw`.
    pub body: Value,
    pub raw: Bytes,
}

/// The answer to one tool call, as the model is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub call_id: String,
    /// The text of the result; text blocks are joined, other blocks stand as their JSON.
    pub content: String,
    /// Only Anthropic and Gemini say so; in the other dialects it is always false.
    pub is_error: bool,
}

impl RecordedRequest {
    pub(crate) fn new(parts: &Parts, raw: Bytes) -> Self {
        let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Self {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: serde_json::from_slice(&raw).unwrap_or(Value::Null),
            raw,
        }
    }

    /// The dialect of a model call; `None` for any other request.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        match (self.method.as_str(), self.path.as_str()) {
            ("POST", "/v1/chat/completions") => Some(Dialect::OpenAi),
            ("POST", "/v1/messages") => Some(Dialect::Anthropic),
            ("POST", "/v1/responses") => Some(Dialect::Responses),
            ("POST", "/api/chat") => Some(Dialect::Ollama),
            ("POST", path) if gemini_model(path).is_some() => Some(Dialect::Gemini),
            _ => None,
        }
    }

    /// The first header of that name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    #[must_use]
    pub fn model(&self) -> &str {
        self.body["model"].as_str().or_else(|| Some(gemini_model(&self.path)?.0)).unwrap_or_default()
    }

    #[must_use]
    pub fn is_stream(&self) -> bool {
        // Ollama streams unless told not to; Gemini's address says it.
        let unsaid = gemini_model(&self.path).map_or(self.path == "/api/chat", |(_, stream)| stream);
        self.body["stream"].as_bool().unwrap_or(unsaid)
    }

    /// The messages as sent, the items of Responses' `input`, or Gemini's `contents`; empty when there are none.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        let list = ["messages", "input", "contents"].iter().find_map(|key| self.body[*key].as_array());
        list.map_or(&[], Vec::as_slice)
    }

    /// The text of the messages of one role, in order.
    #[must_use]
    pub fn texts_of(&self, role: &str) -> Vec<String> {
        self.messages().iter().filter(|m| m["role"] == role).map(|m| text_of(said(m))).collect()
    }

    /// The system prompt: Anthropic's `system`, the `instructions` of Responses, Gemini's `systemInstruction`, or
    /// OpenAI's `system` and `developer` messages joined by blank lines.
    #[must_use]
    pub fn system(&self) -> String {
        for key in ["system", "instructions"] {
            if !self.body[key].is_null() {
                return text_of(&self.body[key]);
            }
        }
        if !self.body["systemInstruction"].is_null() {
            return text_of(said(&self.body["systemInstruction"]));
        }
        let instructs = |m: &&Value| m["role"] == "system" || m["role"] == "developer";
        let texts: Vec<_> =
            self.messages().iter().filter(instructs).map(|m| text_of(&m["content"])).collect();
        texts.join("\n\n")
    }

    /// The names of the offered tools, in order.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let each = tools.iter().flat_map(|tool| match tool["functionDeclarations"].as_array() {
            Some(declared) => declared.as_slice(),
            None => std::slice::from_ref(tool),
        });
        each.filter_map(|tool| tool["function"]["name"].as_str().or(tool["name"].as_str())).collect()
    }

    /// Every tool result, in order, in any dialect.
    #[must_use]
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let mut results = Vec::new();
        for message in self.messages() {
            if message["role"] == "tool" {
                results.push(ToolResult {
                    call_id: message["tool_call_id"].as_str().unwrap_or_default().to_owned(),
                    content: text_of(&message["content"]),
                    is_error: false,
                });
            }
            if message["type"] == "function_call_output" {
                results.push(ToolResult {
                    call_id: message["call_id"].as_str().unwrap_or_default().to_owned(),
                    content: text_of(&message["output"]),
                    is_error: false,
                });
            }
            let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
            for block in blocks.iter().filter(|block| block["type"] == "tool_result") {
                results.push(ToolResult {
                    call_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
                    content: text_of(&block["content"]),
                    is_error: block["is_error"].as_bool().unwrap_or(false),
                });
            }
            let parts = message["parts"].as_array().map_or(&[][..], Vec::as_slice);
            for answered in parts.iter().map(|part| &part["functionResponse"]).filter(|r| !r.is_null()) {
                let is_error = !answered["response"]["error"].is_null();
                results.push(ToolResult {
                    call_id: answered["id"].as_str().unwrap_or_default().to_owned(),
                    content: text_of(&answered["response"][if is_error { "error" } else { "output" }]),
                    is_error,
                });
            }
        }
        results
    }

    /// The result of one call, if the request carries it.
    #[must_use]
    pub fn tool_result(&self, call_id: &str) -> Option<ToolResult> {
        self.tool_results().into_iter().find(|result| result.call_id == call_id)
    }
}

/// What a message says, in whatever field its dialect has for it.
fn said(message: &Value) -> &Value {
    if message["parts"].is_null() { &message["content"] } else { &message["parts"] }
}

/// The model in an address of Gemini's, and whether a stream is asked for.
fn gemini_model(path: &str) -> Option<(&str, bool)> {
    let (model, method) = path.strip_prefix("/v1beta/models/")?.split_once(':')?;
    match method {
        "streamGenerateContent" => Some((model, true)),
        "generateContent" => Some((model, false)),
        _ => None,
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().fold(String::new(), |mut all, block| {
            match block["text"].as_str() {
                Some(text) => all.push_str(text),
                None => write!(all, "{block}").expect("a String takes any text"),
            }
            all
        }),
        other => other.to_string(),
    }
}
