//! What is wrong with a skill's files, for whoever wrote them.
//!
//! Invariant: every mistake has its place and says what to write instead.

use std::fmt;

use serde::Serialize;

use super::manifest::MANIFEST;

/// Something that is wrong with a file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mistake {
    pub code: MistakeCode,
    pub severity: Severity,
    pub file: String,
    /// From 1.
    pub line: usize,
    pub message: String,
    pub help: String,
}

/// What kind of mistake it is, for whoever treats one differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MistakeCode {
    /// The file says something that cannot be used.
    Content,
    /// The folder and the skill have different names.
    FolderName,
    /// Clients understand its name as something else.
    ReservedName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Warning,
    /// The skill cannot be used.
    Error,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.file, self.line, self.message, self.help)
    }
}

pub(super) fn mistake(
    severity: Severity,
    line: usize,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Mistake {
    let (file, message, help) = (MANIFEST.to_owned(), message.into(), help.into());
    Mistake { code: MistakeCode::Content, severity, file, line, message, help }
}

pub(super) fn error(line: usize, message: impl Into<String>, help: impl Into<String>) -> Mistake {
    mistake(Severity::Error, line, message, help)
}
