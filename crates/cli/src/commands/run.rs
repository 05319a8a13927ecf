//! `hart run`: one task, from the prompt to the answer.
//!
//! Invariant: stdout carries the answer, or the events with `--json`; whatever else there is to say is on stderr.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use futures_util::StreamExt;
use hart_app::{CancellationToken, Mode, ModelChoice};
use hart_client::{Ask, ClientError, End, Event, EventStream};
use hart_types::{Interrupt, Resume, ThreadId, UsageMetadata};

use crate::approval;
use crate::args::{GlobalArgs, quoted};
use crate::failure::{Exit, Failure};
use crate::session::{ServerArgs, Session};
use crate::terminal::{Terminal, Tone};
use crate::transcript::frames::{Ended, Frames};
use crate::transcript::{self, Told, Transcript};

const EXAMPLES: &str = "\
Examples:
  hart run \"Draw a chart of the last ten leap years\"
  hart run --mode ultra --model my-model \"Find the bug in this log\" - < build.log
  hart run --thread 0199a0… \"Now as a PDF, please\"
  hart run --json \"Say hello\" | jq -c .event
  hart run --server http://127.0.0.1:2026 \"Say hello\"
  hart run --agent poet \"Something about rain\"
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
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "server"])]
    record: Option<PathBuf>,
    /// Play the answers recorded in this file instead of asking a model.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "server"])]
    replay: Option<PathBuf>,
    #[command(flatten)]
    at: ServerArgs,
}

/// What `run` and `chat` are told alike.
#[derive(Debug, clap::Args)]
pub(crate) struct ChoiceArgs {
    /// The model to ask, by its name in `hart models`.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The agent to ask: a folder in `agents` of the data directory.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) agent: Option<String>,
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
    let thread = args.choice.thread.as_deref().map_or_else(ThreadId::generate, ThreadId::from);
    let task = if args.resume.is_none() { Some(prompt(&args.task)?) } else { None };
    let mut session = Session::open_at(&args.at, global, terminal)?;
    if let Some(task) = &task {
        known_skill(&session, task)?;
    }
    let ask = match (&args.resume, task) {
        (Some(answer), _) => Ask::resume(thread, parse_answer(answer)?),
        (None, task) => Ask::new(task.unwrap_or_default()).thread(thread),
    };
    let model = choose(&mut session, &args)?;
    session.block_on(notice_new(&session, &args))??;
    let ask = args.choice.apply(ask, model);
    if args.json { session.block_on(json(&session, ask))? } else { plain(&session, ask) }
}

/// A skill that was misspelt is told before anything is asked; a server tells it by itself.
fn known_skill(session: &Session, task: &str) -> Result<(), Failure> {
    let misspelt = if session.is_remote() { None } else { session.app.misspelt_skill(task) };
    match misspelt {
        None => Ok(()),
        Some((name, near)) => {
            let near: Vec<String> = near.iter().map(|near| format!("/{near}")).collect();
            Err(Failure::usage(format!("there is no skill `/{name}`"))
                .help(format!("did you mean {}? `hart skills` lists all", near.join(" or "))))
        }
    }
}

/// The model that works, by its name; a server chooses for itself.
fn choose(session: &mut Session, args: &RunArgs) -> Result<Option<String>, Failure> {
    if session.is_remote() {
        return Ok(args.choice.model.clone());
    }
    let mut model = match &args.replay {
        Some(cassette) => ModelChoice::replay(cassette)?,
        None => session.block_on(session.choose_model(args.choice.model_name(session).as_deref()))??,
    };
    if !args.json {
        introduce(&session.terminal, &model);
    }
    if let Some(cassette) = &args.record {
        model = model.record(cassette)?;
    }
    if args.record.is_some() || args.replay.is_some() {
        session.play(&model);
        return Ok(Some(model.model_name()));
    }
    Ok(Some(model.name))
}

async fn notice_new(session: &Session, args: &RunArgs) -> Result<(), Failure> {
    let Some(name) = &args.choice.thread else { return Ok(()) };
    if session.knows(&ThreadId::from(name.as_str())).await? {
        return Ok(());
    }
    if args.resume.is_some() {
        return Err(Failure::usage(format!("there is no thread `{name}`, so nothing waits for an answer")));
    }
    session.terminal.note(&format!("new thread `{name}`"));
    Ok(())
}

impl ChoiceArgs {
    /// The one that was named, or that of the agent.
    pub(crate) fn model_name(&self, session: &Session) -> Option<String> {
        let of_agent = || session.app.model_of_agent(&self.agent.as_ref()?.to_lowercase());
        self.model.clone().or_else(of_agent)
    }

    pub(crate) fn apply(&self, ask: Ask, model: Option<String>) -> Ask {
        let ask = ask.mode(self.mode);
        let ask = if let Some(agent) = &self.agent { ask.agent(agent.to_lowercase()) } else { ask };
        let ask = if let Some(model) = model { ask.model(model) } else { ask };
        if let Some(plan) = self.plan { ask.plan_mode(plan) } else { ask }
    }
}

async fn json(session: &Session, ask: Ask) -> Result<Exit, Failure> {
    let cancel = CancellationToken::new();
    let (client, terminal) = (session.client(), session.terminal.clone());
    let ask = ask.without_states().cancel(cancel.clone());
    let stop = cancel.clone();
    let ended = session.attend(cancel, async move {
        let stream = client.start(ask).await?;
        Ok::<_, Failure>(Frames::new(terminal, stop).print(stream).await??)
    });
    Ok(match ended.await?? {
        Ended::Finished { nothing_done: true } => Exit::Failed,
        Ended::Finished { .. } => Exit::Done,
        Ended::Paused => Exit::Waiting,
        Ended::Cancelled => Exit::Interrupted,
        Ended::Failed(error) => return Err(Failure::failed(anyhow::Error::msg(error))),
    })
}

fn plain(session: &Session, mut ask: Ask) -> Result<Exit, Failure> {
    let terminal = &session.terminal;
    let mut usage = UsageMetadata::default();
    let thread = ask.thread.clone().unwrap_or_else(ThreadId::generate);
    let (told, ended) = loop {
        let Followed { told, ended } = session.block_on(follow(session, ask.clone()))??;
        hand_over(session, &thread, &told);
        usage.add(&told.usage);
        let open = session.block_on(open_questions(session, &thread, &ended))?;
        if open.is_empty() {
            break (told, ended);
        }
        if let Err(error) = &ended {
            terminal.note(&format!("{} {error}", terminal.err.paint(Tone::Bad, "error:")));
        }
        let answer =
            if approval::somebody_is_there(terminal) { approval::ask(session, &open)? } else { None };
        let Some(answer) = answer else {
            approval::explain(terminal, thread.as_str(), &open);
            return Ok(if ended.is_ok() { Exit::Waiting } else { Exit::Failed });
        };
        ask.words = hart_client::Words::Answer(answer);
    };
    if let Some(tokens) = transcript::tokens(terminal, &usage) {
        terminal.note(&tokens);
    }
    let place = format!("{} --thread {}", session.there(), quoted(thread.as_str()));
    let go_on = |words: &str| format!("hart run{place} \"{words}\"");
    match ended {
        Ok(end) => {
            let cut_short = transcript::cut_short(&end);
            if let Some(why) = cut_short {
                terminal.note(&terminal.err.paint(Tone::Warn, why));
            }
            if cut_short == Some(transcript::NOTHING_DONE) {
                return Ok(Exit::Failed);
            }
            match told.asked {
                true => terminal.note(&format!("to answer: {}", go_on("your answer"))),
                false => terminal.note(&terminal.err.paint(Tone::Dim, format!("to go on: {}", go_on("…")))),
            }
            Ok(Exit::Done)
        }
        Err(ClientError::Cancelled) => {
            terminal.note(&format!("interrupted; what was done is kept. To go on: {}", go_on("go on")));
            Ok(Exit::Interrupted)
        }
        // What could not be saved is not kept.
        Err(ClientError::Run(failure)) if failure.error != "StorageError" => {
            let help = format!("what was done is kept; to go on: {}", go_on("go on"));
            Err(Failure::from(ClientError::Run(failure)).help(help))
        }
        Err(error) => Err(error.into()),
    }
}

/// How a run went: what there is to say of it, and its end or why there was none.
pub(crate) struct Followed {
    pub(crate) told: Told,
    pub(crate) ended: Result<End, ClientError>,
}

/// What the thread waits to be told. Also when an answer did not fit: the question is still there.
pub(crate) async fn open_questions(
    session: &Session,
    thread: &ThreadId,
    ended: &Result<End, ClientError>,
) -> Vec<Interrupt> {
    match ended {
        Ok(end) => end.interrupts.clone(),
        Err(ClientError::Run(_)) => {
            let state = session.client().thread(thread).await;
            state.map(|state| state.interrupts).unwrap_or_default()
        }
        Err(_) => Vec::new(),
    }
}

/// Has a run done before the user's eyes. What keeps it from beginning is a failure.
pub(crate) async fn follow(session: &Session, ask: Ask) -> Result<Followed, Failure> {
    let cancel = CancellationToken::new();
    let (client, terminal) = (session.client(), session.terminal.clone());
    let ask = ask.without_states().cancel(cancel.clone());
    let stop = cancel.clone();
    let following = async move {
        let transcript = Transcript::new(terminal, stop);
        match client.stream(ask).await {
            Ok(events) => watch(transcript, events).await,
            Err(error) => {
                transcript.finish()?;
                Err(Failure::from(error))
            }
        }
    };
    session.attend(cancel, following).await?
}

/// Tells a run as it goes, to its end.
pub(crate) async fn watch(mut transcript: Transcript, mut events: EventStream) -> Result<Followed, Failure> {
    let mut ended = Err(ClientError::Dropped);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                transcript.tell(&event);
                if let Event::End(end) = event {
                    ended = Ok(end);
                }
            }
            Err(error) => ended = Err(error),
        }
    }
    Ok(Followed { told: transcript.finish()?, ended })
}

/// Says where the files of this run are.
pub(crate) fn hand_over(session: &Session, thread: &ThreadId, told: &Told) {
    let (terminal, client) = (&session.terminal, session.client());
    for artifact in told.presented.iter().filter_map(|path| client.locate(thread, path)) {
        terminal.note(&format!("{} {}", terminal.err.paint(Tone::Good, "file:"), artifact.location));
    }
}

fn parse_answer(text: &str) -> Result<Resume, Failure> {
    serde_json::from_str(text).map(Resume::from_json).map_err(|error| {
        Failure::usage(format!("--resume is not JSON: {error}"))
            .help("write for example: --resume '{\"decisions\": [{\"type\": \"approve\"}]}'")
    })
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
