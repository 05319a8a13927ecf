//! Looks for what a skill must not hold: a fixed set of rules over every byte of its package.
//!
//! Invariant: no file is left out and none is cut; the same package gives the same findings, whoever asks.

mod kinds;
mod rules;
mod text;

use std::fmt;

use serde::Serialize;

use super::manifest::MANIFEST;
use super::package::{Limits, Package, PackagedFile};
use super::{archive, tarball};
use kinds::Kind;

/// What the rules say of a package.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scan {
    /// The gravest first.
    pub findings: Vec<Finding>,
    pub files: usize,
    /// How many bytes were looked at: all of them.
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    pub level: Level,
    pub file: String,
    /// From 1, in files of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub message: String,
    pub help: &'static str,
    /// What was found; left out where it is a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// How grave it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Worth knowing.
    Note,
    /// A person or a model should look at it.
    Warn,
    /// The package is not taken.
    Block,
}

impl Scan {
    pub fn blocked(&self) -> bool {
        self.worst() == Some(Level::Block)
    }

    pub fn worst(&self) -> Option<Level> {
        self.findings.iter().map(|finding| finding.level).max()
    }

    pub fn blocking(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Block)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, file, message, .. } = self;
        match self.line {
            Some(line) => write!(f, "{file}:{line}: {message} [{rule}]")?,
            None => write!(f, "{file}: {message} [{rule}]")?,
        }
        match &self.evidence {
            Some(evidence) => write!(f, ": {evidence}"),
            None => Ok(()),
        }
    }
}

/// Looks at every file.
pub fn scan(package: &Package) -> Scan {
    let mut scan = Scan::default();
    for (path, file) in package.files() {
        scan.files += 1;
        scan.bytes += file.bytes.len() as u64;
        look(path, file, 0, &mut scan.findings);
    }
    scan.findings
        .sort_by(|a, b| b.level.cmp(&a.level).then_with(|| a.file.cmp(&b.file)).then(a.line.cmp(&b.line)));
    scan
}

/// Whether a file is meant to be run: the rules are stricter for these.
pub(super) fn is_executable(path: &str, file: &PackagedFile) -> bool {
    const CODE: [&str; 24] = [
        "py", "pyw", "sh", "bash", "zsh", "fish", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "ps1", "psm1",
        "bat", "cmd", "vbs", "lua", "r", "go", "rs", "c", "java",
    ];
    path.starts_with("scripts/")
        || file.executable
        || file.bytes.starts_with(b"#!")
        || extension(path).is_some_and(|ext| CODE.contains(&ext.as_str()))
}

pub(super) fn extension(path: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map(|(_, ext)| ext.to_ascii_lowercase())
}

/// How deep containers are opened; what is deeper is refused.
const DEEPEST: usize = 1;

fn look(path: &str, file: &PackagedFile, depth: usize, findings: &mut Vec<Finding>) {
    let mut tell = |rule, level, message: &str, help| {
        let message = message.to_owned();
        findings.push(Finding {
            rule,
            level,
            file: path.to_owned(),
            line: None,
            message,
            help,
            evidence: None,
        });
    };
    if path != MANIFEST && path.rsplit('/').next() == Some(MANIFEST) && depth == 0 {
        let help = "one package, one skill: install the other by itself";
        tell("nested-skill", Level::Warn, "there is another SKILL.md inside", help);
    }
    hidden(path, &mut tell);
    match Kind::of(path, &file.bytes) {
        Kind::Program(what) => {
            let help = "ship the source and let it be run, or leave it out";
            tell("program", Level::Block, &format!("it is a compiled program ({what})"), help);
        }
        Kind::Bytecode => {
            let help = "ship the source; what is compiled cannot be read by anyone";
            tell("bytecode", Level::Block, "it is compiled Python", help);
        }
        Kind::Pickle => {
            let help = "keep data in JSON, CSV or SQLite";
            tell("pickle", Level::Block, "it runs code when it is loaded", help);
        }
        Kind::Document if depth < DEEPEST => document(path, &file.bytes, depth, findings),
        Kind::Archive("gzip" | "tar") if depth < DEEPEST => look_into(path, &file.bytes, depth, findings),
        Kind::Archive(_) | Kind::Document => {
            let help = "unpack it, and put the files themselves into the package";
            tell("archive-inside", Level::Block, "it is an archive inside the package", help);
        }
        Kind::Media => {
            if let Some(at) = kinds::archive_within(&file.bytes) {
                let help = "remove what stands behind the picture or document";
                let message = format!("an archive is hidden in it, from byte {at} on");
                tell("archive-inside", Level::Block, &message, help);
            }
            // A text may stand in a picture's margins too.
            text::look(path, file, findings);
        }
        Kind::Binary if is_executable(path, file) => {
            let help = "scripts are text; ship the source";
            tell("opaque", Level::Block, "it is to be run, and it is no text", help);
        }
        Kind::Binary => {
            let help = "say in SKILL.md what it is, or ship it in a form that can be read";
            tell("opaque", Level::Warn, "it is neither text nor a known kind of file", help);
            if kinds::archive_within(&file.bytes).is_some() {
                tell("archive-inside", Level::Block, "an archive is hidden in it", "leave it out");
            }
            text::look(path, file, findings);
        }
        Kind::Text => text::look(path, file, findings),
    }
}

fn hidden(path: &str, tell: &mut impl FnMut(&'static str, Level, &str, &'static str)) {
    for part in path.split('/').filter(|part| part.starts_with('.')) {
        let help = "leave it out of the package";
        match part {
            ".env" | ".netrc" | ".npmrc" | ".pypirc" | ".ssh" | ".aws" | ".kube" | ".gnupg" | ".docker" => {
                tell("private-file", Level::Block, &format!("`{part}` is where people keep secrets"), help);
            }
            ".gitignore" | ".gitattributes" | ".editorconfig" | ".keep" | ".gitkeep" => {}
            _ => tell("hidden-file", Level::Warn, &format!("`{part}` is hidden in listings"), help),
        }
    }
}

/// A tarball is read the same way by everyone, so what is in it can be looked at as if it were unpacked.
fn look_into(path: &str, bytes: &[u8], depth: usize, findings: &mut Vec<Finding>) {
    let mut tell = |level, message: String| {
        let help = "unpack it, and put the files themselves into the package";
        let (rule, file) = ("archive-inside", path.to_owned());
        findings.push(Finding { rule, level, file, line: None, message, help, evidence: None });
    };
    let inside = match tarball::read(bytes, &Limits::default()) {
        Ok(inside) => inside,
        Err(error) => {
            tell(Level::Block, format!("it is an archive that cannot be looked into: {error}"));
            return;
        }
    };
    let count = inside.files().count();
    tell(Level::Warn, format!("it is an archive; each of the {count} files in it was looked at"));
    for (name, file) in inside.files() {
        look(&format!("{path}/{name}"), file, depth + 1, findings);
    }
}

/// The files of a tarball inside a package, by their paths in both; none for another file.
pub(super) fn opened(path: &str, file: &PackagedFile) -> Vec<(String, PackagedFile)> {
    if !matches!(Kind::of(path, &file.bytes), Kind::Archive("gzip" | "tar")) {
        return Vec::new();
    }
    let Ok(inside) = tarball::read(&file.bytes, &Limits::default()) else { return Vec::new() };
    inside.files().map(|(name, file)| (format!("{path}/{name}"), file.clone())).collect()
}

/// Office documents are archives with a known inside; anything else in them is a payload.
fn document(path: &str, bytes: &[u8], depth: usize, findings: &mut Vec<Finding>) {
    let payload = |message: String| {
        let help = "save the document anew without macros and embedded files";
        let (rule, level, file) = ("document-payload", Level::Block, path.to_owned());
        Finding { rule, level, file, line: None, message, help, evidence: None }
    };
    let inside = match archive::files(bytes, &Limits::default()) {
        Ok(inside) => inside,
        Err(error) => {
            findings.push(payload(format!("it is a document that cannot be opened: {error}")));
            return;
        }
    };
    for (name, content) in inside {
        let lower = name.to_ascii_lowercase();
        let file = PackagedFile { bytes: content, executable: false };
        let shown = name.escape_debug();
        if ODD_PARTS.iter().any(|odd| lower.contains(odd)) {
            findings.push(payload(format!("the document holds `{shown}`, which can run or hide code")));
            continue;
        }
        match Kind::of(&name, &file.bytes) {
            Kind::Program(_) | Kind::Bytecode | Kind::Pickle | Kind::Archive(_) | Kind::Document => {
                findings
                    .push(payload(format!("the document holds `{shown}`, which is a program or an archive")));
            }
            _ if is_executable(&name, &file) => {
                findings.push(payload(format!("the document holds the script `{shown}`")));
            }
            _ => look(&format!("{path}/{name}"), &file, depth + 1, findings),
        }
    }
}

/// Parts of documents that are more than text and pictures.
const ODD_PARTS: [&str; 7] =
    ["vbaproject.bin", "vbadata", "macrosheets/", "embeddings/", "activex/", "scripts/python", "basic/"];

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
