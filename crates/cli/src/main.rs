//! The binary `hart`: give it a task, talk to it, serve it, ask how it is.
//!
//! Invariant: this file is a table of contents; what a command does is in `commands/<name>.rs`.

mod approval;
mod args;
mod browser;
mod commands;
mod failure;
mod interrupt;
mod log;
mod prompt;
mod session;
mod terminal;
mod transcript;

use std::process::ExitCode;

use args::{Args, Command};
use failure::{Exit, Failure};
use terminal::Terminal;

/// What one thread takes another gives back here all the time, which glibc's is slow at (ADR 0034).
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let Args { command, global } = match args::parse() {
        Ok(args) => args,
        Err(refusal) => return refusal.print(),
    };
    let terminal = Terminal::of_process(global.color);
    let done = match command {
        Command::Run(args) => commands::run::run(args, &global, &terminal),
        Command::Chat(args) => commands::chat::run(args, &global, &terminal),
        Command::Serve(args) => commands::serve::run(args, &global, &terminal),
        Command::Threads(args) => commands::threads::run(&args, &global, &terminal),
        Command::Runs(args) => commands::runs::run(&args, &global, &terminal),
        Command::Replay(args) => commands::replay::run(&args, &global, &terminal),
        Command::Chaos(args) => commands::chaos::run(args, &global, &terminal),
        Command::Export(args) => commands::export::run(&args, &global, &terminal),
        Command::Backup(args) => commands::backup::run(&args, &global, &terminal),
        Command::Skills(args) => commands::skills::run(&args, &global, &terminal),
        Command::Doctor(args) => commands::doctor::run(&args, &global, &terminal),
        Command::Models(args) => commands::models::run(&args, &global, &terminal),
        Command::Config(args) => commands::config::run(args, &global, &terminal),
        Command::Completions(args) => commands::completions::run(&args, &terminal),
    };
    done.unwrap_or_else(|failure: Failure| failure.report(&terminal)).into()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
