//! The frame of a request that every dialect fills in its own words, and what of it is kept for the next one.
//!
//! Invariant: a message is encoded once per client, a tool and a system prompt once for all clients of a dialect, and the
//! same conversation always gives the same bytes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hart_kernel::{ChatRequest, MessageList, ToolSpec};
use hart_types::{Body, Message};
use serde_json::{Map, Value};

use crate::continued::{Conversations, append_items};
use crate::encoded::{Encodings, Size, write_joined, write_json};

/// What has been encoded before.
#[derive(Debug)]
pub(crate) struct Encoder<E> {
    pub(crate) conversations: Conversations,
    pub(crate) messages: Encodings<Message, E>,
    standing: Arc<Standing>,
    /// The next body is likely a little longer than this.
    last_length: Option<usize>,
}

/// What agents send with every request, in the words of one dialect: many agents have the same tools and the same prompt.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    tools: Mutex<Encodings<ToolSpec, Bytes>>,
    system: Mutex<Encodings<str, Bytes>>,
    /// How long the last body was that began a conversation.
    first_length: AtomicUsize,
}

/// A conversation may be long when it gets here; most are not.
const LONG: usize = 256 * 1024;

impl Standing {
    fn first_length(&self) -> usize {
        self.first_length.load(Ordering::Relaxed).min(LONG)
    }

    fn tool(&self, tool: &Arc<ToolSpec>, encode: fn(&ToolSpec) -> Bytes) -> Bytes {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).of(tool, encode)
    }

    fn system(&self, text: &Arc<str>, encode: fn(&str) -> Bytes) -> Bytes {
        self.system.lock().unwrap_or_else(PoisonError::into_inner).of(text, encode)
    }
}

impl<E> Encoder<E> {
    pub(crate) fn new(standing: Arc<Standing>) -> Self {
        Self {
            conversations: Conversations::default(),
            messages: Encodings::default(),
            standing,
            last_length: None,
        }
    }

    /// The start of a body, with room for the rest.
    pub(crate) fn open(&self) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(self.last_length.unwrap_or_else(|| self.standing.first_length()) + 4096);
        out.push(b'{');
        out
    }

    /// [`open`](Self::open), and the model's name: the user's own parameter goes before the configured one.
    pub(crate) fn open_for(&self, model: &str, parameters: &mut Map<String, Value>) -> Vec<u8> {
        let mut out = self.open();
        let model = parameters.shift_remove("model").unwrap_or_else(|| model.into());
        out.extend_from_slice(b"\"model\":");
        write_json(&mut out, &model);
        out
    }

    /// The parameters, and the end.
    pub(crate) fn close(&mut self, mut out: Vec<u8>, parameters: &Map<String, Value>) -> Vec<u8> {
        for (key, value) in parameters {
            out.push(b',');
            write_json(&mut out, key);
            out.push(b':');
            write_json(&mut out, value);
        }
        out.push(b'}');
        if self.last_length.replace(out.len()).is_none() {
            self.standing.first_length.store(out.len(), Ordering::Relaxed);
        }
        out
    }

    /// The tools, then those that the user wrote into the configuration.
    pub(crate) fn tools<'a>(
        &mut self,
        offered: impl IntoIterator<Item = &'a Arc<ToolSpec>>,
        configured: Option<&Value>,
        encode: fn(&ToolSpec) -> Bytes,
    ) -> Vec<Bytes> {
        let mut tools: Vec<Bytes> =
            offered.into_iter().map(|tool| self.standing.tool(tool, encode)).collect();
        if let Some(Value::Array(more)) = configured {
            tools.extend(more.iter().map(|tool| Bytes::from(tool.to_string())));
        }
        tools
    }

    /// The system prompt and the system messages at the start as one text: some servers accept no second.
    pub(crate) fn one_system(&mut self, request: &ChatRequest, encode: fn(&str) -> Bytes) -> Bytes {
        let leading = leading(&request.messages);
        if leading == 0 {
            return request
                .system
                .as_ref()
                .map(|text| self.standing.system(text, encode))
                .unwrap_or_default();
        }
        let more = request.messages.iter().take(leading).map(|message| message.text());
        let texts = request.system.iter().map(|text| text.to_string()).chain(more);
        encode(&texts.collect::<Vec<_>>().join("\n\n"))
    }

    /// The system prompt and the system messages at the start, each on its own; the empty ones left out.
    pub(crate) fn each_system(&mut self, request: &ChatRequest, encode: fn(&str) -> Bytes) -> Vec<Bytes> {
        let leading = leading(&request.messages);
        let first = request.system.iter().map(|text| self.standing.system(text, encode));
        let more = request.messages.iter().take(leading).map(|message| encode(&message.text()));
        first.chain(more).filter(|block| !block.is_empty()).collect()
    }
}

impl<E: AsRef<[u8]> + Clone + Size> Encoder<E> {
    /// Writes the messages one by one, taking over what the last request of this conversation already said.
    pub(crate) fn write_each(
        &mut self,
        out: &mut Vec<u8>,
        is_first: bool,
        messages: &MessageList,
        encode: impl Fn(&Message) -> E,
    ) {
        let mut said = self.conversations.take(messages);
        let next = said.next().max(leading(messages));
        for (index, message) in (next..).zip(messages.iter_from(next)) {
            said.mark(index);
            let encoded = self.messages.of(message, &encode);
            if !encoded.as_ref().is_empty() {
                said.push(encoded.as_ref());
            }
        }
        append_items(out, is_first, said.bytes());
        self.conversations.keep(said);
    }
}

/// How many messages at the start are instructions: they have a place of their own, or are joined.
pub(crate) fn leading(messages: &MessageList) -> usize {
    messages.iter().take_while(|message| matches!(message.body, Body::System)).count()
}

/// Appends `,"key":[…]`, unless there is nothing in it.
pub(crate) fn write_list(out: &mut Vec<u8>, key: &str, items: &[Bytes]) {
    if items.is_empty() {
        return;
    }
    out.push(b',');
    write_json(out, key);
    out.extend_from_slice(b":[");
    write_joined(out, items);
    out.push(b']');
}
