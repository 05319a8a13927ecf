//! The commands one gives to the chat itself.
//!
//! Invariant: only a line that begins with `/` is one; a space before it makes it a prompt.

use hart_app::Mode;
use hart_app::demo::{self, DemoTask};

pub(super) const HELP: &str = "\
/new           start over: a new thread, without what was said and made so far
/thread [ID]   show this thread's id and folder, or go to another one
/model [NAME]  list the models, or ask another one from now on
/mode [MODE]   how hard to think: flash, thinking, pro, ultra
/files         the files that were handed over, with their places on this machine
/approve       decide about the calls that wait for approval
/goal [WORDS]  what the thread is to reach; without words it is told, with `clear` it is gone
/demo [1-3]    list the recorded tasks, or play one
/SKILL task    do it as a skill says; `hart skills` lists them
/help          this
/quit          leave (or Ctrl-D)

Several lines: end a line with \\, or write between \"\"\" and \"\"\".
Pasted text keeps its lines. Ctrl-C stops a running task; at the prompt it clears the line.
A prompt that begins with / needs a space before it.";

#[derive(Debug)]
pub(super) enum Slash {
    Help,
    New,
    Thread(Option<String>),
    Model(Option<String>),
    Mode(Option<Mode>),
    Files,
    Approve,
    Demo(Option<&'static DemoTask>),
    Quit,
}

impl Slash {
    /// For completion.
    pub(super) const NAMES: [&str; 10] =
        ["/approve", "/demo", "/files", "/goal", "/help", "/mode", "/model", "/new", "/quit", "/thread"];

    /// `None` for a prompt; a mistake as it is told to the user.
    pub(super) fn parse(line: &str) -> Option<Result<Self, String>> {
        let line = line.trim_end().strip_prefix('/')?;
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
        let owned = argument.map(str::to_owned);
        // The agent looks after the thread's goal.
        if name == "goal" {
            return None;
        }
        Some(match name {
            "help" | "?" => Ok(Self::Help),
            "new" | "clear" => Ok(Self::New),
            "thread" => Ok(Self::Thread(owned)),
            "model" | "models" => Ok(Self::Model(owned)),
            "mode" => argument.map(str::parse).transpose().map(Self::Mode),
            "files" => Ok(Self::Files),
            "approve" => Ok(Self::Approve),
            "demo" => match argument {
                None => Ok(Self::Demo(None)),
                Some(text) => demo_number(text).map(|task| Self::Demo(Some(task))).ok_or_else(|| {
                    format!("there is no demo task `{text}`; there is 1 to {}", demo::TASKS.len())
                }),
            },
            "quit" | "exit" | "q" => Ok(Self::Quit),
            _ => Err(format!(
                "there is no command /{name}; see /help, or put a space before a prompt that begins with /"
            )),
        })
    }
}

/// The recorded task of that number, counted from 1.
pub(super) fn demo_number(text: &str) -> Option<&'static DemoTask> {
    let number: usize = text.trim().parse().ok()?;
    demo::TASKS.get(number.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_no_command() {
        assert!(Slash::parse("hello /help").is_none());
        assert!(Slash::parse(" /help").is_none());
    }

    #[test]
    fn commands_with_and_without_an_argument() {
        assert!(matches!(Slash::parse("/help"), Some(Ok(Slash::Help))));
        assert!(matches!(Slash::parse("/model"), Some(Ok(Slash::Model(None)))));
        assert!(matches!(Slash::parse("/model  x "), Some(Ok(Slash::Model(Some(name)))) if name == "x"));
        assert!(matches!(Slash::parse("/mode ultra"), Some(Ok(Slash::Mode(Some(Mode::Ultra))))));
        assert!(matches!(Slash::parse("/demo 3"), Some(Ok(Slash::Demo(Some(_))))));
    }

    #[test]
    fn mistakes_are_explained() {
        for (line, hint) in
            [("/mode fast", "flash"), ("/demo 4", "1 to 3"), ("/demo 0", "1 to 3"), ("/etc/hosts?", "/help")]
        {
            let Some(Err(mistake)) = Slash::parse(line) else { panic!("{line}") };
            assert!(mistake.contains(hint), "{mistake}");
        }
    }

    #[test]
    fn what_is_completed_exists_and_is_explained() {
        for name in Slash::NAMES {
            assert!(!matches!(Slash::parse(name), Some(Err(_))), "{name}");
            assert!(HELP.contains(name), "{name}");
        }
    }
}
