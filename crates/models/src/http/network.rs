//! The way out: the client all models share, its proxy and the certificates it trusts.
//!
//! Invariant: what is on this machine is never asked through a proxy, and nothing here reads the environment itself.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;

use super::chain;
use crate::address::{Address, shown};

const HTTP_PROXY: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
const HTTPS_PROXY: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const ALL_PROXY: [&str; 2] = ["ALL_PROXY", "all_proxy"];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A proxy elsewhere could not reach it, and one here has no reason to be asked.
const THIS_MACHINE: &str = "localhost,127.0.0.0/8,::1,0.0.0.0";

/// How to reach the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HttpSettings {
    /// For `http://` addresses.
    pub http_proxy: Option<Proxy>,
    /// For `https://` addresses.
    pub https_proxy: Option<Proxy>,
    /// Hosts to reach directly, as `NO_PROXY` lists them.
    pub no_proxy: Option<String>,
    /// PEM certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Ten seconds when not given.
    pub connect_timeout: Option<Duration>,
}

/// A proxy, or the wish for none.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Proxy {
    None,
    /// It may hold a password.
    At(Url),
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    #[error("the certificates in {} cannot be read; check `ca_file`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} holds no PEM certificates ({reason}); check `ca_file`", path.display())]
    NotCertificates { path: PathBuf, reason: String },
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

impl Proxy {
    /// `none`, or an address; a host and port without `http://` is one, too.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text.eq_ignore_ascii_case("none") {
            return Ok(Self::None);
        }
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        // The text is not shown: a password may be in it.
        let wrong = |why: &str| Err(format!("`proxy` {why}; write http://host:port, or none"));
        match Url::parse(&with_scheme) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                wrong(&format!("begins with `{}://`, which is not supported", url.scheme()))
            }
            Ok(url) if url.host_str().is_none_or(str::is_empty) => wrong("names no host"),
            Ok(url) => Ok(Self::At(url)),
            Err(error) => wrong(&format!("is not an address ({error})")),
        }
    }

    fn url(&self) -> Option<&Url> {
        match self {
            Self::None => None,
            Self::At(url) => Some(url),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url().map_or_else(|| "none".to_owned(), |url| shown(url.as_str())))
    }
}

impl HttpSettings {
    /// As the usual variables say. `lookup` reads the environment; what is no address is left out and logged.
    pub fn from_env(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |names: &[&str]| {
            names.iter().find_map(|name| lookup(name).filter(|value| !value.trim().is_empty()))
        };
        let proxy = |names: &[&'static str]| {
            let parsed = Proxy::parse(&set(names)?);
            parsed
                .inspect_err(|error| tracing::warn!(variable = names.first(), %error, "ignoring a proxy"))
                .ok()
        };
        let all = proxy(&ALL_PROXY);
        Self {
            http_proxy: proxy(&HTTP_PROXY).or_else(|| all.clone()),
            https_proxy: proxy(&HTTPS_PROXY).or(all),
            no_proxy: set(&["NO_PROXY", "no_proxy"]),
            ..Self::default()
        }
    }

    /// The proxy on the way to an address, but for what `no_proxy` lists.
    pub fn proxy_to(&self, address: &Address) -> Option<&Proxy> {
        match Url::parse(address) {
            Ok(url) if is_here(&url) => None,
            Ok(url) if url.scheme() == "http" => self.http_proxy.as_ref(),
            _ => self.https_proxy.as_ref(),
        }
    }

    /// The variable that [`from_env`](Self::from_env) takes that proxy from.
    pub fn proxy_variable(
        address: &Address,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Option<&'static str> {
        let own = if address.starts_with("http://") { HTTP_PROXY } else { HTTPS_PROXY };
        let usable = |name: &&str| {
            lookup(name).is_some_and(|value| Proxy::parse(&value).is_ok_and(|proxy| proxy != Proxy::None))
        };
        own.into_iter().chain(ALL_PROXY).find(usable)
    }

    /// One proxy for every address.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Proxy) -> Self {
        self.http_proxy = Some(proxy.clone());
        self.https_proxy = Some(proxy);
        self
    }
}

/// Whether an address is on this machine, as [`THIS_MACHINE`] lists it.
fn is_here(url: &Url) -> bool {
    match url.host_str().unwrap_or_default().trim_matches(['[', ']']) {
        "localhost" | "0.0.0.0" => true,
        host => host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
    }
}

/// A client that reaches the network directly.
pub fn client() -> Result<reqwest::Client, HttpError> {
    client_with(&HttpSettings::default())
}

/// A client for many models. An answer may take hours, so it has no total timeout; waits are bounded one by one where
/// they happen.
pub fn client_with(settings: &HttpSettings) -> Result<reqwest::Client, HttpError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("hart/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(settings.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(90))
        .pool_max_idle_per_host(64)
        // What the environment says arrives as a setting, like everything else.
        .no_proxy();
    for proxy in proxies(settings)? {
        builder = builder.proxy(proxy);
    }
    if let Some(path) = &settings.ca_file {
        let pem =
            std::fs::read(path).map_err(|source| HttpError::Unreadable { path: path.clone(), source })?;
        let no_certificates = |reason: String| HttpError::NotCertificates { path: path.clone(), reason };
        let certificates =
            reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| no_certificates(chain(&error)))?;
        if certificates.is_empty() {
            return Err(no_certificates("none found".to_owned()));
        }
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(|error| HttpError::Client(chain(&error)))
}

/// One for each kind of address, none of them for this machine.
fn proxies(settings: &HttpSettings) -> Result<Vec<reqwest::Proxy>, HttpError> {
    let direct = format!("{THIS_MACHINE},{}", settings.no_proxy.as_deref().unwrap_or_default());
    let direct = reqwest::NoProxy::from_string(&direct);
    let of = |proxy: &Option<Proxy>| proxy.as_ref().and_then(Proxy::url).cloned();
    let http = of(&settings.http_proxy).map(reqwest::Proxy::http);
    let https = of(&settings.https_proxy).map(reqwest::Proxy::https);
    let made = http.into_iter().chain(https).map(|made| Ok(made?.no_proxy(direct.clone())));
    made.collect::<Result<_, reqwest::Error>>()
        .map_err(|error| HttpError::Client(chain(&error.without_url())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_in_either_case_and_the_special_ones_first() {
        let env = |name: &str| match name {
            "https_proxy" => Some("proxy.example:3128".to_owned()),
            "ALL_PROXY" => Some("http://all.example".to_owned()),
            "NO_PROXY" => Some("internal.example".to_owned()),
            "HTTP_PROXY" => Some("  ".to_owned()),
            _ => None,
        };
        let settings = HttpSettings::from_env(&env);
        let text = format!("{settings:?}");
        assert!(text.contains("http_proxy: Some(http://all.example/)"), "{text}");
        assert!(text.contains("https_proxy: Some(http://proxy.example:3128/)"), "{text}");
        assert_eq!(settings.no_proxy.as_deref(), Some("internal.example"));
        assert_eq!(HttpSettings::from_env(&|_| None), HttpSettings::default());
        let broken = HttpSettings::from_env(&|name| (name == "ALL_PROXY").then(|| "socks5://x:1".to_owned()));
        assert_eq!(broken, HttpSettings::default());
    }

    #[test]
    fn a_proxy_is_an_address_or_none_and_its_password_is_not_shown() {
        assert_eq!(Proxy::parse("none").unwrap(), Proxy::None);
        let with_password = Proxy::parse("http://ada:hunter22@proxy.example:3128").unwrap();
        assert_eq!(format!("{with_password:?}"), "http://********@proxy.example:3128/");
        for wrong in ["ftp://x", "socks5://ada:hunter22@x:1", "http://:1", "http://ada:hunter22@[x"] {
            let error = Proxy::parse(wrong).unwrap_err();
            assert!(
                error.contains("write http://host:port, or none") && !error.contains("hunter22"),
                "{error}"
            );
        }
    }

    #[test]
    fn certificates_that_are_none_are_told() {
        let settings = |path: &str| HttpSettings { ca_file: Some(path.into()), ..HttpSettings::default() };
        let missing = client_with(&settings("/nowhere/ca.pem")).unwrap_err();
        assert!(matches!(missing, HttpError::Unreadable { .. }), "{missing}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "hello").unwrap();
        let path = file.path().to_str().unwrap();
        let wrong = client_with(&settings(path)).unwrap_err();
        assert!(
            matches!(wrong, HttpError::NotCertificates { .. }) && wrong.to_string().contains(path),
            "{wrong}"
        );
    }
}
