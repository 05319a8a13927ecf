//! Asking a model for a summary, and not believing everything it answers.
//!
//! Invariant: an error, a refusal or an empty answer never becomes a summary.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_kernel::{ChatModel, ChatRequest, MessageList, ModelSettings, RunContext, SideCallError, side_call};
use hart_types::{Body, Message, StopReason};
use serde_json::Value;

use super::config::SummarizationConfig;
use super::view::ends;

const CALLER: &str = "summarization";
const MESSAGES: &str = "{messages}";
/// Of one result or argument: the rest is in the history file.
const RESULT_CHARS: usize = 3000;
const ARGS_CHARS: usize = 600;
/// Where the summariser's window is not known.
const UNKNOWN_INPUT: u64 = 60_000;
/// Notes that are longer are no notes.
const LONGEST: usize = 24_000;

#[derive(Debug, thiserror::Error)]
pub(super) enum NoSummary {
    #[error(transparent)]
    Asked(#[from] SideCallError),
    #[error("the model answered with nothing")]
    Empty,
    #[error("the model refused: {0}")]
    Refused(String),
}

/// Has `model` summarise the old part of a conversation, on the run's account.
pub(super) async fn summarize(
    cx: &RunContext,
    model: &dyn ChatModel,
    config: &SummarizationConfig,
    earlier: Option<&str>,
    old: &[Arc<Message>],
) -> Result<String, NoSummary> {
    let room = config.trim_tokens_to_summarize.unwrap_or_else(|| {
        let profile = model.profile();
        let answer = profile.max_output_tokens.unwrap_or_default();
        profile
            .context_window
            .map_or(UNKNOWN_INPUT, |window| u64::from(window.saturating_sub(answer)) / 10 * 7)
    });
    let text = transcript(earlier, old);
    let text = fitted(model, text, room);
    let (system, asked) = match &config.summary_prompt {
        Some(prompt) if prompt.contains(MESSAGES) => (None, prompt.replace(MESSAGES, &text)),
        own => {
            let prompt = own.as_deref().unwrap_or(include_str!("../../prompts/summarize.md").trim_end());
            (Some(prompt.into()), format!("<conversation>\n{text}</conversation>"))
        }
    };
    let request = ChatRequest {
        caller: CALLER.into(),
        system,
        messages: MessageList::from(vec![Arc::new(Message::human(asked))]),
        tools: Arc::new([]),
        settings: ModelSettings::default(),
    };
    let answer = side_call(cx, model, request).await?;
    accepted(&answer)
}

/// The text of an answer that is a summary.
pub(super) fn accepted(answer: &Message) -> Result<String, NoSummary> {
    let text = answer.text();
    let text = text.trim();
    if answer.stop_reason() == Some(StopReason::Refused) || is_refusal(text) {
        return Err(NoSummary::Refused(text.chars().take(200).collect()));
    }
    if text.is_empty() {
        return Err(NoSummary::Empty);
    }
    Ok(ends(text, LONGEST).unwrap_or_else(|| text.to_owned()))
}

/// The canned words of providers and models that would not do it. Notes may well speak of a refusal; they are longer.
fn is_refusal(text: &str) -> bool {
    const SHORT: usize = 400;
    const OPENINGS: [&str; 14] = [
        "i'm sorry",
        "i am sorry",
        "sorry, ",
        "i can't ",
        "i cannot ",
        "i can not ",
        "i'm unable",
        "i am unable",
        "i'm not able",
        "i am not able",
        "i won't ",
        "as an ai",
        "unfortunately, i can",
        "error:",
    ];
    let plain = text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase().replace('’', "'");
    plain.chars().count() < SHORT && OPENINGS.iter().any(|opening| plain.starts_with(opening))
}

/// The message that stands for the old part.
pub(super) fn message(summary: &str, history: Option<&str>) -> Arc<Message> {
    let place = history.map_or_else(
        || "The messages themselves are no longer at hand.".to_owned(),
        |path| {
            format!(
                "The messages themselves are in {path}: when you need a detail that is not here, search it there with \
                 grep, or read it with read_file, before you ask or guess."
            )
        },
    );
    let text = format!(
        "The conversation was longer than you can be shown, so its older part was replaced by these notes. {place}\n\n\
         <summary>\n{}\n</summary>",
        summary.trim()
    );
    let mut message = Message::human(text);
    message.additional_kwargs.insert("lc_source".to_owned(), Value::from("summarization"));
    Arc::new(message)
}

/// The notes in a message made by [`message`].
pub(super) fn text_of(message: &Message) -> String {
    let text = message.text();
    let inner = text.split_once("<summary>\n").map_or(text.as_str(), |(_, rest)| rest);
    inner.trim_end().trim_end_matches("</summary>").trim_end().to_owned()
}

fn transcript(earlier: Option<&str>, old: &[Arc<Message>]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if let Some(earlier) = earlier {
        let _ = writeln!(text, "Notes on what came before:\n{earlier}\n");
    }
    for message in old {
        let said = message.text();
        let _ = match &message.body {
            Body::Human => writeln!(text, "User: {said}"),
            Body::Ai(_) if said.is_empty() => Ok(()),
            Body::Ai(_) => writeln!(text, "Agent: {said}"),
            Body::Tool(_) => {
                let name = message.name.as_deref().unwrap_or("the tool");
                writeln!(text, "Result of {name}: {}", ends(&said, RESULT_CHARS).unwrap_or(said))
            }
            _ => writeln!(text, "{}: {said}", message.kind()),
        };
        for call in message.tool_calls() {
            let args = serde_json::to_string(&call.args).unwrap_or_default();
            let _ = writeln!(text, "Agent calls {}: {}", call.name, ends(&args, ARGS_CHARS).unwrap_or(args));
        }
    }
    // Nothing inside can end the block it is put into.
    text.replace("</conversation>", "</ conversation>")
}

/// The beginning tells the task and the end where things stand; what is too much is taken from between.
fn fitted(model: &dyn ChatModel, text: String, room: u64) -> String {
    let tokens = model.count_text(&text);
    if tokens <= room {
        return text;
    }
    let chars = text.chars().count();
    let fits = usize::try_from(chars as u64 * room / tokens.max(1)).unwrap_or(chars);
    let (head, tail) = (fits / 4, fits / 4 * 3);
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(chars - tail).collect();
    format!("{first}\n[{} characters left out]\n{last}", chars - head - tail)
}
