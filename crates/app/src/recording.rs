//! What of runs is recorded, and what is not: no key.
//!
//! Invariant: a text that was masked is not changed by masking it again, so that what is played compares equal.

use std::sync::Arc;

use hart_guard::{PiiDetector, PiiKind};
use hart_runtime::recording::{Mask, Recordable, RecordingDeck};
use hart_tools::without_secrets;
use hart_types::Secrets;
use secrecy::ExposeSecret;

use crate::Env;
use crate::config::{AppConfig, is_secret_name};
use crate::connections::Connections;
use crate::workshop::Workshop;

/// None where runs are not recorded.
pub(crate) fn deck(workshop: &Workshop, run: &Recordable<'_>) -> Option<RecordingDeck> {
    let config = workshop.config.recording;
    config
        .enabled
        .then(|| RecordingDeck::new(run, config.limits, of_run(&workshop.mask, &run.request.secrets)))
}

/// Hides what came with a run, beside all else.
fn of_run(mask: &Mask, secrets: &Secrets) -> Mask {
    if secrets.is_empty() {
        return Arc::clone(mask);
    }
    let (mask, secrets) = (Arc::clone(mask), secrets.clone());
    Arc::new(move |text: &str| {
        let hidden = without_secrets(text, secrets.values());
        mask(hidden.as_deref().unwrap_or(text)).or(hidden)
    })
}

const HIDDEN: &str = "[redacted]";

/// Shorter ones are words that stand in texts by chance.
const SHORTEST: usize = 6;

/// What keys look like that are written down nowhere in the configuration.
const KEYS: &str = r"(?-u:\b)(?:sk-[A-Za-z0-9_-]{16,}|sk_(?:live|test)_[A-Za-z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{12,}|AKIA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})|-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s]+-----END [A-Z ]*PRIVATE KEY-----";

/// Hides the keys that hart was told, those in its environment, and whatever looks like one.
pub(crate) fn mask(config: &AppConfig, env: &Env, connections: &Arc<Connections>) -> Mask {
    let token = config.server.token.iter().chain(&config.server.otlp_headers);
    let told = config.secrets.iter().cloned().chain(token.map(|secret| secret.expose_secret().to_owned()));
    let in_env = env.names().filter(|name| is_secret_name(name)).filter_map(|name| env.get(name));
    let mut secrets: Vec<String> = told.chain(in_env.map(str::to_owned)).collect();
    secrets.retain(|secret| secret.len() >= SHORTEST && !HIDDEN.contains(secret.as_str()));
    // A key that holds another is hidden whole.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    let pattern = PiiKind::Custom { name: "key".to_owned(), pattern: KEYS.to_owned() };
    // A fixed pattern, which a test has compiled.
    let keys = PiiDetector::new(vec![pattern]).unwrap_or_default();
    let connections = Arc::clone(connections);
    Arc::new(move |text: &str| {
        let mut hidden: Option<String> = None;
        // Those come and go while the program runs.
        let connected = connections.keys();
        for secret in secrets.iter().chain(connected.iter().filter(|key| key.len() >= SHORTEST)) {
            let text = hidden.as_deref().unwrap_or(text);
            if text.contains(secret) {
                hidden = Some(text.replace(secret, HIDDEN));
            }
        }
        let looks = keys.replace(hidden.as_deref().unwrap_or(text), |_, _| HIDDEN.to_owned());
        looks.or(hidden)
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::connections::Connection;

    #[test]
    fn keys_are_hidden_wherever_they_came_from() {
        let env = Env::from_iter([
            ("OPENAI_API_KEY", "sk-from-the-environment"),
            ("MY_TOKEN", "tok-abcdefgh"),
            ("HOME", "/home/ada-lovelace"),
        ]);
        let settings = json!({
            "server": {"token": "the-servers-own-token"},
            "models": [{"name": "m", "use": "openai", "model": "x", "api_key": "configured-key-1"}],
        });
        let config = AppConfig::without_file(settings, PathBuf::from("/nowhere"), &env).unwrap();
        let home = tempfile::tempdir().unwrap();
        let connections = Arc::new(Connections::in_home(home.path()));
        let mask = mask(&config, &env, &connections);
        let later = Connection { api_key: Some("connected-later-1".to_owned()), ..Connection::default() };
        connections.save(later).unwrap();
        let masked = |text: &str| mask(text).unwrap_or_else(|| text.to_owned());
        for secret in [
            "sk-from-the-environment",
            "tok-abcdefgh",
            "the-servers-own-token",
            "configured-key-1",
            "connected-later-1",
            "sk-ant-api03-abcdefghijklmnop",
            "ghp_abcdefghijklmnopqrstuvwxyz",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl",
        ] {
            let said = masked(&format!("it is {secret}, keep it"));
            assert_eq!(said, "it is [redacted], keep it");
            assert_eq!(mask(&said), None, "masking twice is masking once");
        }
        assert_eq!(mask("in /home/ada-lovelace a desk-lamp costs 5 tokens"), None);
    }
}
