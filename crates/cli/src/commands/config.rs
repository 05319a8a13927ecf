//! `hart config`: writes, checks and explains the configuration.
//!
//! Invariant: no secret is printed, and no existing file is lost.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Subcommand;
use hart_app::Env;
use hart_app::config::{self, AppConfig};

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::{load_options, working_directory};
use crate::terminal::{Terminal, Tone};

const EXAMPLES: &str = "\
Examples:
  hart config init                 write a commented config.yaml to start from
  hart config check                is it right? names every mistake with its line
  hart config explain              every setting, its value, and who set it
  hart config explain sandbox      one of them

The file is ./config.yaml, or what --config or HART_CONFIG names.
hart works without one.";

/// Write, check or explain the configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write a commented config.yaml to start from.
    Init {
        /// Where to; here if not given.
        dir: Option<PathBuf>,
        /// Replace an existing file; the old one is kept as config.yaml.bak.
        #[arg(long)]
        force: bool,
    },
    /// Say everything that is wrong with the configuration.
    Check,
    /// Say what a setting means, what it is set to, and who set it.
    Explain {
        /// As in `sandbox.allow_host_bash` or `models[0].base_url`; everything if not given.
        key: Option<String>,
    },
}

pub(crate) fn run(args: ConfigArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    match args.action {
        Action::Init { dir, force } => init(dir, force, global, terminal),
        Action::Check => check(global, terminal),
        Action::Explain { key } => explain(key.as_deref(), global, terminal),
    }
}

fn init(
    dir: Option<PathBuf>,
    force: bool,
    global: &GlobalArgs,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    if global.config.is_some() {
        return Err(Failure::usage("`config init` writes a file called config.yaml")
            .help("leave out --config; name the folder instead: hart config init FOLDER"));
    }
    let dir = dir.map_or_else(working_directory, Ok)?;
    if force && let Some(kept) = set_aside(&dir.join("config.yaml"))? {
        terminal.note(&format!("the old file is kept as {}", kept.display()));
    }
    let path = config::init(&dir).map_err(|error| {
        let exists = dir.join("config.yaml").exists();
        let failure = Failure::new(Exit::Usage, error.into());
        if exists {
            failure.help("--force replaces it and keeps the old one as config.yaml.bak")
        } else {
            failure
        }
    })?;
    terminal
        .line(&format!("{} is written. Open it, choose a model, then try `hart doctor`.", path.display()))?;
    Ok(Exit::Done)
}

fn check(global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let env = Env::from_process();
    let report = AppConfig::check(load_options(global, &env)?);
    for warning in &report.warnings {
        terminal.note(&warning.to_string());
    }
    for (position, problem) in report.problems.iter().enumerate() {
        if position > 0 {
            terminal.note("");
        }
        terminal.note(&problem.to_string());
    }
    if !report.is_ok() {
        return Ok(Exit::Usage);
    }
    let what = match &report.source {
        Some(path) => format!("{} is right", path.display()),
        None => "there is no config.yaml; the defaults are in force".to_owned(),
    };
    terminal.line(&format!("{} {what}", terminal.out.paint(Tone::Good, "✓")))?;
    Ok(Exit::Done)
}

fn explain(key: Option<&str>, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let env = Env::from_process();
    let wrong = |error: config::ConfigError| Failure::new(Exit::Usage, error.into());
    let config = AppConfig::load(load_options(global, &env)?).map_err(wrong)?;
    let explanations = match key {
        Some(key) => config.explain_below(key).map_err(wrong)?,
        None => config.explain_all(),
    };
    for (position, explanation) in explanations.iter().enumerate() {
        if position > 0 {
            terminal.line("")?;
        }
        terminal.line(&explanation.to_string())?;
    }
    Ok(Exit::Done)
}

/// Renames the file out of the way, to a name that is free.
fn set_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    let names = std::iter::once("yaml.bak".to_owned()).chain((2..).map(|n| format!("yaml.bak{n}")));
    let free = names.map(|name| path.with_extension(name)).find(|name| fs::symlink_metadata(name).is_err());
    if let Some(kept) = &free {
        fs::rename(path, kept)?;
    }
    Ok(free)
}
