//! One scripted answer of the model, told without naming a dialect.
//!
//! Invariant: a turn says what the model means; only `wire` knows how a dialect spells it.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// One answer of a [`crate::ModelServer`]: what the model says, and how the wire misbehaves while it says it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Turn {
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop: Option<String>,
    pub(crate) chunk_chars: Option<usize>,
    pub(crate) reasoning_field: &'static str,
    pub(crate) done_marker: bool,
    pub(crate) stream_error: Option<(String, String)>,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Option<Payload>,
    pub(crate) message: Option<String>,
    pub(crate) pace: Pace,
    pub(crate) end: End,
    pub(crate) wire_bytes: Option<usize>,
    pub(crate) breaks: Option<Bytes>,
    pub(crate) ends_twice: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Reasoning {
        text: String,
        signature: Option<String>,
    },
    RedactedReasoning(String),
    /// The fragments in which the text is streamed, before `chunk_chars` splits them further.
    Text(Vec<String>),
    ToolCall {
        id: String,
        name: String,
        args: String,
        /// Only Gemini signs calls.
        signature: Option<String>,
    },
}

/// Token counts; `input` is the whole prompt, cached part included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cached: u64,
    pub(crate) cache_written: u64,
    pub(crate) reasoning: u64,
}

/// A body sent as it stands, whatever the dialect.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    Sse(Bytes),
    Json(Value),
    Text(String),
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    pub(crate) before_headers: Duration,
    pub(crate) between_events: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    /// The connection closes without the end of the body, after that many events.
    CutAfter(usize),
    /// Nothing more comes after that many events, until the client leaves.
    HangAfter(usize),
    HangBeforeHeaders,
}

impl Turn {
    /// An empty answer that ends normally, with 10 tokens in and 5 out.
    pub fn new() -> Self {
        Self {
            parts: Vec::new(),
            usage: Some(Usage { input: 10, output: 5, cached: 0, cache_written: 0, reasoning: 0 }),
            stop: None,
            chunk_chars: None,
            reasoning_field: "reasoning_content",
            done_marker: true,
            stream_error: None,
            status: 200,
            headers: Vec::new(),
            payload: None,
            message: None,
            pace: Pace::default(),
            end: End::Complete,
            wire_bytes: None,
            breaks: None,
            ends_twice: false,
        }
    }

    /// An HTTP error, with a body in the shape of the dialect unless `body` or `body_text` gives another.
    pub fn status(status: u16) -> Self {
        Self { status, ..Self::new() }
    }

    /// A stream of exactly these bytes.
    pub fn raw_sse(bytes: impl Into<Bytes>) -> Self {
        Self { payload: Some(Payload::Sse(bytes.into())), ..Self::new() }
    }

    /// Headers, then nothing until the client disconnects.
    pub fn hang() -> Self {
        Self::new().hang_after(0)
    }

    /// Nothing at all until the client disconnects.
    pub fn hang_before_headers() -> Self {
        Self { end: End::HangBeforeHeaders, ..Self::new() }
    }

    /// Adds reasoning: a thinking block, `reasoning_content` deltas, or an item with a summary.
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.part(Part::Reasoning { text: text.into(), signature: None })
    }

    /// Signs the latest reasoning or tool call; a dialect that has no place for it leaves it out.
    pub fn signature(mut self, signed: impl Into<String>) -> Self {
        match self.parts.last_mut() {
            Some(Part::Reasoning { signature, .. } | Part::ToolCall { signature, .. }) => {
                *signature = Some(signed.into());
            }
            _ => panic!("`signature` belongs right after `reasoning` or `tool_call`"),
        }
        self
    }

    /// Adds a block of encrypted thinking; chat completions leave it out.
    pub fn redacted_reasoning(self, data: impl Into<String>) -> Self {
        self.part(Part::RedactedReasoning(data.into()))
    }

    /// Names the delta field of reasoning in the OpenAI dialect; some providers say `reasoning`.
    pub fn reasoning_field(mut self, name: &'static str) -> Self {
        self.reasoning_field = name;
        self
    }

    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Part::Text(vec![text.into()]))
    }

    /// Adds one text, streamed in exactly these fragments.
    pub fn text_fragments<T: Into<String>>(self, fragments: impl IntoIterator<Item = T>) -> Self {
        self.part(Part::Text(fragments.into_iter().map(Into::into).collect()))
    }

    /// Adds a tool call; several in one turn are parallel calls.
    pub fn tool_call(self, id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        self.tool_call_raw_args(id, name, args.to_string())
    }

    /// Adds a tool call whose arguments need not be JSON.
    pub fn tool_call_raw_args(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        args: impl Into<String>,
    ) -> Self {
        self.part(Part::ToolCall { id: id.into(), name: name.into(), args: args.into(), signature: None })
    }

    /// Token counts: the whole prompt, cached part included, and the answer.
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        let counts = self.counts();
        (counts.input, counts.output) = (input, output);
        self
    }

    /// How many of the prompt's tokens came from the cache.
    pub fn cached(mut self, tokens: u64) -> Self {
        self.counts().cached = tokens;
        self
    }

    /// How many of the prompt's tokens were written to the cache; only Anthropic counts them.
    pub fn cache_written(mut self, tokens: u64) -> Self {
        self.counts().cache_written = tokens;
        self
    }

    /// How many of the answer's tokens were reasoning; only the OpenAI dialects and Gemini count them.
    pub fn reasoning_tokens(mut self, tokens: u64) -> Self {
        self.counts().reasoning = tokens;
        self
    }

    /// Leaves the token counts out, as careless providers do.
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// Why the model stopped, in any dialect's word; unknown words are sent as they are.
    ///
    /// Without it, a turn with tool calls stops for them and any other simply ends.
    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// Streams texts, reasoning and arguments in fragments of that many characters.
    pub fn chunk_chars(mut self, chars: usize) -> Self {
        assert!(chars > 0, "a fragment has at least one character");
        self.chunk_chars = Some(chars);
        self
    }

    /// Sends the body in HTTP chunks of that many bytes, across events and even characters.
    pub fn wire_bytes(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "a chunk has at least one byte");
        self.wire_bytes = Some(bytes);
        self
    }

    /// Waits before the response headers.
    pub fn delay(mut self, pause: Duration) -> Self {
        self.pace.before_headers = pause;
        self
    }

    /// Waits before every event.
    pub fn event_delay(mut self, pause: Duration) -> Self {
        self.pace.between_events = pause;
        self
    }

    /// Drops the connection after that many events, so that the body never ends properly.
    pub fn cut_after(mut self, events: usize) -> Self {
        self.end = End::CutAfter(events);
        self
    }

    /// Falls silent after that many events, until the client disconnects.
    pub fn hang_after(mut self, events: usize) -> Self {
        self.end = End::HangAfter(events);
        self
    }

    /// Stops in the middle of the last part, in any dialect, and sends these bytes instead of the rest.
    ///
    /// The body then ends properly; `cut_after(usize::MAX)` and `hang_after(usize::MAX)` change that.
    pub fn break_with(mut self, bytes: impl Into<Bytes>) -> Self {
        self.breaks = Some(bytes.into());
        self
    }

    /// Says the last two events of the stream twice, as servers behind careless proxies do.
    pub fn end_twice(mut self) -> Self {
        self.ends_twice = true;
        self
    }

    /// The same turn with half of its last part, whose events part from this one's where that half ends.
    pub(crate) fn halved(&self) -> Self {
        let half = |text: &str| text.chars().take(text.chars().count() / 2).collect::<String>();
        let mut turn = self.clone();
        match turn.parts.last_mut() {
            Some(Part::Text(fragments)) => *fragments = vec![half(&fragments.concat())],
            Some(Part::Reasoning { text, .. }) => *text = half(text),
            Some(Part::ToolCall { args, .. }) => *args = half(args),
            Some(Part::RedactedReasoning(_)) | None => {}
        }
        turn
    }

    /// Ends the stream properly but without OpenAI's `[DONE]` or Anthropic's `message_stop`; Responses has neither.
    pub fn without_done(mut self) -> Self {
        self.done_marker = false;
        self
    }

    /// Ends the stream with an error event instead of a stop reason.
    pub fn stream_error(mut self, kind: impl Into<String>, message: impl Into<String>) -> Self {
        self.stream_error = Some((kind.into(), message.into()));
        self
    }

    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The message of an error body in the dialect's shape.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Answers with this JSON as it stands.
    pub fn body(mut self, json: Value) -> Self {
        self.payload = Some(Payload::Json(json));
        self
    }

    /// Answers with this text as it stands, as a proxy does with its HTML.
    pub fn body_text(mut self, text: impl Into<String>) -> Self {
        self.payload = Some(Payload::Text(text.into()));
        self
    }

    /// `text` in the fragments this turn streams it in; an empty text is still one fragment.
    pub(crate) fn fragments(&self, text: &str) -> Vec<String> {
        let Some(size) = self.chunk_chars else { return vec![text.to_owned()] };
        let chars: Vec<char> = text.chars().collect();
        if chars.is_empty() {
            return vec![String::new()];
        }
        chars.chunks(size).map(|fragment| fragment.iter().collect()).collect()
    }

    pub(crate) fn has_tool_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::ToolCall { .. }))
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    fn counts(&mut self) -> &mut Usage {
        self.usage.as_mut().expect("token counts were left out with `without_usage`")
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self::new()
    }
}
