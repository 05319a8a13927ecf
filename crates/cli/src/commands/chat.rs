//! `hart chat`: a conversation, line by line.
//!
//! Invariant: a failed or interrupted run ends the run, not the conversation; what was said before is still there.

mod editor;
mod piped;
mod slash;

use std::io::{self, IsTerminal};

use hart_app::demo::{self, DemoTask};
use hart_app::{Interrupt, Mode, ModelChoice, RunError, Task, TaskInput, Tier};
use hart_types::ThreadId;

use crate::approval;
use crate::args::GlobalArgs;
use crate::commands::models;
use crate::commands::run::{ChoiceArgs, follow, hand_over, introduce};
use crate::failure::{Exit, Failure};
use crate::prompt;
use crate::session::Session;
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
}

pub(crate) fn run(args: ChatArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open(global, terminal)?;
    let model = session.block_on(session.choose_model(args.choice.model.as_deref()))??;
    let thread = args.choice.thread.as_deref().map_or_else(ThreadId::generate, ThreadId::from);
    let mut chat = Chat { session: &session, model, mode: args.choice.mode, plan: args.choice.plan, thread };
    chat.banner();
    if io::stdin().is_terminal() { editor::converse(&mut chat) } else { piped::converse(&mut chat) }
}

struct Chat<'a> {
    session: &'a Session,
    model: ModelChoice,
    mode: Mode,
    plan: Option<bool>,
    thread: ThreadId,
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
        if let Some(command) = Slash::parse(input) {
            return self.obey(command);
        }
        match self.demo_task(&text) {
            Some(task) => self.play(task),
            None => self.ask(&text, self.model.clone()),
        }
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
                terminal.line(&format!(
                    "{}\n{}",
                    self.thread,
                    self.session.app.thread_dir(&self.thread).display()
                ))?;
            }
            Ok(Slash::Thread(Some(id))) => {
                self.new_thread();
                self.thread = ThreadId::from(id);
                let known = self.session.app.has_thread(&self.thread);
                terminal.line(&format!(
                    "{} thread {}",
                    if known { "back in" } else { "new" },
                    self.thread
                ))?;
            }
            Ok(Slash::Model(None)) => {
                models::print(&self.session.block_on(self.session.app.models())??, terminal)?
            }
            Ok(Slash::Model(Some(name))) => {
                match self.session.block_on(self.session.choose_model(Some(&name)))? {
                    Ok(model) => {
                        self.model = model;
                        introduce(terminal, &self.model);
                    }
                    Err(failure) => return Ok(Said::Next(failure.report(terminal))),
                }
            }
            Ok(Slash::Mode(None)) => {
                let all = Mode::ALL.map(Mode::name).join(", ");
                terminal.line(&format!("{} (there is: {all})", self.mode))?;
            }
            Ok(Slash::Mode(Some(mode))) => {
                self.mode = mode;
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
        if !self.session.app.has_thread(&self.thread) {
            return Ok(Said::Next(Exit::Done));
        }
        let open = self.session.block_on(self.session.app.open_questions(&self.thread))?;
        let open = open.map_err(Failure::failed)?;
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
            Some(answer) => self.ask(TaskInput::Resume(answer), self.model.clone()),
            None => {
                terminal.note("the question is still open: /approve shows it again, a new message drops it");
                Ok(Said::Next(Exit::Waiting))
            }
        }
    }

    fn ask(&mut self, input: impl Into<TaskInput>, model: ModelChoice) -> Result<Said, Failure> {
        let mut task = Task::new(input, model);
        task.thread = self.thread.clone();
        task.mode = self.mode;
        task.plan_mode = self.plan;
        let terminal = &self.session.terminal;
        let (told, report) = match self.session.block_on(follow(self.session, &task))? {
            Ok(followed) => followed,
            Err(failure) if failure.is_broken_pipe() => return Err(failure),
            Err(failure) => return Ok(Said::Next(failure.report(terminal))),
        };
        hand_over(self.session, &task, &told, &report);
        if let Some(tokens) = transcript::tokens(terminal, &told.usage) {
            terminal.note(&tokens);
        }
        let exit = match &report.outcome {
            Ok(_) => Exit::Done,
            Err(RunError::Cancelled) => Exit::Interrupted,
            Err(_) => Exit::Failed,
        };
        let open = report.values.interrupts().to_vec();
        match report.outcome {
            Ok(_) => {}
            Err(RunError::Cancelled) => terminal.note("interrupted; what was done is kept"),
            Err(error) => {
                Failure::from(error).report(terminal);
            }
        }
        if !open.is_empty() && exit != Exit::Interrupted {
            return self.put(&open);
        }
        Ok(Said::Next(exit))
    }

    /// A recording knows only its own conversation, so each starts on a thread of its own.
    fn play(&mut self, task: &DemoTask) -> Result<Said, Failure> {
        let model = match self.session.block_on(self.session.choose_model(Some(demo::NAME)))? {
            Ok(model) => model,
            Err(failure) => return Ok(Said::Next(failure.report(&self.session.terminal))),
        };
        let terminal = &self.session.terminal;
        terminal.note(&format!("{} {}", terminal.err.paint(Tone::Dim, "(recording)"), task.prompt));
        self.new_thread();
        self.ask(task.prompt, model)
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
        let app = &self.session.app;
        let state = self.session.block_on(app.state(&self.thread))?.map_err(Failure::failed)?;
        let files = app.artifacts(&self.thread, &state);
        if files.is_empty() {
            let dir = self.session.app.thread_dir(&self.thread);
            terminal.line(&format!(
                "no files were handed over here yet; the thread's folder is {}",
                dir.display()
            ))?;
        }
        for file in files {
            terminal.line(&file.host_path.display().to_string())?;
        }
        Ok(())
    }

    fn banner(&self) {
        let terminal = &self.session.terminal;
        let name = terminal.err.paint(Tone::Strong, concat!("hart ", env!("CARGO_PKG_VERSION")));
        terminal.note(&format!("{name} · /help for the commands, /quit to leave"));
        introduce(terminal, &self.model);
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
