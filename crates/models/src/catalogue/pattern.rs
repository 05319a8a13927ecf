//! Names of models with `*` for any characters and `?` for one.
//!
//! Invariant: of two patterns for one name, the one with more characters of its own says more.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<char>);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        overlap(&self.0, &name)
    }

    /// Whether some name matches both.
    #[cfg(test)]
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        overlap(&self.0, &other.0)
    }

    /// How many characters it names; an exact name outweighs a pattern of the same length.
    pub(super) fn weight(&self) -> usize {
        let literal = self.0.iter().filter(|c| !matches!(c, '*' | '?')).count();
        literal * 2 + usize::from(literal == self.0.len())
    }

    pub(super) fn is_everything(&self) -> bool {
        self.0 == ['*']
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| write!(f, "{c}"))
    }
}

/// Whether two patterns have a name in common. A plain name is a pattern too.
fn overlap(a: &[char], b: &[char]) -> bool {
    match (a.split_first(), b.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), _) => overlap(rest, b) || b.split_first().is_some_and(|(_, b)| overlap(a, b)),
        (_, Some(('*', rest))) => overlap(a, rest) || a.split_first().is_some_and(|(_, a)| overlap(a, b)),
        (Some((x, a)), Some((y, b))) => (x == y || *x == '?' || *y == '?') && overlap(a, b),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        let matches = |pattern: &str, name: &str| Pattern::new(pattern).matches(name);
        assert!(matches("claude-*-4?5*", "claude-sonnet-4-5-20250929"));
        assert!(matches("claude-*-4?5*", "claude-opus-4.5"));
        assert!(!matches("claude-*-4?5*", "claude-opus-45"));
        assert!(matches("gpt-5", "gpt-5") && !matches("gpt-5", "gpt-5-mini"));
        assert!(matches("*", ""));
    }

    #[test]
    fn patterns_overlap_when_a_name_fits_both() {
        let overlap = |a: &str, b: &str| Pattern::new(a).overlaps(&Pattern::new(b));
        assert!(overlap("glm-4.5*", "glm-4.5v*"));
        assert!(overlap("a*c", "ab*"));
        assert!(!overlap("a?", "a"));
        assert!(!overlap("qwen3-*", "qwen3.5*"));
    }
}
