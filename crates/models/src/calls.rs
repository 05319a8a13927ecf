//! The tool calls of an answer as they go back to a model.
//!
//! Invariant: every call is sent, under a name and an id that the provider takes, and its result under the same id.

use std::borrow::Cow;

use bytes::Bytes;
use hart_kernel::ToolSpec;
use hart_types::{Ai, ToolCallId};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::encoded::write_json;

/// What a provider takes as the name of a tool and as the id of a call. Another model may have made up anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spelling {
    names: Alphabet,
    ids: Alphabet,
}

#[derive(Clone, Copy, Debug)]
struct Alphabet {
    /// Beside ASCII letters and digits.
    signs: &'static str,
    longest: usize,
    shortest: usize,
    digit_first: bool,
}

impl Spelling {
    /// OpenAI's own models in chat completions.
    pub(crate) const OPENAI: Self = Self { names: STRICT, ids: Alphabet { longest: 40, ..STRICT } };
    /// Those who imitate them. Kimi's ids name the tool, `functions.bash:0`, and its template reads them.
    pub(crate) const IMITATED: Self = Self { names: STRICT, ids: SIGNED };
    pub(crate) const RESPONSES: Self = Self { names: STRICT, ids: STRICT };
    pub(crate) const ANTHROPIC: Self = Self { names: STRICT, ids: STRICT };
    pub(crate) const MISTRAL: Self =
        Self { names: STRICT, ids: Alphabet { signs: "", longest: 9, shortest: 9, ..STRICT } };
    /// Ids are any text.
    pub(crate) const GEMINI: Self = Self { names: Alphabet { digit_first: false, ..SIGNED }, ids: SIGNED };

    pub(crate) fn of_provider(provider: &str) -> Self {
        match provider {
            "openai" => Self::OPENAI,
            "mistral" => Self::MISTRAL,
            _ => Self::IMITATED,
        }
    }

    /// An id that fits; different ones stay different, so that a result still finds its call.
    pub(crate) fn id(self, id: &str) -> Cow<'_, str> {
        if self.ids.takes(id) {
            return Cow::Borrowed(id);
        }
        let digest: String = Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = digest.get(..self.ids.longest.min(9)).unwrap_or_default();
        if self.ids.signs.is_empty() {
            return digest.to_owned().into();
        }
        let words = id.chars().map(|c| self.ids.or_underscore(c)).take(self.ids.longest - digest.len() - 1);
        format!("{}_{digest}", words.collect::<String>()).into()
    }

    /// A name that fits. A nameless call would be refused each time the conversation is sent.
    pub(crate) fn name(self, name: &str) -> Cow<'_, str> {
        if self.names.takes(name) {
            return Cow::Borrowed(name);
        }
        if name.is_empty() {
            return "unknown".into();
        }
        let underscore = (!self.names.takes_first(name)).then_some('_');
        let words = name.chars().map(|c| self.names.or_underscore(c));
        underscore.into_iter().chain(words).take(self.names.longest).collect::<String>().into()
    }
}

/// What most providers take.
const STRICT: Alphabet = Alphabet { signs: "_-", longest: 64, shortest: 1, digit_first: true };
const SIGNED: Alphabet = Alphabet { signs: "_-.:", ..STRICT };

impl Alphabet {
    fn takes(self, text: &str) -> bool {
        (self.shortest..=self.longest).contains(&text.len())
            && self.takes_first(text)
            && text.chars().all(|c| self.or_underscore(c) == c)
    }

    fn takes_first(self, text: &str) -> bool {
        self.digit_first || text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    fn or_underscore(self, c: char) -> char {
        if c.is_ascii_alphanumeric() || self.signs.contains(c) { c } else { '_' }
    }
}

/// A call, valid or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    id: Option<&'a str>,
    name: &'a str,
    /// `None`: the model wrote something else. What was wrong stands in the result that answers it.
    pub(crate) args: Option<&'a Map<String, Value>>,
    /// What the provider said beside it.
    pub(crate) extra: Option<&'a Map<String, Value>>,
    position: usize,
}

/// All calls of an answer, in their order.
pub(crate) fn of(ai: &Ai) -> impl Iterator<Item = Call<'_>> {
    let valid = ai.tool_calls.iter().map(|call| Call {
        id: call.id.as_ref().map(ToolCallId::as_str),
        name: &call.name,
        args: Some(&call.args),
        extra: Some(&call.extra),
        position: 0,
    });
    let invalid = ai.invalid_tool_calls.iter().map(|call| Call {
        id: call.id.as_ref().map(ToolCallId::as_str),
        name: call.name.as_deref().unwrap_or_default(),
        args: None,
        extra: None,
        position: 0,
    });
    valid.chain(invalid).enumerate().map(|(position, call)| Call { position, ..call })
}

impl<'a> Call<'a> {
    /// The id as the model gave it.
    pub(crate) fn given_id(&self) -> Option<&'a str> {
        self.id
    }

    pub(crate) fn id(&self, spelling: Spelling) -> Cow<'a, str> {
        match self.id {
            Some(id) => spelling.id(id),
            // Nothing can answer it.
            None => spelling.id(&format!("call_{}", self.position)).into_owned().into(),
        }
    }

    pub(crate) fn name(&self, spelling: Spelling) -> Cow<'a, str> {
        spelling.name(self.name)
    }

    /// The arguments as an object.
    pub(crate) fn object(&self) -> Arguments<'a> {
        Arguments(self.args)
    }

    /// The arguments as the text of an object.
    pub(crate) fn text(&self) -> ArgumentsText<'a> {
        ArgumentsText(self.args)
    }
}

/// Arguments, `{}` for those of an invalid call: servers parse them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a>(Option<&'a Map<String, Value>>);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(map) => map.serialize(serializer),
            None => Map::new().serialize(serializer),
        }
    }
}

/// [`Arguments`] in a string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentsText<'a>(Option<&'a Map<String, Value>>);

impl Serialize for ArgumentsText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.map(serde_json::to_string) {
            Some(Ok(text)) => serializer.serialize_str(&text),
            Some(Err(_)) | None => serializer.serialize_str("{}"),
        }
    }
}

/// A tool as chat completions have it, and Ollama after them.
pub(crate) fn encode_function(tool: &ToolSpec) -> Bytes {
    #[derive(Serialize)]
    struct Tool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
    }
    let ToolSpec { name, description, input_schema: parameters, .. } = tool;
    let mut out = Vec::new();
    write_json(&mut out, &Tool { r#type: "function", function: Function { name, description, parameters } });
    out.into()
}
