//! The command line as a type.
//!
//! Invariant: parsing reads no file, no key and no network, so that `--help` and `--version` are instant.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand, ValueEnum};

use crate::commands::{
    backup, chaos, chat, completions, config, doctor, export, models, replay, run, runs, serve, skills,
    threads,
};
use crate::failure::{Exit, Failure};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  hart run \"Summarise the newest papers on tidal energy as a slide deck\"
  hart chat                  talk to it
  hart serve                 an HTTP API, for browsers and LangGraph's clients
  hart doctor                is everything there that it needs?

Without a configuration hart takes the model whose key it finds in the
environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), else one that a local server
offers, else it plays a recording. `hart config init` writes a commented
config.yaml to start from.";

/// A super agent for tasks of minutes or hours: it plans, runs code in a sandbox, and hands over files.
#[derive(Debug, Parser)]
#[command(name = "hart", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Chat(chat::ChatArgs),
    Serve(serve::ServeArgs),
    Threads(threads::ThreadsArgs),
    Runs(runs::RunsArgs),
    Replay(replay::ReplayArgs),
    Chaos(chaos::ChaosArgs),
    Export(export::ExportArgs),
    Backup(backup::BackupArgs),
    Skills(skills::SkillsArgs),
    Doctor(doctor::DoctorArgs),
    Models(models::ModelsArgs),
    Config(config::ConfigArgs),
    Completions(completions::CompletionsArgs),
}

/// What every command understands.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct GlobalArgs {
    /// Read this configuration file instead of looking for config.yaml.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Say more about what happens, on stderr; twice for even more. HART_LOG and RUST_LOG choose in detail.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colour; NO_COLOR switches it off too.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

/// A command line that asks for nothing a command could do: help, the version, or a mistake.
#[derive(Debug)]
pub(crate) struct Refusal(clap::Error);

pub(crate) fn parse() -> Result<Args, Refusal> {
    Args::try_parse().map_err(Refusal)
}

impl Refusal {
    pub(crate) fn print(self) -> ExitCode {
        if let Some(task) = self.bare_task() {
            let advice = format!(
                "to give it a task, write: hart run {} (`hart --help` lists the commands)",
                quoted(task)
            );
            let failure = Failure::usage(format!("`{task}` is not a command")).help(advice);
            return failure.report(&Terminal::of_process(ColorChoice::Auto)).into();
        }
        // A reader that has left already is nobody to tell.
        let _ = self.0.print();
        ExitCode::from(u8::try_from(self.0.exit_code()).unwrap_or(Exit::Usage.code()))
    }

    /// The task of somebody who left out `run`.
    fn bare_task(&self) -> Option<&str> {
        if self.0.kind() != ErrorKind::InvalidSubcommand {
            return None;
        }
        let Some(ContextValue::String(text)) = self.0.get(ContextKind::InvalidSubcommand) else {
            return None;
        };
        // Within a command it is that command's word, and no task.
        let usage = self.0.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
        if !usage.contains("hart [OPTIONS] <COMMAND>") {
            return None;
        }
        let mistyped =
            self.0.get(ContextKind::SuggestedSubcommand).is_some() && !text.contains(char::is_whitespace);
        (!mistyped).then_some(text)
    }
}

/// The text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else if text.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", text.replace('\'', r"'\''"))
    } else {
        format!("\"{text}\"")
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn refusal(line: &[&str]) -> Refusal {
        Refusal(Args::try_parse_from(line).unwrap_err())
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn global_flags_go_anywhere() {
        for line in [["hart", "--config", "c.yaml", "models"], ["hart", "models", "--config", "c.yaml"]] {
            let args = Args::try_parse_from(line).unwrap();
            assert_eq!(args.global.config, Some(PathBuf::from("c.yaml")));
        }
    }

    #[test]
    fn a_task_without_run_is_recognised_and_a_typing_error_is_not_one() {
        assert_eq!(refusal(&["hart", "do something"]).bare_task(), Some("do something"));
        assert_eq!(refusal(&["hart", "run something"]).bare_task(), Some("run something"));
        assert_eq!(refusal(&["hart", "xyzzy"]).bare_task(), Some("xyzzy"));
        assert_eq!(refusal(&["hart", "modles"]).bare_task(), None);
        assert_eq!(refusal(&["hart", "skills", "xyzzy"]).bare_task(), None);
        assert_eq!(refusal(&["hart", "run", "--nope"]).bare_task(), None);
    }

    #[test]
    fn quoting_survives_a_shell() {
        assert_eq!(quoted("plain words"), "\"plain words\"");
        assert_eq!(quoted("it's $5"), r"'it'\''s $5'");
    }

    #[test]
    fn every_command_has_examples() {
        for command in Args::command().get_subcommands() {
            assert!(command.get_after_help().is_some(), "{}", command.get_name());
        }
    }
}
