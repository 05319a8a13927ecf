//! Judges a shell command before it runs: block, warn or pass, for each part of it.
//!
//! This is advice, not a boundary: whoever wants to hide a command from it can. It keeps a model from accidents and
//! leaves a record; what confines is the kernel.
//!
//! Invariant: pure functions over text, in time linear in its length; text that is only data is never judged.

mod matchers;
mod named;
mod parse;
mod redact;
mod rules;
mod simple;

pub(crate) use named::{Shown, named_outside};
pub use redact::redact;
pub use rules::{AUDIT_RULES, AuditRule};
use simple::Simple;

/// How bad it is; a later one is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Pass,
    /// It runs, and the model is told.
    Warn,
    /// It does not run.
    Block,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Block => "block",
        }
    }
}

/// What came of a command line.
#[derive(Clone, Debug)]
pub struct CommandAudit {
    /// The worst of the parts.
    pub verdict: Verdict,
    pub parts: Vec<AuditedPart>,
}

/// One simple command of it: what stands between `;`, `&&`, `|` and the like, also inside `$(…)` and `sh -c '…'`.
#[derive(Clone, Debug)]
pub struct AuditedPart {
    /// Shortened, without secrets.
    pub text: String,
    pub verdict: Verdict,
    /// The worst rule that spoke.
    pub rule: Option<&'static AuditRule>,
}

impl CommandAudit {
    /// The rules that spoke, each once, the worst first.
    pub fn rules(&self) -> Vec<&'static AuditRule> {
        let mut rules: Vec<&'static AuditRule> = Vec::new();
        for rule in self.parts.iter().filter_map(|part| part.rule) {
            if !rules.iter().any(|known| known.id == rule.id) {
                rules.push(rule);
            }
        }
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.verdict));
        rules
    }
}

pub fn audit_command(command: &str) -> CommandAudit {
    let script = parse::parse(command);
    let mut parts = Vec::new();
    for pipeline in &script.pipelines {
        for at in 0..pipeline.len() {
            let seen = matchers::Seen { pipeline, at, functions: &script.functions };
            let rule = rules::worst(&seen);
            let verdict = rule.map_or(Verdict::Pass, |rule| rule.verdict);
            let text = pipeline.get(at).map(shown).unwrap_or_default();
            parts.push(AuditedPart { text, verdict, rule });
        }
    }
    let verdict = parts.iter().map(|part| part.verdict).max().unwrap_or(Verdict::Pass);
    CommandAudit { verdict, parts }
}

fn shown(simple: &Simple) -> String {
    const SHOWN: usize = 200;
    let mut text = simple.words.join(" ");
    for redirect in &simple.redirects {
        text.push_str(&format!(" {} {}", redirect.operator, redirect.target));
    }
    let text = redact(&text);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
#[path = "shell_audit_tests.rs"]
mod tests;
