//! `hart completions`: lets a shell complete hart's command line.
//!
//! Invariant: the script is made from the definition of the command line and cannot disagree with it.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Args;
use crate::failure::{Exit, Failure};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  bash:  hart completions bash > ~/.local/share/bash-completion/completions/hart
  zsh:   hart completions zsh > ~/.zfunc/_hart        (a folder of your $fpath)
  fish:  hart completions fish > ~/.config/fish/completions/hart.fish";

/// Print the completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell to print it for.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut Args::command(), "hart", &mut script);
    terminal.raw(&script)?;
    Ok(Exit::Done)
}
