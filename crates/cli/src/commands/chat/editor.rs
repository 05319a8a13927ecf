//! The chat at a terminal: a line editor with a history and several lines.
//!
//! Invariant: the terminal is left as it was found, also when a signal ends the process at the prompt.

use std::fs;
use std::path::Path;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};

use super::slash::Slash;
use super::{Chat, Said};
use crate::failure::{Exit, Failure};
use crate::prompt;

pub(super) fn converse(chat: &mut Chat<'_>) -> Result<Exit, Failure> {
    let history = chat.session.app.home().join("history");
    let mut editor = new_editor(&history).map_err(Failure::failed)?;
    chat.settle()?;
    loop {
        let typed = {
            let _watch = chat.session.end_on_signal()?;
            editor.readline("> ")
        };
        let input = match typed {
            Ok(input) => input,
            // Ctrl-C clears the line, Ctrl-D leaves.
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => continue,
            Err(ReadlineError::Eof) => return Ok(farewell(chat)),
            Err(error) => return Err(Failure::failed(error)),
        };
        if input.trim().is_empty() {
            continue;
        }
        remember(&mut editor, &input, &history);
        if chat.hear(&input)? == Said::Quit {
            return Ok(farewell(chat));
        }
    }
}

fn farewell(chat: &Chat<'_>) -> Exit {
    if chat.session.block_on(chat.session.knows(&chat.thread)).is_ok_and(|known| known.unwrap_or(false)) {
        let there = chat.session.there();
        chat.session.terminal.note(&format!("to go on: hart chat{there} --thread {}", chat.thread));
    }
    Exit::Done
}

type LineEditor = Editor<Manners, FileHistory>;

fn new_editor(history: &Path) -> rustyline::Result<LineEditor> {
    let config = Config::builder().history_ignore_dups(true)?.max_history_size(1000)?.build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Manners));
    // The first chat has none.
    let _ = editor.load_history(history);
    Ok(editor)
}

/// Saved at once, for a process may end at any time; a history that cannot be saved is no reason to stop.
fn remember(editor: &mut LineEditor, input: &str, history: &Path) {
    let saved = editor.add_history_entry(input).and_then(|_| {
        if let Some(dir) = history.parent() {
            fs::create_dir_all(dir)?;
        }
        editor.append_history(history)
    });
    if let Err(error) = saved {
        tracing::debug!(%error, "the history is not saved");
    }
}

/// What the editor must know of the chat: which lines go on, and what can be completed.
struct Manners;

impl Helper for Manners {}
impl Highlighter for Manners {}

impl Hinter for Manners {
    type Hint = String;
}

impl Validator for Manners {
    fn validate(&self, cx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if prompt::is_open(cx.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Completer for Manners {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..at).unwrap_or(line);
        let candidates =
            Slash::NAMES.into_iter().filter(|name| typed.starts_with('/') && name.starts_with(typed));
        Ok((0, candidates.map(str::to_owned).collect()))
    }
}
