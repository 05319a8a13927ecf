//! A message being written, told block by block as LangGraph's event protocol does.
//!
//! Invariant: every block that is started is finished, in order, before its message is.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Task;

/// What has been told of a message so far.
#[derive(Debug)]
pub(super) struct Spoken {
    pub(super) id: String,
    blocks: Vec<Block>,
    open: bool,
    usage: Option<Value>,
    metadata: Map<String, Value>,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Reasoning(String),
    Call { index: u64, id: Value, name: Value, args: String },
}

/// A fragment, as it is logged.
#[derive(Debug, Deserialize)]
pub(super) struct Fragment {
    pub(super) id: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    additional_kwargs: Map<String, Value>,
    #[serde(default)]
    response_metadata: Map<String, Value>,
    usage_metadata: Option<Value>,
    #[serde(default)]
    tool_call_chunks: Vec<CallFragment>,
}

#[derive(Debug, Deserialize)]
struct CallFragment {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    args: Option<String>,
}

impl Spoken {
    pub(super) fn start(fragment: &Fragment, task: &Task, say: &mut impl FnMut(Value)) -> Self {
        let id = fragment.id.clone().unwrap_or_default();
        let mut start = json!({"event": "message-start", "role": "ai", "id": id});
        if let Some(model) = &task.model {
            set(&mut start, "metadata", json!({ "provider": model.provider }));
        }
        say(start);
        Self { id, blocks: Vec::new(), open: false, usage: None, metadata: Map::new() }
    }

    pub(super) fn add(&mut self, fragment: Fragment, say: &mut impl FnMut(Value)) {
        if let Some(Value::String(reasoning)) = fragment.additional_kwargs.get("reasoning_content") {
            self.reason(reasoning, say);
        }
        match &fragment.content {
            Value::String(text) => self.speak(text, say),
            Value::Array(parts) => {
                for part in parts {
                    let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
                    self.reason(text("thinking"), say);
                    self.reason(text("reasoning"), say);
                    self.speak(text("text"), say);
                }
            }
            _ => {}
        }
        for call in fragment.tool_call_chunks {
            self.call(call, say);
        }
        self.metadata.extend(fragment.response_metadata);
        self.usage = fragment.usage_metadata.or_else(|| self.usage.take());
    }

    /// `whole` is the finished message, which knows more than its fragments.
    pub(super) fn finish(mut self, whole: Option<&Value>, say: &mut impl FnMut(Value)) {
        self.close(say);
        let usage = whole.and_then(|whole| whole.get("usage_metadata")).filter(|usage| usage.is_object());
        let mut end = json!({"event": "message-finish"});
        if let Some(usage) = usage.or(self.usage.as_ref()) {
            let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
            let counts = json!({
                "input_tokens": count("input_tokens"), "output_tokens": count("output_tokens"),
                "total_tokens": count("total_tokens"),
            });
            set(&mut end, "usage", counts);
        }
        let known = whole.and_then(|whole| whole.get("response_metadata")).and_then(Value::as_object);
        self.metadata.extend(known.cloned().unwrap_or_default());
        set(&mut end, "metadata", self.metadata.into());
        say(end);
    }

    /// It will never be whole.
    pub(super) fn cut_off(mut self, why: Option<&str>, say: &mut impl FnMut(Value)) {
        match why {
            Some(why) => say(json!({"event": "error", "message": why})),
            None => {
                self.metadata.insert("finish_reason".to_owned(), json!("cut_off"));
                self.finish(None, say);
            }
        }
    }

    fn speak(&mut self, text: &str, say: &mut impl FnMut(Value)) {
        if text.is_empty() {
            return;
        }
        if !matches!((self.open, self.blocks.last()), (true, Some(Block::Text(_)))) {
            self.begin(Block::Text(String::new()), json!({"type": "text", "text": ""}), say);
        }
        if let Some(Block::Text(all)) = self.blocks.last_mut() {
            all.push_str(text);
        }
        self.delta(json!({"type": "text-delta", "text": text}), say);
    }

    fn reason(&mut self, text: &str, say: &mut impl FnMut(Value)) {
        if text.is_empty() {
            return;
        }
        if !matches!((self.open, self.blocks.last()), (true, Some(Block::Reasoning(_)))) {
            let start = json!({"type": "reasoning", "reasoning": ""});
            self.begin(Block::Reasoning(String::new()), start, say);
        }
        if let Some(Block::Reasoning(all)) = self.blocks.last_mut() {
            all.push_str(text);
        }
        self.delta(json!({"type": "reasoning-delta", "reasoning": text}), say);
    }

    fn call(&mut self, call: CallFragment, say: &mut impl FnMut(Value)) {
        let index = call.index.unwrap_or(0);
        let same = matches!(self.blocks.last(), Some(Block::Call { index: last, .. }) if *last == index);
        if !(self.open && same) {
            let at = self.blocks.len();
            let start = json!({
                "type": "tool_call_chunk", "id": call.id, "name": call.name, "args": "", "index": at,
            });
            let (id, name) = (call.id.into(), call.name.into());
            self.begin(Block::Call { index, id, name, args: String::new() }, start, say);
        }
        let Some(Block::Call { args, .. }) = self.blocks.last_mut() else { return };
        let more = call.args.unwrap_or_default();
        if more.is_empty() {
            return;
        }
        args.push_str(&more);
        // All of them so far: clients replace what they had.
        let fields = json!({"type": "tool_call_chunk", "args": args});
        self.delta(json!({"type": "block-delta", "fields": fields}), say);
    }

    fn begin(&mut self, block: Block, content: Value, say: &mut impl FnMut(Value)) {
        self.close(say);
        say(json!({"event": "content-block-start", "index": self.blocks.len(), "content": content}));
        self.blocks.push(block);
        self.open = true;
    }

    fn delta(&self, delta: Value, say: &mut impl FnMut(Value)) {
        let index = self.blocks.len().saturating_sub(1);
        say(json!({"event": "content-block-delta", "index": index, "delta": delta}));
    }

    fn close(&mut self, say: &mut impl FnMut(Value)) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let content = match self.blocks.last_mut() {
            None => return,
            Some(Block::Text(text)) => json!({"type": "text", "text": std::mem::take(text)}),
            Some(Block::Reasoning(text)) => json!({"type": "reasoning", "reasoning": std::mem::take(text)}),
            Some(Block::Call { id, name, args, .. }) => called(id, name, &std::mem::take(args)),
        };
        let index = self.blocks.len() - 1;
        say(json!({"event": "content-block-finish", "index": index, "content": content}));
    }
}

/// A message that was not streamed, all at once. A tool's has its text where an answer has deltas.
pub(super) fn whole(message: &Value, say: &mut impl FnMut(Value)) {
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
    let mut start = json!({"event": "message-start", "role": kind, "id": message.get("id")});
    if let Some(call) = message.get("tool_call_id") {
        set(&mut start, "tool_call_id", call.clone());
    }
    say(start);
    let blocks = super::in_blocks(message.clone());
    let content = blocks.get("content").cloned().unwrap_or_default();
    let content = match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks,
        _ => Vec::new(),
    };
    for (index, block) in content.iter().enumerate() {
        let is_text = block.get("type").and_then(Value::as_str) == Some("text");
        let empty = if is_text { json!({"type": "text", "text": ""}) } else { block.clone() };
        say(json!({"event": "content-block-start", "index": index, "content": empty}));
        if is_text {
            let text = block.get("text").cloned().unwrap_or_default();
            match kind {
                "tool" => say(json!({
                    "event": "content-block-delta", "index": index, "content": {"type": "text", "text": text},
                })),
                _ => say(json!({
                    "event": "content-block-delta", "index": index, "delta": {"type": "text-delta", "text": text},
                })),
            }
        }
        say(json!({"event": "content-block-finish", "index": index, "content": block}));
    }
    say(json!({"event": "message-finish", "metadata": {}}));
}

fn called(id: &Value, name: &Value, args: &str) -> Value {
    let text = if args.is_empty() { "{}" } else { args };
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(args) => json!({"type": "tool_call", "id": id, "name": name, "args": args}),
        Err(error) => json!({
            "type": "invalid_tool_call", "id": id, "name": name, "args": args, "error": error.to_string(),
        }),
    }
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}
