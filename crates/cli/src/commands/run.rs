//! `hart run`: one task, from the prompt to the answer.
//!
//! Invariant: stdout carries the answer, or the events with `--json`; whatever else there is to say is on stderr.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hart_app::{
    CancellationToken, Ended, EventSink, Mode, ModelChoice, Resume, RunError, RunReport, Task, TaskInput,
};
use hart_types::{RunId, ThreadId, UsageMetadata};

use crate::approval;
use crate::args::{GlobalArgs, quoted};
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::{Terminal, Tone};
use crate::transcript::frames::Frames;
use crate::transcript::{self, Told, Transcript};

const EXAMPLES: &str = "\
Examples:
  hart run \"Draw a chart of the last ten leap years\"
  hart run --mode ultra --model my-model \"Find the bug in this log\" - < build.log
  hart run --thread 0199a0… \"Now as a PDF, please\"
  hart run --json \"Say hello\" | jq -c .event
  hart run --thread 0199a0… --resume '{\"decisions\": [{\"type\": \"approve\"}]}'

The answer goes to stdout as it is written, everything else to stderr.
Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 waiting for
approval, 130 interrupted.";

/// Do one task and print the answer.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// What to do. `-` reads it from stdin, after the other words if there are any.
    #[arg(value_name = "TASK")]
    task: Vec<String>,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Answer what the thread asked, as JSON, instead of giving it a task.
    #[arg(long, value_name = "JSON", requires = "thread", conflicts_with = "task")]
    resume: Option<String>,
    /// Print every event as one line of JSON.
    #[arg(long)]
    json: bool,
    /// Write what the model answers to this file as well, to be played again.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Play the answers recorded in this file instead of asking a model.
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    replay: Option<PathBuf>,
}

/// What `run` and `chat` are told alike.
#[derive(Debug, clap::Args)]
pub(crate) struct ChoiceArgs {
    /// The model to ask, by its name in `hart models`.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// How hard to think: flash answers at once, ultra takes as long as it needs.
    #[arg(long, value_name = "MODE", default_value = "pro", value_parser = mode_parser())]
    pub(crate) mode: Mode,
    /// Keep a list of steps and work through it; pro and ultra do unless you say --plan=false.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) plan: Option<bool>,
    /// Go on with this conversation and its files; a new name starts a new one.
    #[arg(short, long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) thread: Option<String>,
}

pub(crate) fn run(args: RunArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let input = match &args.resume {
        Some(answer) => TaskInput::Resume(parse_answer(answer)?),
        None => prompt(&args.task)?.into(),
    };
    let session = Session::open(global, terminal)?;
    let task = session.block_on(task(&session, &args, input))??;
    if args.json { session.block_on(json(&session, &task))? } else { plain(&session, task) }
}

async fn task(session: &Session, args: &RunArgs, input: TaskInput) -> Result<Task, Failure> {
    let mut model = match &args.replay {
        Some(cassette) => ModelChoice::replay(cassette)?,
        None => session.choose_model(args.choice.model.as_deref()).await?,
    };
    if !args.json {
        introduce(&session.terminal, &model);
    }
    if let Some(cassette) = &args.record {
        model = model.record(cassette)?;
    }
    let mut task = Task::new(input, model);
    task.mode = args.choice.mode;
    task.plan_mode = args.choice.plan;
    if let Some(name) = &args.choice.thread {
        task.thread = ThreadId::from(name.as_str());
        let known = session.app.has_thread(&task.thread);
        if !known && args.resume.is_some() {
            return Err(Failure::usage(format!(
                "there is no thread `{name}`, so nothing waits for an answer"
            )));
        }
        if !known {
            session.terminal.note(&format!("new thread `{name}`"));
        }
    }
    Ok(task)
}

async fn json(session: &Session, task: &Task) -> Result<Exit, Failure> {
    let cancel = CancellationToken::new();
    let frames = Arc::new(Frames::new(session.terminal.clone(), cancel.clone(), task));
    let report = session.execute(task, Arc::clone(&frames) as Arc<dyn EventSink>, cancel).await?;
    frames.finish(&report)?;
    let nothing_done = transcript::cut_short(&report) == Some(transcript::NOTHING_DONE);
    match report.outcome {
        Ok(Ended::Paused) => Ok(Exit::Waiting),
        Ok(_) if nothing_done => Ok(Exit::Failed),
        Ok(_) => Ok(Exit::Done),
        Err(RunError::Cancelled) => Ok(Exit::Interrupted),
        Err(error) => Err(error.into()),
    }
}

fn plain(session: &Session, mut task: Task) -> Result<Exit, Failure> {
    let terminal = &session.terminal;
    let mut usage = UsageMetadata::default();
    let (told, report) = loop {
        let (told, report) = session.block_on(follow(session, &task))??;
        hand_over(session, &task, &told, &report);
        usage.add(&told.usage);
        let open = report.values.interrupts();
        // Also when an answer did not fit: the question is still there.
        if open.is_empty() || matches!(report.outcome, Err(RunError::Cancelled)) {
            break (told, report);
        }
        if let Err(error) = &report.outcome {
            tell(terminal, error);
        }
        let answer = if approval::somebody_is_there(terminal) { approval::ask(session, open)? } else { None };
        let Some(answer) = answer else {
            approval::explain(terminal, task.thread.as_str(), open);
            return Ok(if report.outcome.is_ok() { Exit::Waiting } else { Exit::Failed });
        };
        task.input = TaskInput::Resume(answer);
        task.run = RunId::generate();
    };
    if let Some(tokens) = transcript::tokens(terminal, &usage) {
        terminal.note(&tokens);
    }
    let go_on = |words: &str| format!("hart run --thread {} \"{words}\"", quoted(task.thread.as_str()));
    let cut_short = transcript::cut_short(&report);
    if let Some(why) = cut_short {
        terminal.note(&terminal.err.paint(Tone::Warn, why));
    }
    match report.outcome {
        Ok(_) if cut_short == Some(transcript::NOTHING_DONE) => return Ok(Exit::Failed),
        Ok(_) if told.asked => terminal.note(&format!("to answer: {}", go_on("your answer"))),
        Ok(_) => terminal.note(&terminal.err.paint(Tone::Dim, format!("to go on: {}", go_on("…")))),
        Err(RunError::Cancelled) => {
            terminal.note(&format!("interrupted; what was done is kept. To go on: {}", go_on("go on")));
            return Ok(Exit::Interrupted);
        }
        // What could not be saved is not kept.
        Err(error @ RunError::Checkpoint(_)) => return Err(Failure::from(error)),
        Err(error) => {
            let help = format!("what was done is kept; to go on: {}", go_on("go on"));
            return Err(Failure::from(error).help(help));
        }
    }
    Ok(Exit::Done)
}

/// Why an answer was not taken: the last link, which is about the answer.
fn tell(terminal: &Terminal, error: &RunError) {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    terminal.note(&format!("{} {cause}", terminal.err.paint(Tone::Bad, "error:")));
}

fn parse_answer(text: &str) -> Result<Resume, Failure> {
    serde_json::from_str(text).map(Resume::from_json).map_err(|error| {
        Failure::usage(format!("--resume is not JSON: {error}"))
            .help("write for example: --resume '{\"decisions\": [{\"type\": \"approve\"}]}'")
    })
}

/// Runs a task before the user's eyes.
pub(crate) async fn follow(session: &Session, task: &Task) -> Result<(Told, RunReport), Failure> {
    let cancel = CancellationToken::new();
    let transcript = Arc::new(Transcript::new(session.terminal.clone(), cancel.clone()));
    let ran = session.execute(task, Arc::clone(&transcript) as Arc<dyn EventSink>, cancel).await;
    let told = transcript.finish(ran.as_ref().ok())?;
    Ok((told, ran?))
}

/// Says where the files of this run are.
pub(crate) fn hand_over(session: &Session, task: &Task, told: &Told, report: &RunReport) {
    let terminal = &session.terminal;
    for artifact in session.app.artifacts(&task.thread, report.state()) {
        if told.presented.contains(&artifact.path) {
            terminal.note(&format!(
                "{} {}",
                terminal.err.paint(Tone::Good, "file:"),
                artifact.host_path.display()
            ));
        }
    }
}

/// Says which model works and why; of the demo, that it is one.
pub(crate) fn introduce(terminal: &Terminal, model: &ModelChoice) {
    if model.is_demo() {
        terminal.note(
            &terminal
                .err
                .paint(Tone::Warn, "No model is connected: this is a recording, played with the real tools."),
        );
        terminal.note(CONNECT);
    } else {
        let ModelChoice { name, reason, .. } = model;
        terminal.note(&terminal.err.paint(Tone::Dim, format!("model: {name} ({reason})")));
    }
}

const CONNECT: &str = "\
To connect one: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local server such as Ollama,
or write a config.yaml (`hart config init`). `hart models` lists what there is.";

pub(crate) fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(Mode::name)).try_map(|name| name.parse::<Mode>())
}

/// The task's words: from the command line, from stdin, or both.
fn prompt(words: &[String]) -> Result<String, Failure> {
    let asks_stdin = words.iter().any(|word| word == "-") || (words.is_empty() && !io::stdin().is_terminal());
    let mut text = words.iter().filter(|word| *word != "-").cloned().collect::<Vec<_>>().join(" ");
    if asks_stdin {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        let piped = String::from_utf8(bytes).map_err(|_| {
            Failure::usage("stdin is not UTF-8 text")
                .help("the task is text; a file to work on can be mounted into the sandbox: `hart config explain sandbox.mounts`")
        })?;
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&piped);
    }
    if text.trim().is_empty() {
        return Err(
            Failure::usage("there is no task").help("write it behind the command: hart run \"what to do\"")
        );
    }
    Ok(text)
}
