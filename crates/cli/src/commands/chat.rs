//! `hart chat`: a conversation, line by line.
//!
//! Invariant: a failed or interrupted run ends the run, not the conversation; what was said before is still there.

mod editor;
mod piped;
mod slash;

use std::io::{self, IsTerminal};

use hart_app::demo::{self, DemoTask};
use hart_app::{Mode, ModelChoice, Tier};
use hart_client::{Ask, ClientError};
use hart_types::{Interrupt, ThreadId};

use crate::approval;
use crate::args::GlobalArgs;
use crate::commands::models;
use crate::commands::run::{ChoiceArgs, Followed, follow, hand_over, introduce, open_questions};
use crate::failure::{Exit, Failure};
use crate::prompt;
use crate::session::{ServerArgs, Session};
use crate::terminal::{Terminal, Tone};
use crate::transcript;
use slash::Slash;

const EXAMPLES: &str = "\
Examples:
  hart chat
  hart chat --thread 0199a0…                  go on where you left off
  printf 'My name is Ada.\\nWhat is my name?\\n' | hart chat

Type /help inside for the commands. A line that ends in \\ goes on in the next.
Without a terminal every line of stdin is a prompt; if there is none and no model
is connected, the first demo task is played.";

/// Talk to the agent.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    at: ServerArgs,
}

pub(crate) fn run(args: ChatArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open_at(&args.at, global, terminal)?;
    let model = Voice::choose(&session, args.choice.model_name(&session).as_deref())?;
    let thread = args.choice.thread.as_deref().map_or_else(ThreadId::generate, ThreadId::from);
    let mut chat = Chat { session: &session, model, choice: args.choice, thread };
    chat.banner();
    if io::stdin().is_terminal() { editor::converse(&mut chat) } else { piped::converse(&mut chat) }
}

struct Chat<'a> {
    session: &'a Session,
    model: Voice,
    choice: ChoiceArgs,
    thread: ThreadId,
}

/// Which model speaks.
#[derive(Clone, Debug)]
enum Voice {
    Here(ModelChoice),
    /// As the server chooses, or as it was named.
    There(Option<String>),
}

impl Voice {
    fn choose(session: &Session, name: Option<&str>) -> Result<Self, Failure> {
        if session.is_remote() {
            return Ok(Self::There(name.map(str::to_owned)));
        }
        Ok(Self::Here(session.block_on(session.choose_model(name))??))
    }

    fn name(&self) -> Option<String> {
        match self {
            Self::Here(model) => Some(model.name.clone()),
            Self::There(name) => name.clone(),
        }
    }

    fn is_demo(&self) -> bool {
        matches!(self, Self::Here(model) if model.is_demo())
    }

    fn introduce(&self, terminal: &Terminal) {
        match self {
            Self::Here(model) => introduce(terminal, model),
            Self::There(Some(name)) => terminal.note(&format!("model: {name}")),
            Self::There(None) => {}
        }
    }
}

/// Whether the conversation goes on, and how the latest run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Next(Exit),
    Quit,
}

impl Chat<'_> {
    /// Does what the user said.
    fn hear(&mut self, input: &str) -> Result<Said, Failure> {
        let text = prompt::unfold(input);
        if text.is_empty() {
            return Ok(Said::Next(Exit::Done));
        }
        match Slash::parse(input) {
            // What is no command of the chat's may be a skill.
            Some(Err(_)) if self.is_skill(&text) => {}
            Some(command) => return self.obey(command),
            None => {}
        }
        match self.demo_task(&text) {
            Some(task) => self.play(task),
            None => self.ask(Ask::new(text), self.model.name()),
        }
    }

    /// Whether a line activates a skill; a server knows by itself which there are.
    fn is_skill(&self, text: &str) -> bool {
        let named = hart_app::knowledge::skills::activation(text);
        named.is_some_and(|(name, _)| {
            self.session.is_remote() || self.session.app.skills().usable(name).is_some()
        })
    }

    fn obey(&mut self, command: Result<Slash, String>) -> Result<Said, Failure> {
        let terminal = &self.session.terminal;
        match command {
            Err(mistake) => terminal.note(&mistake),
            Ok(Slash::Quit) => return Ok(Said::Quit),
            Ok(Slash::Help) => terminal.line(slash::HELP)?,
            Ok(Slash::New) => {
                self.new_thread();
                terminal.line(&format!("new thread {}", self.thread))?;
            }
            Ok(Slash::Thread(None)) => {
                terminal.line(&format!("{}{}", self.thread, self.folder("\n")))?;
            }
            Ok(Slash::Thread(Some(id))) => {
                self.new_thread();
                self.thread = ThreadId::from(id);
                let known = self.session.block_on(self.session.knows(&self.thread))??;
                terminal.line(&format!(
                    "{} thread {}",
                    if known { "back in" } else { "new" },
                    self.thread
                ))?;
            }
            Ok(Slash::Model(None)) => {
                models::print(&self.session.block_on(self.session.client().models())??, terminal)?
            }
            Ok(Slash::Model(Some(name))) => match Voice::choose(self.session, Some(&name)) {
                Ok(model) => {
                    self.model = model;
                    self.model.introduce(terminal);
                }
                Err(failure) => return Ok(Said::Next(failure.report(terminal))),
            },
            Ok(Slash::Mode(None)) => {
                let all = Mode::ALL.map(Mode::name).join(", ");
                terminal.line(&format!("{} (there is: {all})", self.choice.mode))?;
            }
            Ok(Slash::Mode(Some(mode))) => {
                self.choice.mode = mode;
                terminal.line(&format!("mode {mode}"))?;
            }
            Ok(Slash::Files) => self.files()?,
            Ok(Slash::Approve) => return self.settle(),
            Ok(Slash::Demo(None)) => self.list_demo(),
            Ok(Slash::Demo(Some(task))) => return self.play(task),
        }
        Ok(Said::Next(Exit::Done))
    }

    /// Goes on with what the thread waits for, if it waits for something.
    fn settle(&mut self) -> Result<Said, Failure> {
        if !self.session.block_on(self.session.knows(&self.thread))?? {
            return Ok(Said::Next(Exit::Done));
        }
        let open = self.session.block_on(self.session.client().thread(&self.thread))??.interrupts;
        if open.is_empty() {
            return Ok(Said::Next(Exit::Done));
        }
        self.put(&open)
    }

    /// Puts open questions to the user, and goes on with the answers.
    fn put(&mut self, open: &[Interrupt]) -> Result<Said, Failure> {
        let terminal = &self.session.terminal;
        if !approval::somebody_is_there(terminal) {
            approval::explain(terminal, self.thread.as_str(), open);
            return Ok(Said::Next(Exit::Waiting));
        }
        match approval::ask(self.session, open)? {
            Some(answer) => self.ask(Ask::resume(self.thread.clone(), answer), self.model.name()),
            None => {
                terminal.note("the question is still open: /approve shows it again, a new message drops it");
                Ok(Said::Next(Exit::Waiting))
            }
        }
    }

    fn ask(&mut self, ask: Ask, model: Option<String>) -> Result<Said, Failure> {
        let ask = self.choice.apply(ask.thread(self.thread.clone()), model);
        let terminal = &self.session.terminal;
        let Followed { told, ended } = match self.session.block_on(follow(self.session, ask))? {
            Ok(followed) => followed,
            Err(failure) if failure.is_broken_pipe() => return Err(failure),
            Err(failure) => return Ok(Said::Next(failure.report(terminal))),
        };
        hand_over(self.session, &self.thread, &told);
        if let Some(tokens) = transcript::tokens(terminal, &told.usage) {
            terminal.note(&tokens);
        }
        let open = self.session.block_on(open_questions(self.session, &self.thread, &ended))?;
        let exit = match ended {
            Ok(_) => Exit::Done,
            Err(ClientError::Cancelled) => {
                terminal.note("interrupted; what was done is kept");
                Exit::Interrupted
            }
            Err(error) => {
                Failure::from(error).report(terminal);
                Exit::Failed
            }
        };
        if !open.is_empty() {
            return self.put(&open);
        }
        Ok(Said::Next(exit))
    }

    /// A recording knows only its own conversation, so each starts on a thread of its own.
    fn play(&mut self, task: &DemoTask) -> Result<Said, Failure> {
        let terminal = &self.session.terminal;
        terminal.note(&format!("{} {}", terminal.err.paint(Tone::Dim, "(recording)"), task.prompt));
        self.new_thread();
        self.ask(Ask::new(task.prompt), Some(demo::NAME.to_owned()))
    }

    /// The recording that a prompt means, if no model is there to mean something else.
    fn demo_task(&self, text: &str) -> Option<&'static DemoTask> {
        if !self.model.is_demo() {
            return None;
        }
        slash::demo_number(text).or_else(|| demo::TASKS.iter().find(|task| task.prompt == text))
    }

    fn new_thread(&mut self) {
        self.thread = ThreadId::generate();
    }

    fn files(&self) -> Result<(), Failure> {
        let terminal = &self.session.terminal;
        let files = match self.session.block_on(self.session.knows(&self.thread))?? {
            true => self.session.block_on(self.session.client().artifacts(&self.thread))??,
            false => Vec::new(),
        };
        if files.is_empty() {
            terminal.line(&format!(
                "no files were handed over here yet{}",
                self.folder("; the thread's folder is ")
            ))?;
        }
        for file in files {
            terminal.line(&file.location.to_string())?;
        }
        Ok(())
    }

    /// Where the thread's files are, if that is on this machine.
    fn folder(&self, before: &str) -> String {
        match self.session.is_remote() {
            true => String::new(),
            false => format!("{before}{}", self.session.app.thread_dir(&self.thread).display()),
        }
    }

    fn banner(&self) {
        let terminal = &self.session.terminal;
        let name = terminal.err.paint(Tone::Strong, concat!("hart ", env!("CARGO_PKG_VERSION")));
        terminal.note(&format!("{name} · /help for the commands, /quit to leave"));
        self.model.introduce(terminal);
        if self.session.is_remote() {
            return;
        }
        let tier = self.session.app.sandbox_tier().tier;
        let (tone, hint) = match tier {
            Tier::Isolated => (Tone::Dim, ""),
            Tier::Landlock | Tier::Host | Tier::Refused => (Tone::Warn, "; `hart doctor` says why"),
        };
        terminal.note(&terminal.err.paint(tone, format!("commands: {tier}{hint}")));
        if self.model.is_demo() {
            self.list_demo();
        }
    }

    fn list_demo(&self) {
        let terminal = &self.session.terminal;
        terminal.note("Recorded tasks, started by their number or their prompt:");
        for (number, task) in (1..).zip(&demo::TASKS) {
            terminal.note(&format!("  {} {}", terminal.err.paint(Tone::Accent, number), task.title));
            terminal.note(&terminal.err.paint(Tone::Dim, format!("    {}", task.prompt)));
        }
    }
}
