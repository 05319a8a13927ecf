//! Answers that are JSON of a given shape, however a server can be made to give them.
//!
//! Invariant: whatever the way, the text of the answer is the JSON and its fragments add up to it.

mod schema;

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use hart_kernel::{ChatChunk, ChatRequest, ChatStream, ModelError, OutputFormat, ToolChoice, ToolSpec};
use hart_types::{Block, BlockView, Body, Content, Message};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use schema::{closed, is_strict};

/// How a server is asked for JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// It takes the schema and enforces it.
    Schema,
    /// It promises JSON; the schema is told in words.
    Object,
    /// It is only told in words.
    Prompt,
    /// It is made to call a tool whose arguments are the answer.
    Tool,
}

/// What has to be done with the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Nothing,
    /// Find the JSON in the text.
    Extract,
    /// Make the call of this tool the text.
    Call(String),
}

/// Changes a request that wants JSON into one that gets it. What is left in `settings.output` is for the dialect.
pub(crate) fn prepare(mode: StructuredOutput, request: &mut ChatRequest) -> After {
    let OutputFormat::Json { name, schema } = &request.settings.output else { return After::Nothing };
    match mode {
        StructuredOutput::Schema => After::Nothing,
        StructuredOutput::Object | StructuredOutput::Prompt => {
            let told = format!(
                "Answer with one JSON value and nothing else: no other words, no code fence. \
                 It must fit this JSON schema:\n{schema}"
            );
            request.system = Some(match &request.system {
                Some(system) => format!("{system}\n\n{told}").into(),
                None => told.into(),
            });
            if mode == StructuredOutput::Prompt {
                request.settings.output = OutputFormat::Text;
            }
            After::Extract
        }
        StructuredOutput::Tool => {
            let name = identifier(name);
            // Arguments are always an object; another shape is put into one.
            let input_schema = if is_object(schema) { schema.clone() } else { wrapped(schema) };
            let description = "Gives the final answer.".to_owned();
            let answer = Arc::new(ToolSpec {
                name: name.clone(),
                description,
                input_schema,
                effect: hart_kernel::Effect::Pure,
            });
            request.settings.tool_choice =
                if request.tools.is_empty() || request.settings.tool_choice == ToolChoice::None {
                    ToolChoice::Named(name.clone())
                } else {
                    ToolChoice::Required
                };
            request.tools = request.tools.iter().cloned().chain([answer]).collect();
            request.settings.output = OutputFormat::Text;
            After::Call(name)
        }
    }
}

/// A name that every provider takes.
pub(crate) fn identifier(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = name.chars().take(64).map(|c| if fits(c) { c } else { '_' }).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

const WRAPPED: &str = "value";

fn wrapped(schema: &Value) -> Value {
    json!({"type": "object", "properties": {WRAPPED: schema}, "required": [WRAPPED], "additionalProperties": false})
}

/// Makes the answer what `after` says.
pub(crate) fn finish(answer: ChatStream, after: After, schema: &OutputFormat) -> ChatStream {
    let unwrap = match schema {
        OutputFormat::Json { schema, .. } => !is_object(schema),
        OutputFormat::Text => false,
    };
    let mut text = String::new();
    match after {
        After::Nothing => answer,
        After::Extract => Box::pin(answer.flat_map(move |item| stream::iter(extract(item, &mut text)))),
        After::Call(name) => Box::pin(answer.flat_map(move |item| stream::iter(called(item, &name, unwrap)))),
    }
}

type Item = Result<ChatChunk, ModelError>;

/// Holds the text back until the JSON in it can be told from the rest.
fn extract(item: Item, said: &mut String) -> Vec<Item> {
    match item {
        Ok(ChatChunk::Text(text)) => {
            said.push_str(&text);
            Vec::new()
        }
        Ok(ChatChunk::Restart(error)) => {
            said.clear();
            vec![Ok(ChatChunk::Restart(error))]
        }
        Ok(ChatChunk::Done(mut message)) => {
            if message.tool_calls().is_empty() {
                let json = json_in(&message.text()).to_owned();
                set_text(&mut message, json);
            }
            let text = message.text();
            let text = (!text.is_empty()).then_some(Ok(ChatChunk::Text(text)));
            text.into_iter().chain([Ok(ChatChunk::Done(message))]).collect()
        }
        other => vec![other],
    }
}

/// Hides the call, and says its arguments as the text.
fn called(item: Item, name: &str, unwrap: bool) -> Vec<Item> {
    match item {
        // They come whole with the message: only then is it known that they are the answer and not a call.
        Ok(ChatChunk::ToolCall(_) | ChatChunk::Text(_)) => Vec::new(),
        Ok(ChatChunk::Done(mut message)) => {
            let chunks = match take_answer(&mut message, name, unwrap) {
                Some(json) => {
                    set_text(&mut message, json);
                    Vec::new()
                }
                None => call_chunks(&message),
            };
            let text = message.text();
            let text = (!text.is_empty()).then_some(ChatChunk::Text(text));
            let all = text.into_iter().chain(chunks).chain([ChatChunk::Done(message)]);
            all.map(Ok).collect()
        }
        other => vec![other],
    }
}

fn call_chunks(message: &Message) -> Vec<ChatChunk> {
    let chunk = |(index, call): (usize, &hart_types::ToolCall)| {
        let args = Value::Object(call.args.clone()).to_string();
        ChatChunk::ToolCall(hart_types::ToolCallChunk::new(
            index,
            call.id.clone(),
            Some(call.name.clone()),
            args,
        ))
    };
    message.tool_calls().iter().enumerate().map(chunk).collect()
}

fn take_answer(message: &mut Message, name: &str, unwrap: bool) -> Option<String> {
    let Body::Ai(ai) = &mut message.body else { return None };
    let json = if let Some(at) = ai.tool_calls.iter().position(|call| call.name == name) {
        let mut args = ai.tool_calls.remove(at).args;
        match args.shift_remove(WRAPPED) {
            Some(inner) if unwrap => inner.to_string(),
            Some(inner) => {
                args.insert(WRAPPED.to_owned(), inner);
                Value::Object(args).to_string()
            }
            None => Value::Object(args).to_string(),
        }
    } else {
        // Not JSON after all; whoever asked will see that it is not.
        let broken = ai.invalid_tool_calls.iter().position(|call| call.name.as_deref() == Some(name))?;
        ai.invalid_tool_calls.remove(broken).args.unwrap_or_default()
    };
    // With the answer given, other calls of the same turn have nobody left to read their results.
    ai.tool_calls.clear();
    ai.invalid_tool_calls.clear();
    for (key, done) in [("stop_reason", "end_turn"), ("finish_reason", "stop")] {
        if message
            .response_metadata
            .get(key)
            .is_some_and(|reason| reason == "tool_use" || reason == "tool_calls")
        {
            message.response_metadata.insert(key.to_owned(), done.into());
        }
    }
    Some(json)
}

/// Replaces what was said, and keeps what was thought.
fn set_text(message: &mut Message, text: String) {
    let Content::Blocks(blocks) = &mut message.content else {
        message.content = Content::Text(text);
        return;
    };
    blocks.retain(|block| match block.view() {
        BlockView::Text(_) => false,
        BlockView::Other(map) => map.get("type").is_none_or(|kind| kind != "tool_use"),
        _ => true,
    });
    if blocks.is_empty() {
        message.content = Content::Text(text);
    } else {
        blocks.push(Block::text(text));
    }
}

/// The JSON in a text that may have a fence or words around it; the text itself when there is none.
fn json_in(text: &str) -> &str {
    let text = text.rsplit_once("</think>").map_or(text, |(_, after)| after).trim();
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        return text;
    }
    let starts = text.char_indices().filter(|(_, c)| matches!(c, '{' | '[')).map(|(at, _)| at).take(64);
    let values = starts.filter_map(|start| {
        let rest = text.get(start..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        values.next()?.ok()?;
        rest.get(..values.byte_offset())
    });
    // The first of the longest: a list of links before the answer is shorter than the answer.
    values.reduce(|best, value| if value.len() > best.len() { value } else { best }).unwrap_or(text)
}

#[cfg(test)]
#[path = "structured_tests.rs"]
mod tests;
