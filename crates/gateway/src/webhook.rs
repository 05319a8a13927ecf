//! Tells an address of a client's choice that a run has ended.
//!
//! Invariant: nothing is sent to this machine or to a private network unless that is allowed, whatever a name resolves
//! to and wherever an answer points; no address is logged with what may be secret in it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use hart_kernel::async_trait;
use hart_runtime::port::Letter;
use hart_runtime::{ATTEMPT, Postman, Runtime, Undelivered};
use hart_types::is_public_address;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{ApiError, ApiResult};
use crate::settings::Settings;
use crate::wire;

/// Whether a run may be asked with this webhook.
pub(crate) fn check(url: &str, settings: Settings) -> ApiResult<()> {
    let refused = |why: &str| Err(ApiError::unprocessable(format!("`webhook` {why}")));
    let url = match Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        Ok(url) => return refused(&format!("begins with `{}:`; it must be http or https", url.scheme())),
        Err(error) => return refused(&format!("is not an absolute URL: {error}")),
    };
    match (url.host_str(), blocked(&url)) {
        (None | Some(""), _) => refused("names no host"),
        (Some(_), Some(range)) if !settings.private_webhooks => Err(ApiError::unprocessable(format!(
            "Webhook host blocked: {range}; see `server.private_webhooks`"
        ))),
        _ => Ok(()),
    }
}

/// Sends letters over HTTP.
pub(crate) struct HttpPostman {
    runtime: Runtime,
    settings: Settings,
    /// Made when there is something to send: reading the certificates of the system takes a while.
    client: OnceLock<reqwest::Client>,
}

impl HttpPostman {
    pub(crate) fn new(runtime: Runtime, settings: Settings) -> Self {
        Self { runtime, settings, client: OnceLock::new() }
    }

    fn client(&self) -> Result<&reqwest::Client, Undelivered> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            // A proxy would look names up by itself.
            .no_proxy()
            .timeout(ATTEMPT)
            .user_agent(concat!("hart/", env!("CARGO_PKG_VERSION")));
        let builder = match self.settings.private_webhooks {
            true => builder,
            false => builder.dns_resolver(Arc::new(PublicOnly)),
        };
        let client = builder.build().map_err(|error| failed(&error, false))?;
        Ok(self.client.get_or_init(|| client))
    }

    async fn body(&self, letter: &Letter) -> Value {
        let values: Option<Box<RawValue>> = match &letter.values {
            Some(values) => serde_json::from_slice(values).ok(),
            // It came to nothing of its own: what its thread has come to.
            None => {
                let state = self.runtime.state(&letter.run.thread, None).await.ok();
                state.and_then(|state| serde_json::from_slice(&state.values).ok())
            }
        };
        let mut body = wire::run::json(&letter.run);
        if let Some(map) = body.as_object_mut() {
            let run = &letter.run;
            map.insert("run_started_at".to_owned(), wire::time(run.start_at.max(run.created_at)).into());
            map.insert("run_ended_at".to_owned(), wire::time(run.updated_at).into());
            map.insert("webhook_sent_at".to_owned(), wire::time(self.runtime.now()).into());
            map.insert("values".to_owned(), json!(values));
        }
        body
    }
}

#[async_trait]
impl Postman for HttpPostman {
    async fn deliver(&self, letter: &Letter) -> Result<(), Undelivered> {
        // The rules may have become stricter since the run was started.
        check(&letter.url, self.settings)
            .map_err(|error| Undelivered { reason: error.detail, again: false })?;
        let body = self.body(letter).await.to_string();
        let request = self.client()?.post(&letter.url).header("content-type", "application/json").body(body);
        let response = request.send().await.map_err(|error| failed(&error, true))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let again = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
        Err(Undelivered { reason: format!("{} answered {status}", host(&letter.url)), again })
    }
}

/// Names that resolve to addresses of the public internet.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public_address(address.ip())).collect();
            match public.is_empty() {
                true => Err(format!("`{}` is no host of the public internet", name.as_str()).into()),
                false => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

/// What stands against an address that is written out; names are judged by what they resolve to.
fn blocked(url: &Url) -> Option<&'static str> {
    let host = url.host_str()?.trim_end_matches('.');
    if host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost") {
        return Some("loopback IP range");
    }
    let address: IpAddr = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    match address {
        address if is_public_address(address) => None,
        address if address.to_canonical().is_loopback() => Some("loopback IP range"),
        _ => Some("private IP range"),
    }
}

/// What may be logged of an address.
fn host(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

fn failed(error: &reqwest::Error, again: bool) -> Undelivered {
    let host = error.url().and_then(Url::host_str).unwrap_or_default();
    let mut source = std::error::Error::source(error);
    let mut reason = format!("{host} could not be reached");
    while let Some(cause) = source {
        reason = format!("{reason}: {cause}");
        source = cause.source();
    }
    Undelivered { reason, again }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_public_internet_are_told() {
        let open = Settings::default().private_webhooks(true);
        for (url, allowed) in [
            ("https://hooks.example.org/a?b=c", true),
            ("http://93.184.216.34:8080/", true),
            ("http://localhost/x", false),
            ("http://LOCALHOST./x", false),
            ("http://a.localhost/x", false),
            ("http://127.0.0.1/x", false),
            ("http://2130706433/x", false),
            ("http://0x7f.1/x", false),
            ("http://[::1]/x", false),
            ("http://[::ffff:10.0.0.1]/x", false),
            ("http://10.1.2.3/x", false),
            ("http://169.254.169.254/latest", false),
            ("http://0.0.0.0/", false),
        ] {
            assert_eq!(check(url, Settings::default()).is_ok(), allowed, "{url}");
            assert!(check(url, open).is_ok(), "{url}");
        }
        for url in ["", "/relative", "ftp://example.org/", "file:///etc/passwd", "http://", "javascript:1"] {
            assert!(check(url, open).is_err(), "{url}");
        }
        let error = check("http://127.0.0.1/", Settings::default()).unwrap_err();
        assert!(error.detail.starts_with("Webhook host blocked: loopback IP range"), "{}", error.detail);
    }
}
