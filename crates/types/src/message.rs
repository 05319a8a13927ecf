//! A message, spelled as LangChain spells it on the wire.
//!
//! Invariant: `decode → encode` is the identity. Unknown fields survive, a known field of an unexpected shape is kept
//! as it came, and a field that was absent stays absent until somebody sets it.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{
    Block, BlockView, Content, InvalidToolCall, MessageId, ToolCall, ToolCallChunk, ToolCallId, UsageMetadata,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub body: Body,
    pub content: Content,
    pub id: Option<MessageId>,
    pub name: Option<String>,
    pub additional_kwargs: Map<String, Value>,
    pub response_metadata: Map<String, Value>,
    /// Fields this version of hart does not know.
    pub extra: Map<String, Value>,
    elided: Elided,
}

/// What only one kind of message has.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Human,
    System,
    Ai(Ai),
    /// A streamed fragment of an AI message (`AIMessageChunk`).
    AiChunk(AiChunk),
    Tool(ToolResult),
    /// Deletes the message with this id from the thread; [`REMOVE_ALL`] deletes all.
    Remove,
    /// A kind from elsewhere (`function`, `chat`, …): carried, never interpreted.
    Other(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ai {
    pub tool_calls: Vec<ToolCall>,
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    pub usage: Option<UsageMetadata>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AiChunk {
    pub tool_call_chunks: Vec<ToolCallChunk>,
    pub ai: Ai,
    /// `"last"` on the closing fragment.
    pub position: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    pub tool_call_id: ToolCallId,
    pub status: ToolStatus,
    /// For the client, not for the model.
    pub artifact: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    #[default]
    Success,
    Error,
}

/// The key of `additional_kwargs` in which LangChain's clients look for what a model thought.
pub const REASONING_CONTENT: &str = "reasoning_content";

/// The id of a `remove` message that clears the thread.
pub const REMOVE_ALL: &str = "__remove_all__";

impl Message {
    pub fn new(body: Body, content: impl Into<Content>) -> Self {
        Self {
            body,
            content: content.into(),
            id: None,
            name: None,
            additional_kwargs: Map::new(),
            response_metadata: Map::new(),
            extra: Map::new(),
            elided: Elided::default(),
        }
    }

    pub fn human(content: impl Into<Content>) -> Self {
        Self::new(Body::Human, content)
    }

    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(Body::System, content)
    }

    pub fn ai(content: impl Into<Content>) -> Self {
        Self::new(Body::Ai(Ai::default()), content)
    }

    pub fn tool(call: &ToolCallId, name: &str, status: ToolStatus, content: impl Into<Content>) -> Self {
        let result = ToolResult { tool_call_id: call.clone(), status, artifact: None };
        Self { name: Some(name.to_owned()), ..Self::new(Body::Tool(result), content) }
    }

    pub fn remove(id: impl Into<MessageId>) -> Self {
        Self { id: Some(id.into()), ..Self::new(Body::Remove, "") }
    }

    /// As one that was made here: shown with all of LangChain's fields, also those its sender left out.
    #[must_use]
    pub fn completed(mut self) -> Self {
        self.elided = Elided::default();
        self
    }

    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = Some(id.into());
        self
    }

    pub fn text(&self) -> String {
        self.content.text()
    }

    /// What a model thought, wherever a message has it: in blocks, or where fragments have it.
    pub fn reasoning(&self) -> String {
        let blocks: &[Block] = match &self.content {
            Content::Blocks(blocks) => blocks,
            Content::Text(_) => &[],
        };
        let thoughts = blocks.iter().filter_map(|block| match block.view() {
            BlockView::Reasoning { text, .. } => Some(text),
            _ => None,
        });
        let thought: String = thoughts.collect();
        let told = self.additional_kwargs.get(REASONING_CONTENT).and_then(Value::as_str);
        if thought.is_empty() { told.unwrap_or_default().to_owned() } else { thought }
    }

    /// What a user wrote, without what a request may have put around it.
    pub fn original_text(&self) -> String {
        let original = self.additional_kwargs.get("original_user_content").and_then(Value::as_str);
        original.map_or_else(|| self.text(), str::to_owned)
    }

    /// The word in `type`.
    pub fn kind(&self) -> &str {
        match &self.body {
            Body::Human => "human",
            Body::System => "system",
            Body::Ai(_) => "ai",
            Body::AiChunk(_) => "AIMessageChunk",
            Body::Tool(_) => "tool",
            Body::Remove => "remove",
            Body::Other(kind) => kind,
        }
    }

    pub fn as_ai(&self) -> Option<&Ai> {
        match &self.body {
            Body::Ai(ai) => Some(ai),
            Body::AiChunk(chunk) => Some(&chunk.ai),
            _ => None,
        }
    }

    pub fn tool_calls(&self) -> &[ToolCall] {
        self.as_ai().map_or(&[], |ai| &ai.tool_calls)
    }

    pub fn as_tool_result(&self) -> Option<&ToolResult> {
        match &self.body {
            Body::Tool(result) => Some(result),
            _ => None,
        }
    }

    /// Appends to the content as a block, turning a string into its first block if need be.
    pub fn push_block(&mut self, block: Block) {
        let mut blocks = self.content.to_blocks();
        blocks.push(block);
        self.content = Content::Blocks(blocks);
    }
}

/// Which optional fields the JSON this message came from did not have (or had in a shape kept in `extra`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Elided(u16);

/// The optional fields, in the order LangChain writes them.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Field {
    Content,
    AdditionalKwargs,
    ResponseMetadata,
    Name,
    Id,
    ToolCalls,
    InvalidToolCalls,
    Usage,
    ToolCallChunks,
    ChunkPosition,
    ToolCallId,
    Artifact,
    Status,
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::AdditionalKwargs => "additional_kwargs",
            Self::ResponseMetadata => "response_metadata",
            Self::Name => "name",
            Self::Id => "id",
            Self::ToolCalls => "tool_calls",
            Self::InvalidToolCalls => "invalid_tool_calls",
            Self::Usage => "usage_metadata",
            Self::ToolCallChunks => "tool_call_chunks",
            Self::ChunkPosition => "chunk_position",
            Self::ToolCallId => "tool_call_id",
            Self::Artifact => "artifact",
            Self::Status => "status",
        }
    }
}

impl Elided {
    fn insert(&mut self, field: Field) {
        self.0 |= 1 << field as u8;
    }

    fn contains(self, field: Field) -> bool {
        self.0 & (1 << field as u8) != 0
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out =
            Writer { map: serializer.serialize_map(None)?, message: self, written: Elided::default() };
        let no_content = matches!(&self.content, Content::Text(text) if text.is_empty());
        out.field(Field::Content, &self.content, no_content)?;
        out.field(Field::AdditionalKwargs, &self.additional_kwargs, self.additional_kwargs.is_empty())?;
        out.field(Field::ResponseMetadata, &self.response_metadata, self.response_metadata.is_empty())?;
        out.map.serialize_entry("type", self.kind())?;
        out.field(Field::Name, &self.name, self.name.is_none())?;
        out.field(Field::Id, &self.id, self.id.is_none())?;
        match &self.body {
            Body::Ai(ai) => out.ai(ai)?,
            Body::AiChunk(chunk) => {
                out.ai(&chunk.ai)?;
                out.field(Field::ToolCallChunks, &chunk.tool_call_chunks, chunk.tool_call_chunks.is_empty())?;
                out.field(Field::ChunkPosition, &chunk.position, chunk.position.is_none())?;
            }
            Body::Tool(result) => {
                out.field(Field::ToolCallId, &result.tool_call_id, result.tool_call_id.as_str().is_empty())?;
                out.field(Field::Artifact, &result.artifact, result.artifact.is_none())?;
                out.field(Field::Status, &result.status, result.status == ToolStatus::Success)?;
            }
            Body::Human | Body::System | Body::Remove | Body::Other(_) => {}
        }
        out.finish()
    }
}

struct Writer<'a, M> {
    map: M,
    message: &'a Message,
    written: Elided,
}

impl<M: SerializeMap> Writer<'_, M> {
    /// Writes a field, unless it was absent when the message came in and still holds its default.
    fn field<T: Serialize>(&mut self, field: Field, value: &T, is_default: bool) -> Result<(), M::Error> {
        if is_default && self.message.elided.contains(field) {
            return Ok(());
        }
        self.written.insert(field);
        self.map.serialize_entry(field.name(), value)
    }

    fn ai(&mut self, ai: &Ai) -> Result<(), M::Error> {
        self.field(Field::ToolCalls, &ai.tool_calls, ai.tool_calls.is_empty())?;
        self.field(Field::InvalidToolCalls, &ai.invalid_tool_calls, ai.invalid_tool_calls.is_empty())?;
        self.field(Field::Usage, &ai.usage, ai.usage.is_none())
    }

    fn finish(mut self) -> Result<M::Ok, M::Error> {
        let superseded = |key: &str| FIELDS.iter().any(|f| f.name() == key && self.written.contains(*f));
        for (key, value) in &self.message.extra {
            if !superseded(key) && key != "type" {
                self.map.serialize_entry(key, value)?;
            }
        }
        self.map.end()
    }
}

const FIELDS: [Field; 13] = [
    Field::Content,
    Field::AdditionalKwargs,
    Field::ResponseMetadata,
    Field::Name,
    Field::Id,
    Field::ToolCalls,
    Field::InvalidToolCalls,
    Field::Usage,
    Field::ToolCallChunks,
    Field::ChunkPosition,
    Field::ToolCallId,
    Field::Artifact,
    Field::Status,
];

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Reader { map: Map::deserialize(deserializer)?, elided: Elided::default() };
        let kind = fields.kind().map_err(D::Error::custom)?;
        let content = fields.take(Field::Content);
        let additional_kwargs = fields.take(Field::AdditionalKwargs);
        let response_metadata = fields.take(Field::ResponseMetadata);
        let name = fields.take(Field::Name);
        let id = fields.take(Field::Id);
        let body = match kind.as_str() {
            "human" | "user" => Body::Human,
            "system" | "developer" => Body::System,
            "ai" | "assistant" => Body::Ai(fields.ai()),
            "AIMessageChunk" => Body::AiChunk(AiChunk {
                ai: fields.ai(),
                tool_call_chunks: fields.take(Field::ToolCallChunks),
                position: fields.take(Field::ChunkPosition),
            }),
            "tool" => Body::Tool(ToolResult {
                tool_call_id: fields.take::<String>(Field::ToolCallId).into(),
                artifact: fields.take(Field::Artifact),
                status: fields.take(Field::Status),
            }),
            "remove" => Body::Remove,
            _ => Body::Other(kind),
        };
        let Reader { map: extra, elided } = fields;
        Ok(Self { body, content, id, name, additional_kwargs, response_metadata, extra, elided })
    }
}

struct Reader {
    map: Map<String, Value>,
    elided: Elided,
}

impl Reader {
    /// `type` in LangChain's spelling, or `role` in OpenAI's.
    fn kind(&mut self) -> Result<String, String> {
        for key in ["type", "role"] {
            match self.map.shift_remove(key) {
                Some(Value::String(kind)) => return Ok(kind),
                Some(other) => return Err(format!("a message's `{key}` must be a string, found {other}")),
                None => {}
            }
        }
        Err("a message needs `type` (human, ai, tool, system, …) or `role`".to_owned())
    }

    /// Takes a field out; what does not fit stays in the map, and so in `extra`.
    fn take<T: DeserializeOwned + Default>(&mut self, field: Field) -> T {
        if let Some(value) = self.map.get(field.name())
            && let Ok(typed) = T::deserialize(value)
        {
            self.map.shift_remove(field.name());
            return typed;
        }
        self.elided.insert(field);
        T::default()
    }

    fn ai(&mut self) -> Ai {
        Ai {
            tool_calls: self.take(Field::ToolCalls),
            invalid_tool_calls: self.take(Field::InvalidToolCalls),
            usage: self.take(Field::Usage),
        }
    }
}
