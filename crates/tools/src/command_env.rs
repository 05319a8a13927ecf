//! Variables that the commands of a run get beside the sandbox's own: the secrets of the skills that are active.
//!
//! Invariant: they reach a command's environment and nothing else; what a command prints of them is hidden.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// In a run's scratch. Never held across an await.
#[derive(Default)]
pub struct CommandEnv(Mutex<Vec<(String, String)>>);

impl CommandEnv {
    /// For the commands that begin from now on.
    pub fn set(&self, variables: Vec<(String, String)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = variables;
    }

    /// A text without any of them.
    pub(crate) fn hide(&self, text: String) -> String {
        without_secrets(&text, self.get().iter().map(|(_, value)| value.as_str())).unwrap_or(text)
    }

    pub(crate) fn get(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for CommandEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables = self.get();
        f.debug_set().entries(variables.iter().map(|(name, _)| name)).finish()
    }
}

/// A text without these values; `None` where none is in it.
pub fn without_secrets<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut secrets: Vec<&str> = secrets.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
    // One that holds another is hidden whole.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut hidden: Option<String> = None;
    for secret in secrets {
        let so_far = hidden.as_deref().unwrap_or(text);
        if so_far.contains(secret) {
            hidden = Some(so_far.replace(secret, HIDDEN));
        }
    }
    hidden
}

/// Shorter ones stand in texts by chance.
const SHORTEST: usize = 4;
const HIDDEN: &str = "[redacted]";
