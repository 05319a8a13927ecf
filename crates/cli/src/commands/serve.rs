//! `hart serve`: agents behind an HTTP API, until it is told to stop.
//!
//! Invariant: stdout carries the ready line and nothing else; a signal drains, a second one ends the process at once.

use std::io::ErrorKind;
use std::process;

use hart_app::{App, CancellationToken, Env, ModelChoice, ServeError, Server, ServerError};
use serde_json::json;

use crate::args::GlobalArgs;
use crate::browser;
use crate::commands::run::introduce;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::log;
use crate::session::Session;
use crate::terminal::{Terminal, Tone};

const EXAMPLES: &str = "\
Examples:
  hart serve
  hart serve --port 0 --open
  HART_TOKEN=$(openssl rand -hex 24) hart serve --host 0.0.0.0

LangGraph's clients speak to it: give them the address of the ready line and the
assistant `lead_agent`. Ctrl-C lets runs end first (`server.drain_seconds`); a
second one stops at once. Beyond this machine it serves only with a token, which
clients present as `Authorization: Bearer …`.
Exit codes: 0 stopped, 1 failed, 2 wrong usage, configuration or a taken port.";

/// Serve the agent over HTTP: LangGraph's API, on one port.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The address to listen on, instead of `server.host` (127.0.0.1).
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// The port to listen on, instead of `server.port` (2026); 0 takes any that is free.
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Open it in a browser, where there is one.
    #[arg(long)]
    open: bool,
    /// End runs that a crash or a restart cut off with an error, instead of going on with them (`server.resume`).
    #[arg(long)]
    no_resume: bool,
}

pub(crate) fn run(args: ServeArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let overrides = args.no_resume.then(|| json!({"server": {"resume": false}}));
    let session = Session::open_with(global, terminal, overrides)?;
    session.block_on(serve(&session, &args))?
}

async fn serve(session: &Session, args: &ServeArgs) -> Result<Exit, Failure> {
    let terminal = &session.terminal;
    // Before anything is ready: whoever sees the line may send a signal.
    let mut interrupts = Interrupts::listen()?;
    let server = Server::bind(&session.app, args.host.as_deref(), args.port).await?;
    let url = server.url();
    let is_for_people = !log::is_for_machines(&Env::from_process());
    if is_for_people {
        welcome(&session.app, terminal, session.choose_model(None).await);
    }
    terminal.line(&format!("ready: {url}"))?;
    if args.open {
        browser::open(&url, terminal);
    }

    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(server.run(stop.clone()));
    loop {
        tokio::select! {
            served = &mut serving => {
                served?;
                return Ok(Exit::Done);
            }
            () = interrupts.next() => {
                if stop.is_cancelled() {
                    process::exit(i32::from(Exit::Interrupted.code()));
                }
                stop.cancel();
                if !is_for_people {
                    tracing::info!("stopping");
                    continue;
                }
                terminal.note(&terminal.err.paint(Tone::Warn, "stopping… (once more to stop at once)"));
            }
        }
    }
}

/// What somebody who starts it wants to know first.
fn welcome(app: &App, terminal: &Terminal, model: Result<ModelChoice, Failure>) {
    let name = terminal.err.paint(Tone::Strong, concat!("hart ", env!("CARGO_PKG_VERSION")));
    terminal.note(&format!("{name} · data in {}", app.home().display()));
    match model {
        Ok(model) => introduce(terminal, &model),
        // A run names its own model; that the default one cannot be had is told, not fatal.
        Err(failure) => {
            failure.report(terminal);
        }
    }
    let tier = app.sandbox_tier().tier;
    terminal.note(&terminal.err.paint(Tone::Dim, format!("commands: {tier}")));
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let help = match &error {
            ServerError::NoToken(_) => {
                "set HART_TOKEN (or `server.token`) to a long random text, or serve on 127.0.0.1"
            }
            ServerError::Token => {
                "write letters, digits and signs such as `-` into HART_TOKEN, without spaces"
            }
            ServerError::Host { .. } => {
                "name an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them"
            }
            ServerError::Serve(ServeError::Bind { source, .. }) if source.kind() == ErrorKind::AddrInUse => {
                "is hart running already? `hart serve --port 0` takes any port that is free"
            }
            ServerError::Serve(ServeError::Bind { source, .. })
                if source.kind() == ErrorKind::PermissionDenied =>
            {
                "ports below 1024 belong to the system; choose a higher one with --port"
            }
            _ => return Self::failed(error),
        };
        Self::new(Exit::Usage, error.into()).help(help)
    }
}
