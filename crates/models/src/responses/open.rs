//! An item of a response while it is being streamed.
//!
//! Invariant: what was streamed is kept until the item's last event, which says all of it again, takes its place.

use serde_json::{Map, Value, json};

/// An item that is being filled.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) index: u64,
    pub(super) map: Map<String, Value>,
    parts: Vec<Part>,
    pub(super) arguments: String,
    /// Its place among the tool calls.
    pub(super) call: Option<usize>,
    pub(super) done: bool,
}

/// A text that grows.
#[derive(Debug)]
struct Part {
    kind: Kind,
    index: u64,
    text: String,
    annotations: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Refusal,
    Summary,
    Thought,
}

impl Open {
    pub(super) fn new(index: u64, map: Map<String, Value>) -> Self {
        Self { index, map, parts: Vec::new(), arguments: String::new(), call: None, done: false }
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        self.map.get("type").is_some_and(|have| have == kind)
    }

    /// Extends a text; true when it was empty before.
    pub(super) fn grow(&mut self, kind: Kind, index: u64, text: &str) -> bool {
        if let Some(part) = self.parts.iter_mut().rfind(|part| part.kind == kind && part.index == index) {
            let was_empty = part.text.is_empty();
            part.text.push_str(text);
            return was_empty;
        }
        self.parts.push(Part { kind, index, text: text.to_owned(), annotations: Vec::new() });
        true
    }

    pub(super) fn annotate(&mut self, index: u64, note: Value) {
        let part = self.parts.iter_mut().rfind(|part| part.kind == Kind::Text && part.index == index);
        if let Some(part) = part {
            part.annotations.push(note);
        }
    }

    /// The rest of each text of `item` that was not streamed; without a kind, the rest of the arguments.
    pub(super) fn untold(&self, item: &Map<String, Value>) -> Vec<(Option<Kind>, u64, String)> {
        let mut rest = Vec::new();
        for (list, name, kind) in [
            ("content", "output_text", Kind::Text),
            ("content", "refusal", Kind::Refusal),
            ("summary", "summary_text", Kind::Summary),
            ("content", "reasoning_text", Kind::Thought),
        ] {
            let parts = item.get(list).and_then(Value::as_array).into_iter().flatten();
            for (index, part) in (0..).zip(parts).filter(|(_, part)| is(part, name)) {
                let whole = part.get(if kind == Kind::Refusal { "refusal" } else { "text" });
                let told = self.parts.iter().rfind(|part| part.kind == kind && part.index == index);
                let told = told.map(|part| part.text.as_str()).unwrap_or_default();
                match whole.and_then(Value::as_str).and_then(|whole| whole.strip_prefix(told)) {
                    Some(more) if !more.is_empty() => rest.push((Some(kind), index, more.to_owned())),
                    _ => {}
                }
            }
        }
        let whole = item.get("arguments").and_then(Value::as_str).filter(|_| self.call.is_some());
        if let Some(more) = whole.and_then(|whole| whole.strip_prefix(self.arguments.as_str())) {
            rest.push((None, 0, more.to_owned()));
        }
        rest
    }

    pub(super) fn close(&mut self, mut item: Map<String, Value>) {
        // What only the opening told still holds.
        for key in ["call_id", "name", "id"] {
            let told = item.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            if let (false, Some(first)) = (told, self.map.get(key)) {
                item.insert(key.to_owned(), first.clone());
            }
        }
        if self.call.is_some() && !item.get("arguments").is_some_and(Value::is_string) {
            item.insert("arguments".to_owned(), std::mem::take(&mut self.arguments).into());
        }
        if let Some(Value::Array(content)) = item.get_mut("content") {
            for part in &mut self.parts {
                let place = usize::try_from(part.index).ok().and_then(|index| content.get_mut(index));
                if let Some(Value::Object(place)) = place
                    && !part.annotations.is_empty()
                    && place.get("annotations").and_then(Value::as_array).is_none_or(Vec::is_empty)
                {
                    place.insert("annotations".to_owned(), std::mem::take(&mut part.annotations).into());
                }
            }
        }
        self.map = item;
        self.parts.clear();
        self.done = true;
    }

    /// The item; one that broke off holds what had come.
    pub(super) fn into_item(mut self) -> Map<String, Value> {
        if self.done {
            return self.map;
        }
        let (mut content, mut summary) = (Vec::new(), Vec::new());
        for part in self.parts {
            match part.kind {
                Kind::Text => content
                    .push(json!({"type": "output_text", "text": part.text, "annotations": part.annotations})),
                Kind::Refusal => content.push(json!({"type": "refusal", "refusal": part.text})),
                Kind::Summary => summary.push(json!({"type": "summary_text", "text": part.text})),
                Kind::Thought => content.push(json!({"type": "reasoning_text", "text": part.text})),
            }
        }
        for (key, parts) in [("content", content), ("summary", summary)] {
            if !parts.is_empty() {
                self.map.insert(key.to_owned(), parts.into());
            }
        }
        if self.call.is_some() {
            self.map.insert("arguments".to_owned(), self.arguments.into());
        }
        self.map
    }
}

fn is(part: &Value, kind: &str) -> bool {
    part.get("type").is_some_and(|have| have == kind)
}
