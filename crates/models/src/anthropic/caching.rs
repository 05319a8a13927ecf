//! Marks how far a request is the same as the last one, so that the provider reads that part from its cache.
//!
//! Invariant: a mark is put into the bytes that go out, never into those that are kept: the next request has its marks
//! elsewhere and everything else the same. There are at most as many as the API takes.

use serde_json::Value;

/// The API refuses more.
const MOST: usize = 4;
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// The marks that one request may still have. They are set after the tools, after the system prompt, and after the
/// last two things the user or the tools said: the provider looks back only twenty blocks from a mark for what it
/// knows, and one turn may be longer than that.
#[derive(Debug)]
pub(super) struct Marks {
    left: usize,
}

impl Marks {
    pub(super) fn new(enabled: bool) -> Self {
        Self { left: if enabled { MOST } else { 0 } }
    }

    /// Marks the block that `out` ends with.
    pub(super) fn set(&mut self, out: &mut Vec<u8>) {
        if self.left > 0 && out.pop_if(|last| *last == b'}').is_some() {
            out.extend_from_slice(MARK);
            out.push(b'}');
            self.left -= 1;
        }
    }

    /// Tools that the user wrote into the configuration may be marked already.
    pub(super) fn set_after_tools(&mut self, out: &mut Vec<u8>, more: Option<&Value>) {
        let own = more.and_then(Value::as_array).into_iter().flatten();
        match own.filter(|tool| tool.get("cache_control").is_some()).count() {
            0 => self.set(out),
            own => self.left = self.left.saturating_sub(own),
        }
    }

    /// Appends whole messages, the last of them marked at its last block.
    pub(super) fn set_within(&mut self, out: &mut Vec<u8>, messages: &[u8], rest: &[u8]) {
        match messages.strip_suffix(b"]}") {
            Some(open) => {
                out.extend_from_slice(open);
                self.set(out);
                out.extend_from_slice(b"]}");
            }
            None => out.extend_from_slice(messages),
        }
        out.extend_from_slice(rest);
    }
}

/// Takes out marks that came with the messages: those of this request are chosen here.
pub(super) fn unmarked(block: &mut Value) {
    let Some(map) = block.as_object_mut() else { return };
    map.shift_remove("cache_control");
    if let Some(Value::Array(inner)) = map.get_mut("content") {
        inner.iter_mut().filter_map(Value::as_object_mut).for_each(|map| {
            map.shift_remove("cache_control");
        });
    }
}
