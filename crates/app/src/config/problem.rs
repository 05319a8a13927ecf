//! What is wrong with a configuration, and what may be overlooked in it.
//!
//! Invariant: no text in here holds a secret; whoever makes a [`Problem`] names fields and variables, not values.

use std::collections::BTreeSet;
use std::fmt;

use super::node::{Mark, Path};

/// The configuration cannot be used; `Display` is one paragraph per problem, in the order of the file.
#[derive(Debug, thiserror::Error)]
#[error("{}", Paragraphs(.problems))]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// Never empty.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

/// One thing that must be changed before hart starts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// One line, opening with the field it is about.
    pub message: String,
    pub place: Place,
    /// The offending line with a caret below, for errors of syntax.
    pub excerpt: Option<String>,
    pub help: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, place: Place) -> Self {
        Self { message: message.into(), place, excerpt: None, help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.place {
            Place::Nowhere => {}
            place => write!(f, "\n  --> {place}")?,
        }
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{excerpt}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// Something that works, but perhaps not as its writer thinks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    pub message: String,
    pub place: Place,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Nowhere => write!(f, "warning: {}", self.message),
            place => write!(f, "warning: {place}: {}", self.message),
        }
    }
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Nowhere,
    File {
        file: String,
        line: u64,
        column: u64,
    },
    /// The file as a whole.
    WholeFile {
        file: String,
    },
    Override,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => Ok(()),
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::WholeFile { file } => f.write_str(file),
            Self::Override => f.write_str("(override)"),
        }
    }
}

/// Gathers what every pass finds, so that a user sees all of it at once.
#[derive(Default)]
pub(crate) struct Findings {
    /// The file as messages call it.
    pub(crate) file: Option<String>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Warning>,
    /// What must not be read in any message, each with what stands in its place.
    pub(crate) secrets: Vec<(String, String)>,
    /// Units (`models[0]`, `sandbox`) with a value of the wrong type: converting them would only say it again.
    pub(crate) broken: BTreeSet<String>,
}

impl Findings {
    pub(crate) fn place(&self, mark: &Mark) -> Place {
        match (mark.pos, &self.file) {
            (Some(pos), Some(file)) => Place::File { file: file.clone(), line: pos.line, column: pos.column },
            _ => Place::Override,
        }
    }

    pub(crate) fn whole_file(&self) -> Place {
        self.file.clone().map_or(Place::Nowhere, |file| Place::WholeFile { file })
    }

    pub(crate) fn problem(&mut self, mark: &Mark, message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(mark);
        self.problems.push(Problem::new(message, place).help(help));
    }

    /// A problem after which the unit that `path` lies in cannot be converted.
    pub(crate) fn breakage(
        &mut self,
        path: &Path,
        mark: &Mark,
        what: impl fmt::Display,
        help: impl Into<String>,
    ) {
        self.broken.insert(path.unit().to_string());
        self.problem(mark, format!("{path}: {what}"), help);
    }

    pub(crate) fn warn(&mut self, place: Place, message: impl Into<String>) {
        self.warnings.push(Warning { message: message.into(), place });
    }

    /// Sorted by place, without repetition and without secrets, whatever a lower layer put into its message.
    pub(crate) fn finish(&mut self) {
        // The longest first, so that a secret that contains another one is not left in pieces.
        self.secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        let secrets = std::mem::take(&mut self.secrets);
        let hide = |text: &mut String| {
            // Shorter ones are words like `true` or `8080`, and would be replaced in the middle of others.
            for (secret, stand_in) in secrets.iter().filter(|(secret, _)| secret.len() >= 6) {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), stand_in);
                }
            }
        };
        for problem in &mut self.problems {
            hide(&mut problem.message);
            problem.help.iter_mut().for_each(&hide);
        }
        self.warnings.iter_mut().for_each(|warning| hide(&mut warning.message));
        self.problems.sort_by(|a, b| a.place.cmp(&b.place));
        self.problems.dedup();
    }

    pub(crate) fn into_error(mut self) -> ConfigError {
        self.finish();
        ConfigError { problems: self.problems }
    }
}

struct Paragraphs<'a>(&'a [Problem]);

impl fmt::Display for Paragraphs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("\n\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}
