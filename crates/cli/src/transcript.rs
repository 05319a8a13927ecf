//! A run as somebody at a terminal follows it: the answer on stdout, the work on stderr.
//!
//! Invariant: stdout carries what the model says to the user and nothing else, each message on lines of its own.

mod delegated;
pub(crate) mod frames;
mod tool_line;

use std::io;

use hart_app::CancellationToken;
use hart_client::{End, Event};
use hart_types::{Message, MessageId, StopReason, ToolCall, ToolCallId, ToolStatus, UsageMetadata};
use serde_json::Value;

use crate::terminal::{Terminal, Tone, cut};
use delegated::Delegated;

/// The tool that ends a run with a question to the user.
const ASK: &str = "ask_clarification";

/// So many lines of a running tool are shown as they come; then only the newest, in the spinner.
const LIVE_LINES: usize = 10;

pub(crate) struct Transcript {
    terminal: Terminal,
    /// Cancelled when nobody reads the answer any more.
    stop: CancellationToken,
    story: Story,
}

/// What a run left behind for whoever tells its end.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) usage: UsageMetadata,
    /// The agent's paths of the files it handed over in this run.
    pub(crate) presented: Vec<String>,
    /// The run ended with a question.
    pub(crate) asked: bool,
}

#[derive(Default)]
struct Story {
    told: Told,
    current: Option<MessageId>,
    running: Vec<Running>,
    /// The call on the last line of stderr: its outcome needs no name.
    last_started: Option<ToolCallId>,
    delegated: Delegated,
    failure: Option<io::Error>,
}

struct Running {
    id: ToolCallId,
    label: String,
    /// Lines shown so far, and the beginning of the next.
    shown: usize,
    partial: String,
}

/// Said when the model could not even begin; the exit code says it too.
pub(crate) const NOTHING_DONE: &str =
    "nothing was done: no model is connected, or the recording does not know this";

/// Why an answer is not what it seems: it stopped early, was declined, or says nothing.
pub(crate) fn cut_short(end: &End) -> Option<&'static str> {
    let last = end.values.last_message()?;
    last.as_ai()?;
    if !end.interrupts.is_empty() {
        return None;
    }
    match last.stop_reason() {
        _ if last.response_metadata.contains_key("incomplete") => Some(NOTHING_DONE),
        Some(StopReason::Length) => Some("the answer reached the model's length limit and stops early"),
        Some(StopReason::Refused) => Some("the model declined to answer"),
        _ if last.text().trim().is_empty() => Some("the model ended without an answer"),
        _ => None,
    }
}

impl Transcript {
    pub(crate) fn new(terminal: Terminal, stop: CancellationToken) -> Self {
        terminal.busy("waiting for the model");
        Self { terminal, stop, story: Story::default() }
    }

    /// What is to be said about it. Fails when the answer could not be written.
    pub(crate) fn finish(self) -> io::Result<Told> {
        self.terminal.rest();
        if let Some(failure) = self.story.failure {
            return Err(failure);
        }
        self.terminal.end_line()?;
        Ok(self.story.told)
    }

    pub(crate) fn tell(&mut self, event: &Event) {
        if self.story.failure.is_some() {
            return;
        }
        if let Err(failure) = self.story.tell(&self.terminal, event) {
            self.story.failure = Some(failure);
            self.stop.cancel();
        }
    }
}

impl Story {
    fn tell(&mut self, terminal: &Terminal, event: &Event) -> io::Result<()> {
        match event {
            Event::Text { id, text } => self.text(terminal, id, text)?,
            Event::Withdrawn { .. } => self.begun_anew(terminal)?,
            Event::Reasoning { .. } => self.busy(terminal, "thinking…"),
            Event::ToolCalls { .. } => terminal.end_line()?,
            Event::Usage { usage, .. } => self.told.usage.add(usage),
            Event::Updates { update, .. } => self.updates(update.get("artifacts")),
            Event::ToolStarted(call) => self.started(terminal, call)?,
            Event::ToolProgress { call, text } => self.progress(terminal, call, text),
            Event::ToolResult(result) => self.finished(terminal, result)?,
            Event::Custom(event) => self.custom(terminal, event)?,
            // With what others than the agent's own model took.
            Event::End(end) => self.told.usage = end.usage.clone(),
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, terminal: &Terminal, id: &MessageId, text: &str) -> io::Result<()> {
        if self.current.as_ref() != Some(id) {
            terminal.end_line()?;
            self.current = Some(id.clone());
        }
        terminal.answer(text)?;
        self.busy(terminal, "writing");
        Ok(())
    }

    /// The same words, or others, come once more.
    fn begun_anew(&mut self, terminal: &Terminal) -> io::Result<()> {
        terminal.end_line()?;
        terminal.note(&terminal.err.paint(Tone::Dim, "the server was cut off; the answer begins anew"));
        self.current = None;
        self.busy(terminal, "waiting for the model");
        Ok(())
    }

    /// A model that is asked again or waits for its turn, a disk without room: whoever watches should know why nothing
    /// comes.
    fn custom(&mut self, terminal: &Terminal, event: &Value) -> io::Result<()> {
        let field = |name: &str| event.get(name).and_then(Value::as_str);
        if let Some(line) = self.delegated.line(event) {
            terminal.end_line()?;
            terminal.note(&terminal.err.paint(Tone::Dim, &line));
            // The next outcome is not that of the line above.
            self.last_started = None;
            return Ok(());
        }
        if !matches!(field("type"), Some("llm_retry" | "llm_wait" | "storage_full")) {
            return Ok(());
        }
        let message = field("message").unwrap_or("the model is asked again");
        // What it said so far is void, and what comes next is another message.
        terminal.end_line()?;
        terminal.note(&terminal.err.paint(Tone::Dim, message));
        self.busy(terminal, "waiting for the model");
        Ok(())
    }

    fn updates(&mut self, artifacts: Option<&Value>) {
        for path in artifacts.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !self.told.presented.iter().any(|known| known == path) {
                self.told.presented.push(path.to_owned());
            }
        }
    }

    fn started(&mut self, terminal: &Terminal, call: &ToolCall) -> io::Result<()> {
        terminal.end_line()?;
        if call.name == ASK {
            return Ok(());
        }
        terminal.note(&tool_line::started(call, terminal.err));
        if let Some(id) = &call.id {
            let label = tool_line::label(call);
            self.running.push(Running { id: id.clone(), label, shown: 0, partial: String::new() });
        }
        self.last_started.clone_from(&call.id);
        self.busy(terminal, &tool_line::label(call));
        Ok(())
    }

    fn progress(&mut self, terminal: &Terminal, call_id: &ToolCallId, text: &str) {
        if !terminal.err.live {
            return;
        }
        let Some(running) = self.running.iter_mut().find(|running| running.id == *call_id) else { return };
        running.partial.push_str(text);
        let (whole, partial) = match running.partial.rsplit_once(['\n', '\r']) {
            Some((whole, partial)) => (whole.to_owned(), partial.to_owned()),
            None => return,
        };
        running.partial = partial;
        let mut newest = None;
        for line in whole.split(['\n', '\r']).filter(|line| !line.trim().is_empty()) {
            if running.shown < LIVE_LINES {
                running.shown += 1;
                terminal.note(&tool_line::progress(line, terminal.err));
            } else {
                newest = Some(line);
            }
        }
        if let Some(newest) = newest {
            let message = format!("{}: {newest}", running.label);
            self.busy(terminal, &message);
        }
    }

    fn finished(&mut self, terminal: &Terminal, result: &Message) -> io::Result<()> {
        let Some(outcome) = result.as_tool_result() else { return Ok(()) };
        let name = result.name.as_deref().unwrap_or("tool");
        let label = self.running.iter().position(|running| running.id == outcome.tool_call_id).map(|at| {
            let running = self.running.remove(at);
            running.label
        });
        if name == ASK && outcome.status == ToolStatus::Success {
            self.told.asked = true;
            terminal.end_line()?;
            terminal.answer(&result.text())?;
            return terminal.end_line();
        }
        let follows = label.is_some() && self.last_started.as_ref() == Some(&outcome.tool_call_id);
        let label = if follows { None } else { Some(label.unwrap_or_else(|| name.to_owned())) };
        terminal.note(&tool_line::finished(outcome, label.as_deref(), &result.text(), terminal.err));
        // Whatever comes next, the line above it is no longer the call's.
        self.last_started = None;
        match self.running.last().map(|running| running.label.clone()) {
            Some(label) => self.busy(terminal, &label),
            None => self.busy(terminal, "waiting for the model"),
        }
        Ok(())
    }

    fn busy(&self, terminal: &Terminal, activity: &str) {
        match self.told.usage.total_tokens {
            0 => terminal.busy(activity),
            tokens => terminal.busy(&format!("{} · {} tokens", cut(activity, 60), count(tokens))),
        }
    }
}

/// `1234567` as `1.2M`: exact enough to watch.
pub(crate) fn count(tokens: u64) -> String {
    let scaled = |unit: u64, suffix: &str| format!("{}.{}{suffix}", tokens / unit, tokens % unit * 10 / unit);
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => scaled(1_000, "k"),
        _ => scaled(1_000_000, "M"),
    }
}

/// `12 in, 3 out`, dimmed as all that is only for the record.
pub(crate) fn tokens(terminal: &Terminal, usage: &UsageMetadata) -> Option<String> {
    let cached =
        usage.input_token_details.as_ref().and_then(|details| details.cache_read).filter(|read| *read > 0);
    let cached = cached.map(|read| format!(", {} of them cached", count(read))).unwrap_or_default();
    (usage.total_tokens > 0).then(|| {
        let (input, output) = (count(usage.input_tokens), count(usage.output_tokens));
        terminal.err.paint(Tone::Dim, format!("tokens: {input} in{cached}, {output} out"))
    })
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
