//! Where a run that is played again parts from its recording.
//!
//! Invariant: it names the first part that differs and quotes both sides around the first byte that does.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which model call, from 1, of those that this caller made.
    pub call: usize,
    /// Who asked.
    pub caller: String,
    pub place: Place,
    /// The first byte that differs, of the part as JSON; none where the recording does not have the part itself.
    pub at: Option<usize>,
    pub recorded: Option<String>,
    pub found: Option<String>,
}

/// What of a call differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    System,
    Tools,
    Settings,
    /// One of the messages that the thread had before the run.
    History {
        messages: usize,
    },
    /// The message at this position of the request, from 0, and what it is.
    Message {
        position: usize,
        role: String,
    },
    /// It was not made when the run was recorded.
    NotRecorded,
    /// It was made when the run was recorded, and not now.
    NotMade,
    /// The recording was cut here, at its limit.
    Cut {
        limit: u64,
    },
    /// A call of a tool that was not made when the run was recorded.
    ToolResult {
        tool: String,
        call: String,
    },
}

impl Difference {
    pub(super) fn at_call(caller: &str, call: usize, place: Place) -> Self {
        Self { call, caller: caller.to_owned(), place, at: None, recorded: None, found: None }
    }

    #[must_use]
    pub(super) fn between(mut self, recorded: Option<&Value>, found: Option<&Value>) -> Self {
        let (recorded, found) = (recorded.map(Value::to_string), found.map(Value::to_string));
        if let (Some(recorded), Some(found)) = (&recorded, &found) {
            self.at = Some(first_difference(recorded, found));
        }
        let at = self.at.unwrap_or(0);
        self.recorded = recorded.map(|text| excerpt(&text, at));
        self.found = found.map(|text| excerpt(&text, at));
        self
    }
}

pub(super) fn first_difference(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

/// How much is quoted on either side of a difference.
const AROUND: usize = 60;

/// The text around a byte, cut at characters.
pub(super) fn excerpt(text: &str, at: usize) -> String {
    let mut from = at.saturating_sub(AROUND).min(text.len());
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    let mut to = (at + AROUND).min(text.len());
    while !text.is_char_boundary(to) {
        to += 1;
    }
    let cut = |is: bool| if is { "…" } else { "" };
    format!("{}{}{}", cut(from > 0), text.get(from..to).unwrap_or_default(), cut(to < text.len()))
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, caller, place, at, recorded, found } = self;
        match place {
            Place::NotRecorded => write!(f, "model call {call} of `{caller}` is not in the recording")?,
            Place::NotMade => write!(f, "model call {call} of `{caller}` was recorded, but is not made now")?,
            Place::Cut { limit } => write!(
                f,
                "the recording was cut at its limit of {limit} bytes, before model call {call} of `{caller}`"
            )?,
            Place::ToolResult { tool, call } => {
                write!(f, "the call `{call}` of the tool `{tool}` has no result in the recording")?;
            }
            place => {
                write!(f, "model call {call} of `{caller}` differs from the recording: {place}")?;
                if let Some(at) = at {
                    write!(f, ", from byte {at} on")?;
                }
            }
        }
        if let Some(recorded) = recorded {
            write!(f, "\n  recorded: {recorded}")?;
        }
        if let Some(found) = found {
            write!(f, "\n  now:      {found}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("the system prompt"),
            Self::Tools => f.write_str("the tools"),
            Self::Settings => f.write_str("the settings"),
            Self::History { messages } => {
                write!(f, "one of the {messages} messages that the thread had before the run")
            }
            Self::Message { position, role } => write!(f, "message {position} ({role})"),
            Self::NotRecorded => f.write_str("not recorded"),
            Self::NotMade => f.write_str("not made"),
            Self::Cut { .. } => f.write_str("cut"),
            Self::ToolResult { tool, .. } => write!(f, "a result of `{tool}`"),
        }
    }
}
