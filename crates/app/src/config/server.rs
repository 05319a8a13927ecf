//! `server`: where `hart serve` listens, and who may ask it.
//!
//! Invariant: the token is never shown; an origin that would let every page in is refused.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::node::Node;
use super::problem::Findings;
use super::section::{Invalid, all_checked};
use crate::Env;

#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// An address, or a name of this machine.
    pub host: String,
    /// 0 leaves it to the system.
    pub port: u16,
    /// Asked of every request, if set.
    pub token: Option<SecretString>,
    /// Names beside loopback that the server goes by.
    pub allowed_hosts: Vec<String>,
    /// Origins beside loopback whose pages may call it.
    pub allowed_origins: Vec<String>,
    /// How long runs may go on when the server is told to stop.
    pub drain: Duration,
    /// How large a request may be, in bytes.
    pub body_limit: usize,
    /// How long a request may take until its answer begins.
    pub request_timeout: Duration,
    /// Lets webhooks go to this machine and to private networks.
    pub private_webhooks: bool,
    /// Where traces of runs are sent, if anywhere.
    pub otlp_endpoint: Option<String>,
    /// What is sent with them, as `OTEL_EXPORTER_OTLP_HEADERS` has it: keys, mostly.
    pub otlp_headers: Option<SecretString>,
    /// How long the stream of a run that ended can be read again.
    pub keep_streams: Duration,
    /// Whether runs that a crash or a restart cut off go on by themselves; otherwise they end with an error.
    pub resume: bool,
}

impl ServerConfig {
    /// What the file does not say of the token, `HART_TOKEN` does.
    pub(super) fn read(tree: &Node, env: &Env, findings: &mut Findings) -> Self {
        let Section {
            host,
            port,
            token,
            allowed_hosts,
            allowed_origins,
            drain_seconds,
            max_body_mb,
            request_seconds,
            private_webhooks,
            otlp_endpoint,
            keep_streams_days,
            resume,
        } = all_checked(tree, "server", findings, unsound);
        let token = token.or_else(|| env.get_non_empty("HART_TOKEN").map(str::to_owned));
        let said = |name| env.get_non_empty(name).map(str::to_owned);
        let otlp_endpoint = otlp_endpoint.or_else(|| said("OTEL_EXPORTER_OTLP_ENDPOINT"));
        Self {
            host,
            port,
            token: token.map(SecretString::from),
            allowed_hosts,
            allowed_origins,
            drain: Duration::from_secs(drain_seconds.into()),
            body_limit: (max_body_mb as usize).saturating_mul(1 << 20),
            request_timeout: Duration::from_secs(request_seconds.into()),
            private_webhooks,
            otlp_endpoint,
            otlp_headers: said("OTEL_EXPORTER_OTLP_HEADERS").map(SecretString::from),
            keep_streams: Duration::from_secs(u64::from(keep_streams_days) * 24 * 3600),
            resume,
        }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    host: String,
    port: u16,
    token: Option<String>,
    allowed_hosts: Vec<String>,
    allowed_origins: Vec<String>,
    drain_seconds: u32,
    max_body_mb: u32,
    request_seconds: u32,
    private_webhooks: bool,
    otlp_endpoint: Option<String>,
    keep_streams_days: u32,
    resume: bool,
}

impl Default for Section {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 2026,
            token: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            drain_seconds: 10,
            max_body_mb: 64,
            request_seconds: 60,
            private_webhooks: false,
            otlp_endpoint: None,
            keep_streams_days: 7,
            resume: true,
        }
    }
}

/// Whether a client can present it.
pub(crate) fn is_sendable(token: &str) -> bool {
    token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What cannot be served.
fn unsound(section: &Section) -> Vec<Invalid> {
    let mut found = Vec::new();
    let mut refuse =
        |key, what: String, help: &str| found.push(Invalid { key, what, help: Some(help.to_owned()) });
    match section.token.as_deref() {
        Some(token) if token.trim().is_empty() => {
            let help = "write a long random text, or leave the key out";
            refuse("token", "the token is empty".to_owned(), help);
        }
        Some(token) if !is_sendable(token) => {
            let help = "use letters, digits and signs such as `-`, without spaces";
            refuse("token", "no header can carry the token".to_owned(), help);
        }
        _ => {}
    }
    for host in section.allowed_hosts.iter().filter(|host| host.contains(['/', '*'])) {
        let what = format!("`{host}` in `allowed_hosts` is no name of a host");
        refuse("allowed_hosts", what, "write names such as hart.example.org, without a scheme");
    }
    for origin in section.allowed_origins.iter().filter(|origin| !is_origin(origin)) {
        let what = format!("`{origin}` in `allowed_origins` is no origin");
        let help = "write each as the browser sends it, such as https://ui.example.org; there is no wildcard";
        refuse("allowed_origins", what, help);
    }
    for address in section.otlp_endpoint.iter().filter(|address| !is_web_address(address)) {
        let what = format!("`{address}` in `otlp_endpoint` is no address of a collector");
        refuse("otlp_endpoint", what, "write it like http://127.0.0.1:4318");
    }
    found
}

fn is_origin(origin: &str) -> bool {
    behind_scheme(origin).is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '*']))
}

fn is_web_address(address: &str) -> bool {
    behind_scheme(address.trim()).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

fn behind_scheme(address: &str) -> Option<&str> {
    address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use secrecy::ExposeSecret;
    use serde_json::{Value, json};

    use crate::Env;
    use crate::config::AppConfig;

    fn load(section: Value) -> Result<AppConfig, String> {
        let env = Env::from_iter([("HART_TOKEN", "from-the-variable")]);
        AppConfig::without_file(json!({ "server": section }), PathBuf::from("/nowhere"), &env)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_goes_before_the_variable_and_no_token_is_shown() {
        let token = |section| {
            let config = load(section).unwrap();
            assert!(!format!("{config:?} {:?}", config.server).contains("from-the"), "{config:?}");
            config.server.token.unwrap().expose_secret().to_owned()
        };
        assert_eq!(token(json!({})), "from-the-variable");
        assert_eq!(token(json!({"token": "from-the-file"})), "from-the-file");
        let config = load(json!({"port": 0, "drain_seconds": 0, "keep_streams_days": 2})).unwrap().server;
        assert_eq!(config.keep_streams.as_secs(), 2 * 24 * 3600);
        assert!(config.resume && !load(json!({"resume": false})).unwrap().server.resume);
        assert_eq!((config.host.as_str(), config.port, config.drain.as_secs()), ("127.0.0.1", 0, 0));
    }

    #[test]
    fn what_cannot_be_served_is_a_problem() {
        for (section, says) in [
            (json!({"port": 70000}), "an integer from 0 to 65535"),
            (json!({"prot": 1}), "did you mean `port`?"),
            (json!({"token": " "}), "the token is empty"),
            (json!({"allowed_origins": ["*"]}), "`*` in `allowed_origins` is no origin"),
            (json!({"allowed_origins": ["https://ui.example/app"]}), "no origin"),
            (json!({"allowed_hosts": ["https://hart.example"]}), "no name of a host"),
            (json!({"otlp_endpoint": "collector:4318"}), "no address of a collector"),
            (json!({"token": "töken"}), "no header can carry the token"),
            (json!({"token": "to ken\n"}), "no header can carry the token"),
        ] {
            let error = load(section).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let all = json!({"token": "", "allowed_hosts": ["a/b", "*"], "allowed_origins": ["here"]});
        let error = load(all).unwrap_err();
        for says in ["the token is empty", "`a/b`", "`*`", "`here`"] {
            assert!(error.contains(says), "one hides another, {says}: {error}");
        }
    }
}
