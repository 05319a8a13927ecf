//! The journal port: what was begun that must not happen twice.
//!
//! Invariant: an effect's intent is safe before it happens, and its outcome before anything builds on it. The key is of
//! what is done, not of where in the run: neither a shifted step nor a compacted conversation changes it.

use async_trait::async_trait;
use hart_types::{RunId, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::CheckpointError;

/// What happens when a tool is called a second time with the same arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing in the world changes: it only looks, or only changes the thread's state.
    Pure,
    /// The world is the same after one call and after two.
    Idempotent,
    /// It may happen twice, which nobody wants.
    #[default]
    Once,
}

impl Effect {
    /// Of a tool that others wrote, by what its server says of it (MCP: `readOnlyHint`, `idempotentHint`; both are
    /// false where nothing is said). Only for servers that the operator trusts: one that lies has its effects repeated.
    pub const fn hinted(is_read_only: bool, is_idempotent: bool) -> Self {
        match (is_read_only, is_idempotent) {
            (true, _) => Self::Pure,
            (false, true) => Self::Idempotent,
            (false, false) => Self::Once,
        }
    }
}

/// The effects of one run.
#[async_trait]
pub trait Journal: Send + Sync {
    /// What earlier attempts of the run have begun.
    async fn recall(&self) -> Result<Vec<Begun>, CheckpointError>;

    /// Returns once the intent would survive a crash.
    async fn begin(&self, begun: Begun) -> Result<(), CheckpointError>;

    async fn finish(&self, key: &EffectKey, outcome: Value) -> Result<(), CheckpointError>;

    /// It did not happen after all.
    async fn withdraw(&self, key: &EffectKey) -> Result<(), CheckpointError>;
}

/// An effect that was about to happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    pub key: EffectKey,
    pub tool: String,
    pub call: ToolCallId,
    /// What the tool noted down to find out later whether it happened.
    pub foreseen: Option<Value>,
    /// None while nobody knows what came of it.
    pub outcome: Option<Value>,
}

/// Names one logical effect, also to services that keep such keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EffectKey(String);

impl EffectKey {
    pub fn new(run: &RunId, call: &ToolCallId, tool: &str, args: &Map<String, Value>) -> Self {
        let mut hash = Sha256::new();
        for part in [run.as_str(), call.as_str(), tool] {
            // The length first, so that two parts cannot pass for one.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut text = String::new();
        canonical(&mut text, &Value::Object(args.clone()));
        hash.update(text);
        Self(hash.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for EffectKey {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// The order of an object's keys means nothing.
fn canonical(out: &mut String, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for key in keys {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(out, map.get(key).unwrap_or(&Value::Null));
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(out, item);
                out.push(',');
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(run: &str, call: &str, tool: &str, args: &str) -> EffectKey {
        EffectKey::new(&run.into(), &call.into(), tool, &serde_json::from_str(args).unwrap())
    }

    #[test]
    fn a_key_is_of_what_is_done() {
        let one = key("r", "c", "t", r#"{"a": [1, {"x": 1, "y": 2}], "b": "2"}"#);
        assert_eq!(one, key("r", "c", "t", r#"{"b": "2", "a": [1, {"y": 2, "x": 1}]}"#));
        let others = [
            key("r2", "c", "t", r#"{"a": [1, {"x": 1, "y": 2}], "b": "2"}"#),
            key("r", "c2", "t", r#"{"a": [1, {"x": 1, "y": 2}], "b": "2"}"#),
            key("r", "c", "t2", r#"{"a": [1, {"x": 1, "y": 2}], "b": "2"}"#),
            key("r", "c", "t", r#"{"a": [{"x": 1, "y": 2}, 1], "b": "2"}"#),
            key("r", "c", "t", r#"{"a": [1, {"x": 1, "y": 2}], "b": 2}"#),
            key("rc", "", "t", r#"{"a": [1, {"x": 1, "y": 2}], "b": "2"}"#),
        ];
        assert!(others.iter().all(|other| *other != one), "{others:?}");
        assert_eq!(json!(Effect::default()), "once");
    }

    #[test]
    fn a_tool_of_which_nothing_is_said_is_called_once() {
        let hinted = [(false, false), (false, true), (true, false), (true, true)]
            .map(|(is_read_only, is_idempotent)| Effect::hinted(is_read_only, is_idempotent));
        assert_eq!(hinted, [Effect::Once, Effect::Idempotent, Effect::Pure, Effect::Pure]);
        assert_eq!(Effect::hinted(false, false), Effect::default());
    }
}
