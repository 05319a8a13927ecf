//! Personal data in text: where it is, and what to put in its place.
//!
//! Invariant: one pass finds all kinds, and two findings never overlap; where two could begin at one place, the kind
//! that was named first has it.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use regex::Regex;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PiiKind {
    Email,
    /// 13 to 19 digits that satisfy Luhn's check, in groups or not.
    CreditCard,
    /// Version 4 or 6.
    Ip,
    MacAddress,
    Url,
    /// Whatever a regular expression finds.
    Custom {
        name: String,
        pattern: String,
    },
}

impl PiiKind {
    pub const BUILT_IN: [Self; 5] = [Self::Url, Self::Email, Self::CreditCard, Self::MacAddress, Self::Ip];

    pub fn name(&self) -> &str {
        match self {
            Self::Email => "email",
            Self::CreditCard => "credit_card",
            Self::Ip => "ip",
            Self::MacAddress => "mac_address",
            Self::Url => "url",
            Self::Custom { name, .. } => name,
        }
    }

    fn pattern(&self) -> &str {
        match self {
            Self::Email => {
                r"(?-u:\b)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?-u:\b)"
            }
            Self::CreditCard => r"(?-u:\b)[0-9](?:[ -]?[0-9]){12,18}(?-u:\b)",
            Self::Ip => {
                r"(?-u:\b)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?-u:\b)|(?:[0-9A-Fa-f]{0,4}:){2,7}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4})"
            }
            Self::MacAddress => {
                r"(?-u:\b)(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?-u:\b)|(?-u:\b)(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}(?-u:\b)"
            }
            Self::Url => r#"(?i:https?://|ftp://|(?-u:\b)www\.)[^\s<>"'`{}|\\^]+"#,
            Self::Custom { pattern, .. } => pattern,
        }
    }

    /// Whether what the pattern found is one, and how much of it.
    fn accept<'t>(&self, text: &str, found: regex::Match<'t>) -> Option<&'t str> {
        let (at, found) = (found.range(), found.as_str());
        match self {
            Self::CreditCard => luhn(found).then_some(found),
            Self::Ip => {
                let v6 = found.parse::<Ipv6Addr>().is_ok() && found.contains(|c: char| c.is_ascii_digit());
                ((found.parse::<Ipv4Addr>().is_ok() || v6) && stands_alone(text, at)).then_some(found)
            }
            // A sentence's own punctuation is not the address's.
            Self::Url => Some(found.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']'])),
            _ => (!found.is_empty()).then_some(found),
        }
    }
}

/// What to do with what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PiiStrategy {
    /// Nothing goes on.
    Block,
    /// `[REDACTED_EMAIL]`
    #[default]
    Redact,
    /// Enough is left to recognise it by: `a***@example.org`.
    Mask,
    /// `<email_hash:1f2e3d4c>`: the same value gives the same text, so that references still hold.
    Hash,
}

/// Where something was found, and which of the kinds it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: usize,
    pub range: Range<usize>,
}

/// Why a detector could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the pattern of `{name}` cannot be used: {reason}")]
pub struct PiiError {
    pub name: String,
    pub reason: String,
}

/// Finds several kinds in one pass.
#[derive(Clone, Debug, Default)]
pub struct PiiDetector {
    kinds: Vec<PiiKind>,
    /// One group per kind, by its number; none without kinds.
    pattern: Option<Regex>,
}

impl PiiDetector {
    pub fn new(kinds: Vec<PiiKind>) -> Result<Self, PiiError> {
        let mut all = String::new();
        for (at, kind) in kinds.iter().enumerate() {
            let fail = |reason: String| PiiError { name: kind.name().to_owned(), reason };
            let own = Regex::new(kind.pattern()).map_err(|error| fail(error.to_string()))?;
            if own.is_match("") {
                return Err(fail("it matches the empty text".to_owned()));
            }
            if own.capture_names().flatten().next().is_some() {
                return Err(fail("it names a group; use `(?:…)`".to_owned()));
            }
            let _ = write!(all, "{}(?P<k{at}>{})", if at == 0 { "" } else { "|" }, kind.pattern());
        }
        if all.is_empty() {
            return Ok(Self::default());
        }
        let pattern = Regex::new(&all)
            .map_err(|error| PiiError { name: "all".to_owned(), reason: error.to_string() })?;
        Ok(Self { kinds, pattern: Some(pattern) })
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Whether any kind is found by somebody's own regular expression.
    pub fn has_own_patterns(&self) -> bool {
        self.kinds.iter().any(|kind| matches!(kind, PiiKind::Custom { .. }))
    }

    pub fn kinds(&self) -> &[PiiKind] {
        &self.kinds
    }

    pub fn find(&self, text: &str) -> Vec<Finding> {
        self.find_from(text, 0)
    }

    /// Those that begin at `at` or later; what is before it counts only as what is before them.
    pub(crate) fn find_from(&self, text: &str, mut at: usize) -> Vec<Finding> {
        let mut found = Vec::new();
        let Some(pattern) = &self.pattern else { return found };
        while let Some(captures) = pattern.captures_at(text, at) {
            let hit =
                (0..self.kinds.len()).find_map(|kind| Some((kind, captures.name(&format!("k{kind}"))?)));
            let Some((kind, group)) = hit else { break };
            match self.kinds.get(kind).and_then(|kind| kind.accept(text, group)) {
                Some(accepted) => {
                    let range = group.start()..group.start() + accepted.len();
                    at = range.end.max(group.start() + 1);
                    found.push(Finding { kind, range });
                }
                // It only looked like one; another may begin inside it. Built-in patterns are short.
                None => at = group.start() + group.as_str().chars().next().map_or(1, char::len_utf8),
            }
            while !text.is_char_boundary(at) {
                at += 1;
            }
        }
        found
    }

    /// The text with everything found replaced by what `replacement` gives for it; `None` if there is nothing.
    pub fn replace(&self, text: &str, mut replacement: impl FnMut(usize, &str) -> String) -> Option<String> {
        let found = self.find(text);
        if found.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for Finding { kind, range } in found {
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(&replacement(kind, text.get(range.clone()).unwrap_or_default()));
            at = range.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Some(out)
    }
}

/// What stands in a value's place. [`PiiStrategy::Block`] has nothing to put there and redacts.
pub fn treat(kind: &PiiKind, strategy: PiiStrategy, value: &str) -> String {
    match strategy {
        PiiStrategy::Block | PiiStrategy::Redact => format!("[REDACTED_{}]", kind.name().to_uppercase()),
        PiiStrategy::Hash => {
            let digest = Sha256::digest(value.as_bytes());
            let short = digest.iter().take(4).fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            format!("<{}_hash:{short}>", kind.name())
        }
        PiiStrategy::Mask => mask(kind, value),
    }
}

fn mask(kind: &PiiKind, value: &str) -> String {
    let last = |count: usize| {
        let skip = value.chars().count().saturating_sub(count);
        value.chars().skip(skip).collect::<String>()
    };
    match kind {
        PiiKind::Email => match value.split_once('@') {
            Some((name, host)) => format!("{}***@{host}", name.chars().take(1).collect::<String>()),
            None => "***".to_owned(),
        },
        PiiKind::CreditCard => {
            let digits: String = value.chars().filter(char::is_ascii_digit).collect();
            let shown = digits.len().saturating_sub(4);
            format!("****-****-****-{}", digits.chars().skip(shown).collect::<String>())
        }
        PiiKind::Ip => match value.rsplit_once(['.', ':']) {
            Some((_, end)) => format!("***.{end}"),
            None => "***".to_owned(),
        },
        PiiKind::MacAddress => format!("**:**:**:**:**:{}", last(2)),
        PiiKind::Url => {
            let host_end = value.find("://").map_or(0, |at| at + 3);
            let host: String = value
                .chars()
                .enumerate()
                .take_while(|(at, c)| *at < host_end || !"/?#".contains(*c))
                .map(|(_, c)| c)
                .collect();
            // Whoever is named before the host is not shown either.
            let host = match host.split_once('@') {
                Some((_, host)) => host.to_owned(),
                None => host,
            };
            format!("{host}/***")
        }
        PiiKind::Custom { .. } if value.chars().count() >= 8 => format!("****{}", last(4)),
        PiiKind::Custom { .. } => "****".to_owned(),
    }
}

/// Not a part of something longer: `std::fmt`, `1.2.3.4.5`.
fn stands_alone(text: &str, at: Range<usize>) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, ':' | '_');
    let before = text.get(..at.start).unwrap_or_default().trim_end_matches('.');
    let mut after = text.get(at.end..).unwrap_or_default().chars();
    let after = after
        .next()
        .map(|c| if c == '.' { after.next().filter(char::is_ascii_digit).unwrap_or(' ') } else { c });
    !before.chars().next_back().is_some_and(part) && !after.is_some_and(part)
}

fn luhn(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let all_same = digits.windows(2).all(|pair| matches!(pair, [a, b] if a == b));
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at.is_multiple_of(2) { *digit } else { digit * 2 / 10 + digit * 2 % 10 })
        .sum();
    (13..=19).contains(&digits.len()) && sum.is_multiple_of(10) && !all_same
}

#[cfg(test)]
#[path = "pii_tests.rs"]
mod tests;
