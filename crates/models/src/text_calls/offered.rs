//! The tools of a request, as a model may have written their names and arguments.
//!
//! Invariant: a call names a tool that was offered; everything else is text.

use std::sync::Arc;

use hart_kernel::ToolSpec;
use serde_json::{Map, Value};

use crate::tool_args::read_tool_arguments;

/// Namespaces that templates put before a name.
const NAMESPACES: [&str; 4] = ["functions.", "function.", "tools.", "default_api."];
const NAME_KEYS: [&str; 4] = ["name", "tool_name", "tool", "function"];
const ARGUMENT_KEYS: [&str; 6] = ["arguments", "parameters", "args", "input", "tool_input", "kwargs"];
const OTHER_KEYS: [&str; 4] = ["id", "type", "index", "tool_call_id"];

#[derive(Clone, Debug)]
pub(super) struct Offered {
    specs: Arc<[Arc<ToolSpec>]>,
}

/// What was found where a call should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    Call {
        name: String,
        args: Map<String, Value>,
        repaired: bool,
    },
    /// A call by all signs, with arguments nobody can read.
    Broken {
        name: String,
        args: String,
        error: String,
    },
}

impl Offered {
    pub(super) fn new(specs: Arc<[Arc<ToolSpec>]>) -> Self {
        Self { specs }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    pub(super) fn find(&self, written: &str) -> Option<&ToolSpec> {
        let written = written.trim();
        let bare = NAMESPACES.iter().find_map(|space| written.strip_prefix(space)).unwrap_or(written);
        let exact = |name: &str| self.specs.iter().find(|spec| spec.name == name);
        let spec = exact(written).or_else(|| exact(bare)).or_else(|| {
            let mut similar = self.specs.iter().filter(|spec| spec.name.eq_ignore_ascii_case(bare));
            // Two that differ in case only: nobody knows which was meant.
            similar.next().filter(|_| similar.next().is_none())
        });
        spec.map(|spec| &**spec)
    }

    /// Whether `written` may become the name of a tool.
    pub(super) fn could_become(&self, written: &str) -> bool {
        let written = written.trim();
        let begins = |whole: &str, part: &str| {
            whole.get(..part.len()).is_some_and(|start| start.eq_ignore_ascii_case(part))
        };
        let name = |part: &str| self.specs.iter().any(|spec| begins(&spec.name, part));
        name(written)
            || NAMESPACES
                .iter()
                .any(|space| begins(space, written) || written.strip_prefix(space).is_some_and(name))
    }

    /// A call whose name stood apart from its arguments.
    pub(super) fn named(&self, name: &str, args: &str, cut: bool) -> Option<Found> {
        let spec = self.find(name)?;
        let found = match read_tool_arguments(args, cut) {
            Ok((args, repaired)) => Found::Call { name: spec.name.clone(), args, repaired },
            Err(error) => Found::Broken { name: spec.name.clone(), args: args.to_owned(), error },
        };
        Some(found.checked(spec))
    }

    /// The calls that a JSON value describes: one, a list of them, or OpenAI's envelope. `strict` takes nothing that
    /// could be something else.
    pub(super) fn described(&self, value: &Value, strict: bool, repaired: bool) -> Option<Vec<Found>> {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            Value::Object(map) => match map.get("tool_calls") {
                Some(Value::Array(items)) if !strict || map.len() == 1 => items.as_slice(),
                _ => std::slice::from_ref(value),
            },
            _ => return None,
        };
        let mut found = Vec::new();
        let mut known = false;
        for item in items {
            let map = item.as_object()?;
            match self.one(map, strict, repaired) {
                Some(call) => {
                    known = true;
                    found.push(call);
                }
                None if strict => return None,
                // Next to calls of offered tools: the model is told rather than the user.
                None => found.push(Found::Broken {
                    name: name_in(inner(map)).unwrap_or_default().to_owned(),
                    args: Value::Object(map.clone()).to_string(),
                    error: "no tool of this name is offered".to_owned(),
                }),
            }
        }
        known.then_some(found)
    }

    fn one(&self, map: &Map<String, Value>, strict: bool, repaired: bool) -> Option<Found> {
        let call = inner(map);
        let spec = self.find(name_in(call)?)?;
        let name = spec.name.clone();
        let args = ARGUMENT_KEYS.iter().find_map(|key| call.get(*key));
        let found = match args {
            Some(Value::Object(args)) => Found::Call { name, args: args.clone(), repaired },
            Some(Value::String(text)) => match read_tool_arguments(text, false) {
                Ok((args, mended)) => Found::Call { name, args, repaired: repaired || mended },
                Err(error) => Found::Broken { name, args: text.clone(), error },
            },
            Some(Value::Null) => Found::Call { name, args: Map::new(), repaired },
            None if strict => return None,
            None if !repaired => Found::Call { name, args: Map::new(), repaired },
            // What was missing may have been the arguments.
            None => {
                Found::Broken { name, args: String::new(), error: "the call has no arguments".to_owned() }
            }
            Some(other) => Found::Broken {
                name,
                args: other.to_string(),
                error: "the arguments must be a JSON object".to_owned(),
            },
        };
        if strict {
            let known = |key: &String| {
                [&NAME_KEYS[..], &ARGUMENT_KEYS, &OTHER_KEYS].iter().any(|keys| keys.contains(&key.as_str()))
            };
            let plain = map.keys().all(known) && call.keys().all(known);
            let fits = matches!(&found, Found::Call { args, .. } if fits(spec, args));
            return (plain && fits).then_some(found);
        }
        Some(found.checked(spec))
    }
}

impl Found {
    /// A call that had to be mended and lacks what the tool requires was not finished.
    fn checked(self, spec: &ToolSpec) -> Self {
        match self {
            Self::Call { name, args, repaired: true } if !has_required(spec, &args) => {
                let error = "the call is incomplete: arguments that the tool requires are missing".to_owned();
                Self::Broken { name, args: Value::Object(args).to_string(), error }
            }
            other => other,
        }
    }
}

/// OpenAI puts the call under `function`.
fn inner(map: &Map<String, Value>) -> &Map<String, Value> {
    map.get("function").and_then(Value::as_object).unwrap_or(map)
}

fn name_in(call: &Map<String, Value>) -> Option<&str> {
    NAME_KEYS.iter().find_map(|key| call.get(*key)).and_then(Value::as_str)
}

/// Whether the arguments have every key the tool requires and none that it does not know.
pub(super) fn fits(spec: &ToolSpec, args: &Map<String, Value>) -> bool {
    let schema = &spec.input_schema;
    let open = matches!(schema.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_)));
    let known = match schema.get("properties").and_then(Value::as_object) {
        Some(properties) if !open => args.keys().all(|key| properties.contains_key(key)),
        _ => true,
    };
    known && has_required(spec, args)
}

pub(super) fn has_required(spec: &ToolSpec, args: &Map<String, Value>) -> bool {
    let required = spec.input_schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).all(|key| args.contains_key(key))
}

/// What is the likely tool of a call in JSON that cannot be read.
pub(super) fn name_in_fragment<'a>(offered: &'a Offered, text: &str) -> Option<&'a str> {
    let after = text.split_once("\"name\"")?.1.trim_start().strip_prefix(':')?;
    let name = after.trim_start().strip_prefix('"')?.split_once('"')?.0;
    offered.find(name).map(|spec| spec.name.as_str())
}
