//! The open questions of a thread, put to whoever sits at the terminal.
//!
//! Invariant: a person sees every argument of a call before it can be approved, and nothing is decided by silence.

use std::io::{self, IsTerminal};

use hart_types::{Interrupt, Resume};
use rustyline::error::ReadlineError;
use rustyline::{Behavior, Config, DefaultEditor};
use serde_json::{Map, Value, json};

use crate::args::quoted;
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::{Terminal, Tone, harmless};

/// Whether somebody can be asked: both to see the question and to type the answer.
pub(crate) fn somebody_is_there(terminal: &Terminal) -> bool {
    io::stdin().is_terminal() && terminal.err.live
}

/// Asks about everything that is open. `None` if the person left the question as it is.
pub(crate) fn ask(session: &Session, open: &[Interrupt]) -> Result<Option<Resume>, Failure> {
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    let editor = DefaultEditor::with_config(config).map_err(Failure::failed)?;
    let mut person = Person { session, editor };
    let mut answers = Map::new();
    for interrupt in open {
        let answer = match Question::of(interrupt) {
            Question::Calls(calls) => {
                let mut decisions = Vec::new();
                for (at, call) in calls.iter().enumerate() {
                    match person.decide(call, (at + 1, calls.len()))? {
                        Some(decision) => decisions.push(decision),
                        None => return Ok(None),
                    }
                }
                json!({ "decisions": decisions })
            }
            Question::Call(call) => match person.decide(&call, (1, 1))? {
                Some(decision) => decision,
                None => return Ok(None),
            },
            Question::Other(value) => match person.answer(&value)? {
                Some(answer) => answer,
                None => return Ok(None),
            },
        };
        answers.insert(interrupt.id.clone(), answer);
    }
    Ok(Some(Resume::from_json(Value::Object(answers))))
}

/// Says what is asked and how to answer it from a command line.
pub(crate) fn explain(terminal: &Terminal, thread: &str, open: &[Interrupt]) {
    for interrupt in open {
        match Question::of(interrupt) {
            Question::Calls(calls) => calls.iter().for_each(|call| show(terminal, call, None, true)),
            Question::Call(call) => show(terminal, &call, None, true),
            Question::Other(value) => terminal.note(&harmless(&in_words(&value))),
        }
    }
    let example = example(open).to_string();
    let calls = open.iter().any(|one| !matches!(Question::of(one), Question::Other(_)));
    terminal.note(&format!(
        "waiting for {}; to answer: hart run --thread {} --resume {}",
        if calls { "approval" } else { "an answer" },
        quoted(thread),
        quoted(&example)
    ));
    if !calls {
        return;
    }
    terminal.note(&terminal.err.paint(
        Tone::Dim,
        "decisions: {\"type\": \"approve\"}, {\"type\": \"reject\", \"message\": …}, {\"type\": \"respond\", \"message\": \
         …}, {\"type\": \"edit\", \"edited_action\": {\"name\": …, \"args\": {…}}}",
    ));
}

/// A question that was put in words is shown in them.
fn in_words(question: &Value) -> String {
    question.get("message").and_then(Value::as_str).map_or_else(|| question.to_string(), str::to_owned)
}

/// An answer that approves everything, to start from.
fn example(open: &[Interrupt]) -> Value {
    let approve = || json!({"type": "approve"});
    let answer = |interrupt: &Interrupt| match Question::of(interrupt) {
        Question::Calls(calls) => json!({"decisions": calls.iter().map(|_| approve()).collect::<Vec<_>>()}),
        Question::Call(_) => approve(),
        Question::Other(value) => {
            value.pointer("/answers/0").cloned().unwrap_or_else(|| json!("your answer"))
        }
    };
    match open {
        [only] => answer(only),
        several => Value::Object(several.iter().map(|one| (one.id.clone(), answer(one))).collect()),
    }
}

enum Question {
    /// All calls of an answer, decided about by position.
    Calls(Vec<Call>),
    Call(Call),
    /// Of a part that asks in its own way.
    Other(Value),
}

struct Call {
    name: String,
    args: Map<String, Value>,
    description: String,
    allowed: Vec<String>,
}

const ALL: [&str; 4] = ["approve", "edit", "reject", "respond"];

impl Question {
    fn of(interrupt: &Interrupt) -> Self {
        let value = &interrupt.value;
        let list = |key: &str| value.get(key).and_then(Value::as_array);
        if let (Some(actions), Some(configs)) = (list("action_requests"), list("review_configs")) {
            let call =
                |(action, config): (&Value, &Value)| Call::read(action, config.get("allowed_decisions"));
            return Self::Calls(actions.iter().zip(configs).map(call).collect());
        }
        if value.get("type").is_some_and(|kind| kind == "tool_approval") {
            let schema =
                interrupt.response_schema.as_ref().and_then(|schema| schema.get("oneOf")?.as_array());
            let kind = |variant: &Value| variant.pointer("/properties/type/const").cloned();
            let allowed = schema.map(|variants| variants.iter().filter_map(kind).collect::<Value>());
            return Self::Call(Call::read(value, allowed.as_ref()));
        }
        Self::Other(value.clone())
    }
}

impl Call {
    fn read(action: &Value, allowed: Option<&Value>) -> Self {
        let text = |key: &str| action.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let named = allowed
            .and_then(Value::as_array)
            .map(|kinds| kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        Self {
            name: text("name"),
            args: action.get("args").and_then(Value::as_object).cloned().unwrap_or_default(),
            description: text("description"),
            allowed: named.unwrap_or_else(|| ALL.map(str::to_owned).to_vec()),
        }
    }

    fn choices(&self) -> String {
        let key = |kind: &String| match kind.as_str() {
            "approve" => "a(pprove)".to_owned(),
            "edit" => "e(dit)".to_owned(),
            "reject" => "r(eject) [reason]".to_owned(),
            other => other.to_owned(),
        };
        self.allowed.iter().map(key).collect::<Vec<_>>().join(" / ")
    }
}

/// A long argument is cut to this many lines, with the word how to see the rest.
const LINES: usize = 40;

fn show(terminal: &Terminal, call: &Call, position: Option<(usize, usize)>, whole: bool) {
    let look = terminal.err;
    let position = match position {
        Some((at, of)) if of > 1 => format!(" ({at} of {of})"),
        _ => String::new(),
    };
    let name = look.paint(Tone::Strong, harmless(&call.name));
    terminal.note(&format!("{} {name}{position}", look.paint(Tone::Warn, "?")));
    if !call.description.is_empty() {
        terminal.note(&format!("  {}", look.paint(Tone::Dim, harmless(&call.description))));
    }
    for (key, value) in &call.args {
        let text = harmless(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let key = look.paint(Tone::Accent, harmless(key));
        let lines: Vec<&str> = text.lines().collect();
        match lines.as_slice() {
            [] => {}
            [line] => terminal.note(&format!("  {key}: {line}")),
            lines => {
                terminal.note(&format!("  {key}:"));
                let shown = if whole { lines.len() } else { LINES };
                lines.iter().take(shown).for_each(|line| terminal.note(&format!("    {line}")));
                if lines.len() > shown {
                    terminal.note(&format!("    … {} more lines; `show` prints all", lines.len() - shown));
                }
            }
        }
    }
}

struct Person<'a> {
    session: &'a Session,
    editor: DefaultEditor,
}

impl Person<'_> {
    fn decide(&mut self, call: &Call, position: (usize, usize)) -> Result<Option<Value>, Failure> {
        let terminal = self.session.terminal.clone();
        show(&terminal, call, Some(position), false);
        loop {
            let Some(line) = self.read(&format!("{}: ", call.choices()), "")? else { return Ok(None) };
            let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
            let kind = match word.to_lowercase().as_str() {
                "a" | "y" | "yes" | "approve" => "approve",
                "e" | "edit" => "edit",
                "r" | "n" | "no" | "reject" => "reject",
                "respond" => "respond",
                "show" => {
                    show(&terminal, call, Some(position), true);
                    continue;
                }
                _ => {
                    terminal.note(&format!("write one of: {}", call.choices()));
                    continue;
                }
            };
            if !call.allowed.iter().any(|allowed| allowed == kind) {
                terminal.note(&format!("`{kind}` is not allowed here; write one of: {}", call.choices()));
                continue;
            }
            let decision = match kind {
                "edit" => self.edit(call)?,
                "reject" => self.words(kind, rest, "reason (may be empty): ")?,
                "respond" => self.words(kind, rest, "what the model shall read as the result: ")?,
                _ => Some(json!({ "type": kind })),
            };
            // Leaving one of the smaller questions goes back to the choice.
            if decision.is_some() {
                return Ok(decision);
            }
        }
    }

    fn words(&mut self, kind: &str, given: &str, question: &str) -> Result<Option<Value>, Failure> {
        let text = match given.trim() {
            "" => self.read(question, "")?,
            given => Some(given.to_owned()),
        };
        Ok(text.map(|text| match text.trim() {
            "" if kind == "reject" => json!({ "type": kind }),
            text => json!({"type": kind, "message": text}),
        }))
    }

    fn edit(&mut self, call: &Call) -> Result<Option<Value>, Failure> {
        let mut text = serde_json::to_string(&call.args).unwrap_or_default();
        loop {
            let Some(typed) = self.read("arguments: ", &text)? else { return Ok(None) };
            match serde_json::from_str::<Map<String, Value>>(&typed) {
                Ok(args) => {
                    return Ok(Some(
                        json!({"type": "edit", "edited_action": {"name": call.name, "args": args}}),
                    ));
                }
                Err(error) => {
                    let advice = format!("not a JSON object: {error}; Ctrl-C goes back");
                    self.session.terminal.note(&self.session.terminal.err.paint(Tone::Bad, advice));
                    text = typed;
                }
            }
        }
    }

    fn answer(&mut self, value: &Value) -> Result<Option<Value>, Failure> {
        self.session.terminal.note(&harmless(&in_words(value)));
        if let Some(answers) = value.get("answers") {
            self.session.terminal.note(&harmless(&format!("for example, one of {answers}")));
        }
        let typed = self.read("answer (JSON or words): ", "")?;
        Ok(typed.map(|typed| serde_json::from_str(&typed).unwrap_or(Value::String(typed))))
    }

    /// `None` for Ctrl-C and Ctrl-D.
    fn read(&mut self, prompt: &str, initial: &str) -> Result<Option<String>, Failure> {
        let _watch = self.session.end_on_signal()?;
        match self.editor.readline_with_initial(prompt, (initial, "")) {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Interrupted | ReadlineError::Eof | ReadlineError::Signal(_)) => Ok(None),
            Err(error) => Err(Failure::failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batched(names: &[&str]) -> Interrupt {
        let actions: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "args": {"a": 1}, "description": "d"})).collect();
        let configs: Vec<Value> = names
            .iter()
            .map(|name| json!({"action_name": name, "allowed_decisions": ["approve", "reject"]}))
            .collect();
        let value = json!({"action_requests": actions, "review_configs": configs});
        Interrupt { value, id: "0".repeat(32), response_schema: None }
    }

    #[test]
    fn a_question_without_a_terminal_says_how_to_answer() {
        let (terminal, out, err) = Terminal::fake(false);
        explain(&terminal, "my thread", &[batched(&["bash", "ls"])]);
        let said = err.text();
        assert!(said.contains("? bash\n  d\n  a: 1\n? ls\n"), "{said}");
        let command = "hart run --thread \"my thread\" --resume \
             '{\"decisions\":[{\"type\":\"approve\"},{\"type\":\"approve\"}]}'";
        assert!(said.contains(command), "{said}");
        assert_eq!(out.text(), "");
    }

    #[test]
    fn calls_are_shown_whole_or_say_that_they_are_not() {
        let (terminal, _, err) = Terminal::fake(false);
        let content = (0..100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let call = Call::read(&json!({"name": "w\u{1b}[2J", "args": {"content": content}}), None);
        show(&terminal, &call, Some((2, 3)), false);
        let said = err.text();
        assert!(said.starts_with("? w␛[2J (2 of 3)\n  content:\n    line 0\n"), "{said}");
        assert!(said.contains("    line 39\n    … 60 more lines; `show` prints all\n"), "{said}");
        assert_eq!(call.choices(), "a(pprove) / e(dit) / r(eject) [reason] / respond");
    }

    #[test]
    fn every_shape_of_question_is_understood() {
        let schema = json!({"oneOf": [{"properties": {"type": {"const": "approve"}}}]});
        let value = json!({"type": "tool_approval", "tool_call_id": "c1", "name": "bash", "args": {}, "description": ""});
        let single = Interrupt { value, id: "1".repeat(32), response_schema: Some(schema) };
        assert!(matches!(Question::of(&single), Question::Call(call) if call.allowed == ["approve"]));
        assert!(matches!(Question::of(&batched(&["a"])), Question::Calls(calls) if calls.len() == 1));
        let other = Interrupt { value: json!("May I?"), id: "2".repeat(32), response_schema: None };
        assert!(matches!(Question::of(&other), Question::Other(_)));
        let both = example(&[single.clone(), other]);
        assert_eq!(both, json!({ (single.id): {"type": "approve"}, ("2".repeat(32)): "your answer" }));
    }
}
