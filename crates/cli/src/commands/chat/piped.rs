//! The chat without a terminal: every line of stdin is a prompt.
//!
//! Invariant: it ends when its input does, and an interrupt ends it too.

use std::io::{self, BufRead};
use std::thread;

use hart_app::demo;
use tokio::sync::mpsc;

use super::{Chat, Said};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::prompt;

pub(super) fn converse(chat: &mut Chat<'_>) -> Result<Exit, Failure> {
    let mut lines = read_lines();
    // One for the whole conversation: it also hears what comes between two prompts or at the very end of a run.
    let mut interrupts = chat.session.block_on(async { Interrupts::listen() })??;
    let mut worst = Exit::Done;
    let mut heard = false;
    while let Some(input) = next_input(chat, &mut lines, &mut interrupts)? {
        let Input::Text(input) = input else { return Ok(Exit::Interrupted) };
        heard |= !input.trim().is_empty();
        match chat.hear(&input)? {
            Said::Quit => return Ok(worst),
            Said::Next(Exit::Interrupted) => return Ok(Exit::Interrupted),
            // The next line would drop the question.
            Said::Next(Exit::Waiting) => return Ok(Exit::Waiting),
            Said::Next(Exit::Done) => {}
            Said::Next(exit) => worst = exit,
        }
    }
    if !heard {
        return nothing_said(chat);
    }
    Ok(worst)
}

/// Nobody is there to talk: with no model connected the first recording shows what there is to see.
fn nothing_said(chat: &mut Chat<'_>) -> Result<Exit, Failure> {
    match demo::TASKS.first() {
        Some(task) if chat.model.is_demo() => match chat.play(task)? {
            Said::Next(exit) => Ok(exit),
            Said::Quit => Ok(Exit::Done),
        },
        _ => {
            chat.session
                .terminal
                .note("Nothing was said. Run `hart chat` in a terminal, or `hart run \"a task\"`.");
            Ok(Exit::Done)
        }
    }
}

enum Input {
    Text(String),
    Interrupted,
}

/// The next prompt: a line, and those it goes on in.
fn next_input(
    chat: &Chat<'_>,
    lines: &mut mpsc::Receiver<io::Result<String>>,
    interrupts: &mut Interrupts,
) -> Result<Option<Input>, Failure> {
    chat.session.block_on(async {
        let mut text = String::new();
        loop {
            let line = tokio::select! {
                biased;
                () = interrupts.next() => return Ok(Some(Input::Interrupted)),
                line = lines.recv() => line,
            };
            let Some(line) = line else {
                return Ok((!text.is_empty()).then_some(Input::Text(text)));
            };
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&line?);
            if !prompt::is_open(&text) {
                return Ok(Some(Input::Text(text)));
            }
        }
    })?
}

/// On a thread of its own, which ends with its input or the process: a blocking read cannot be cancelled.
fn read_lines() -> mpsc::Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel(1);
    thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map(|bytes| String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned());
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
