//! How a command ends: its exit code, and an error as people read it.
//!
//! Invariant: the chain of sources is printed here and nowhere else, each link once, the remedy last.

use std::io;

use hart_app::{ChooseError, OpenError, ProbeError};
use hart_client::ClientError;

use crate::terminal::{Terminal, Tone};

/// What scripts see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    /// The command line or the configuration is wrong: trying again will not help.
    Usage,
    /// A person must answer before it goes on.
    Waiting,
    Interrupted,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Waiting => 3,
            Self::Interrupted => 130,
        }
    }
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
    help: Vec<String>,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, anyhow::Error::msg(message.into()))
    }

    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::Failed, error.into())
    }

    pub(crate) fn new(exit: Exit, error: anyhow::Error) -> Self {
        Self { exit, error, help: Vec::new() }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    pub(crate) fn source<E: std::error::Error + Send + Sync + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// Tells the user and returns how to exit.
    pub(crate) fn report(&self, terminal: &Terminal) -> Exit {
        if self.is_broken_pipe() {
            // `hart … | head`: the reader has what it wanted.
            return Exit::Done;
        }
        for line in self.lines(terminal) {
            terminal.note(&line);
        }
        self.exit
    }

    fn lines(&self, terminal: &Terminal) -> Vec<String> {
        let look = terminal.err;
        let mut lines = Vec::new();
        let mut links: Vec<String> = Vec::new();
        for link in self.error.chain().map(ToString::to_string) {
            // Some libraries repeat their source in their own message.
            if !links.iter().any(|said| said.contains(&link)) {
                links.push(link);
            }
        }
        for (position, link) in links.iter().enumerate() {
            let (first, rest) = link.split_once('\n').unwrap_or((link, ""));
            // A configuration's problems come with their own headings.
            let first = first.strip_prefix("error: ").unwrap_or(first);
            let heading = if position == 0 {
                look.paint(Tone::Bad, "error:")
            } else {
                look.paint(Tone::Dim, "  because:")
            };
            lines.push(format!("{heading} {first}"));
            lines.extend(rest.lines().map(str::to_owned));
        }
        lines.extend(self.help.iter().map(|help| format!("{} {help}", look.paint(Tone::Good, "help:"))));
        lines
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        self.source::<io::Error>().is_some_and(broken)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Config(_) => Self::new(Exit::Usage, error.into()),
            error => Self::failed(error).help("`hart doctor` says what is missing on this machine"),
        }
    }
}

impl From<ChooseError> for Failure {
    fn from(error: ChooseError) -> Self {
        let help = match &error {
            ChooseError::NotConnected => Some("`hart doctor` says how to connect one"),
            ChooseError::Env(_) => {
                Some("correct the variable or unset it, or name another model with --model")
            }
            _ => None,
        };
        let failure = Self::new(Exit::Usage, error.into());
        help.into_iter().fold(failure, Self::help)
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Model(error) => error.into(),
            error @ ProbeError::Save { .. } => Self::failed(error),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Cancelled => Self::new(Exit::Interrupted, error.into()),
            ClientError::Busy(_) => Self::failed(error)
                .help("leave out --thread to start another; `hart runs` says what is going on"),
            ClientError::NoThread(_) => {
                Self::new(Exit::Usage, error.into()).help("`hart threads` lists them")
            }
            ClientError::NoAgent(_) => Self::new(Exit::Usage, error.into())
                .help("`hart doctor` lists them, on the machine whose agents they are, and says why one is not used"),
            ClientError::NoRun(_) => Self::new(Exit::Usage, error.into()).help("`hart runs` lists them"),
            ClientError::Forgotten(_) => Self::failed(error)
                .help("`hart runs show` tells how it went, `hart threads show` what came of it"),
            ClientError::Address { .. } | ClientError::Unauthorized { .. } => {
                Self::new(Exit::Usage, error.into())
            }
            ClientError::Other(error) => match error.downcast::<ChooseError>() {
                Ok(error) => (*error).into(),
                Err(error) => Self::failed(anyhow::Error::from_boxed(error)),
            },
            error => Self::failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn reported(failure: &Failure) -> (Exit, String) {
        let (terminal, _, err) = Terminal::fake(false);
        (failure.report(&terminal), err.text())
    }

    #[test]
    fn the_chain_is_told_link_by_link_without_repetition() {
        let error = anyhow!("refused").context("cannot connect: refused").context("the model is gone");
        let (exit, said) = reported(&Failure::failed(error).help("start it"));
        assert_eq!(exit, Exit::Failed);
        assert_eq!(said, "error: the model is gone\n  because: cannot connect: refused\nhelp: start it\n");
    }

    #[test]
    fn a_message_with_a_heading_of_its_own_keeps_its_lines() {
        let (exit, said) = reported(&Failure::usage("error: bad key\n  --> c.yaml:1:2"));
        assert_eq!((exit, said.as_str()), (Exit::Usage, "error: bad key\n  --> c.yaml:1:2\n"));
    }

    #[test]
    fn a_reader_that_left_is_no_error() {
        let (exit, said) = reported(&io::Error::from(io::ErrorKind::BrokenPipe).into());
        assert_eq!((exit, said.as_str()), (Exit::Done, ""));
    }

    #[test]
    fn exit_codes_are_those_that_are_documented() {
        let codes = [Exit::Done, Exit::Failed, Exit::Usage, Exit::Waiting, Exit::Interrupted].map(Exit::code);
        assert_eq!(codes, [0, 1, 2, 3, 130]);
        assert_eq!(Failure::from(ClientError::Cancelled).exit, Exit::Interrupted);
    }
}
