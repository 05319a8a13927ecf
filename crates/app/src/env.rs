//! A frozen copy of the process environment.
//!
//! Invariant: [`Env::from_process`] is the one place that reads the environment, and no value is ever printed.

use std::collections::BTreeMap;
use std::fmt;

/// What the environment held when the process was asked, as a parameter instead of an ambient fact.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env {
    variables: BTreeMap<String, String>,
}

impl Env {
    /// Variables that are not Unicode are left out: nothing in hart could use them as text.
    #[must_use]
    pub fn from_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// As [`Env::get`], with a variable that is set to nothing counted as not set.
    #[must_use]
    pub fn get_non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self { variables: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_names_only() {
        let env = Env::from_iter([("OPENAI_API_KEY", "sk-secret")]);
        let shown = format!("{env:?}");
        assert!(shown.contains("OPENAI_API_KEY") && !shown.contains("sk-secret"), "{shown}");
    }

    #[test]
    fn empty_is_not_unset_but_can_be_asked_for() {
        let env = Env::from_iter([("A", ""), ("B", "x")]);
        assert_eq!(env.get("A"), Some(""));
        assert_eq!(env.get_non_empty("A"), None);
        assert_eq!(env.get_non_empty("B"), Some("x"));
        assert_eq!(env.get("C"), None);
    }

    #[test]
    fn the_process_has_an_environment() {
        assert!(Env::from_process().names().next().is_some());
    }
}
