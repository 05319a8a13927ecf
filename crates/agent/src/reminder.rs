//! Messages that hart itself puts into a conversation, and how to tell them from the user's.
//!
//! Invariant: they are appended, never rewritten, so that whatever a provider has cached stays as it was; and clients
//! know by `hide_from_ui` not to show them.
//!
//! What hart knows by itself is spoken as a system message. What holds text from outside (names and headings of files)
//! is spoken as the user would: it must not have the weight of an instruction.

use hart_types::{Body, Message};
use serde_json::Value;

const HIDDEN: &str = "hide_from_ui";
const STANDING: &str = "standing";

/// Hart's own words.
pub(crate) fn reminder(name: &str, text: &str) -> Message {
    hidden(name, Message::system(format!("<system-reminder>\n{text}\n</system-reminder>")))
}

/// Hart's own words that stay true until the same voice says otherwise: they outlast what was said around them.
pub(crate) fn standing(name: &str, text: &str) -> Message {
    let mut message = reminder(name, text);
    message.additional_kwargs.insert(STANDING.to_owned(), true.into());
    message
}

pub(crate) fn is_standing(message: &Message) -> bool {
    message.body == Body::System && message.additional_kwargs.get(STANDING) == Some(&Value::Bool(true))
}

/// Words about things from outside.
pub(crate) fn background(name: &str, text: String) -> Message {
    hidden(name, Message::human(text))
}

/// Whether a person said it.
pub(crate) fn is_from_user(message: &Message) -> bool {
    message.body == Body::Human && message.additional_kwargs.get(HIDDEN) != Some(&Value::Bool(true))
}

fn hidden(name: &str, mut message: Message) -> Message {
    message.name = Some(name.to_owned());
    message.additional_kwargs.insert(HIDDEN.to_owned(), true.into());
    message
}
