//! `hart serve` as a value: a listening socket and the runs behind it.
//!
//! Invariant: it listens before it touches the data, so that a second server on the same port changes nothing; beyond
//! this machine it listens only with a token.

mod builder;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hart_gateway::{
    Access, House, Listener, OtlpError, OtlpExporter, ServeError, Settings, listen, router_of, serve_on,
    tend, with_page,
};
use hart_runtime::{Adopt, Runtime};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

pub use builder::ServerBuilder;

use crate::app::StorageError;
use crate::config::is_sendable;
use crate::{App, house};

/// Bound, and ready to answer; clients that come before [`Server::run`] wait for it.
pub struct Server {
    listener: Listener,
    runtime: Runtime,
    house: Arc<dyn House>,
    access: Access,
    settings: Settings,
    traces: Option<OtlpExporter>,
    drain: Duration,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    #[error("`{host}` is no address to listen on")]
    Host {
        host: String,
        #[source]
        source: std::io::Error,
    },
    #[error("on {0} everybody who reaches this machine could use hart: a token is needed there")]
    NoToken(IpAddr),
    #[error("no header can carry the token")]
    Token,
    #[error("traces cannot be sent")]
    Traces(#[from] OtlpError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// How long connections get to end once all runs have.
const FAREWELL: Duration = Duration::from_secs(3);

impl Server {
    /// For agents of one's own, with their data in this directory.
    pub fn builder(home: impl Into<PathBuf>) -> ServerBuilder {
        ServerBuilder::new(home.into())
    }

    /// As the section `server` says, at another host or port where one is given.
    pub async fn bind(app: &App, host: Option<&str>, port: Option<u16>) -> Result<Self, ServerError> {
        let config = &app.config().server;
        let access = Access {
            hosts: config.allowed_hosts.clone(),
            origins: config.allowed_origins.clone(),
            token: config.token.as_ref().map(|token| token.expose_secret().to_owned()),
        };
        let (host, port) = (host.unwrap_or(&config.host), port.unwrap_or(config.port));
        let traces = match &config.otlp_endpoint {
            Some(endpoint) => {
                let headers = config.otlp_headers.as_ref().map(|headers| headers.expose_secret().to_owned());
                Some(OtlpExporter::new(endpoint, &headers.unwrap_or_default())?)
            }
            None => None,
        };
        let settings = Settings::default()
            .body_limit(config.body_limit)
            .request_timeout(config.request_timeout)
            .private_webhooks(config.private_webhooks)
            .uploads(app.config().around.uploads);
        let (listener, access) = listen_as(host, port, access).await?;
        let runtime = app.runtime_adopting(Adopt::Everything).await?.clone();
        let house = house::of(&app.workshop);
        Ok(Self { listener, runtime, house, access, settings, traces, drain: config.drain })
    }

    /// Where a browser on this machine finds it.
    pub fn url(&self) -> String {
        let address = self.listener.address();
        let ip = match address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        format!("http://{}", SocketAddr::new(ip, address.port()))
    }

    /// Answers until `stop`; then it takes no more runs, gives those there are time to end, and closes.
    pub async fn run(self, stop: CancellationToken) -> Result<(), ServerError> {
        let Self { listener, runtime, house, access, settings, traces, drain } = self;
        tend(&runtime, settings);
        if let Some(traces) = traces {
            runtime.trace_to(Arc::new(traces));
        }
        let closing = CancellationToken::new();
        let routes = with_page(router_of(runtime.clone(), house, access, closing.clone(), settings));
        let serving = serve_on(listener, routes, closing.clone());
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            served = &mut serving => return Ok(served?),
            () = stop.cancelled() => {}
        }
        // Reading goes on meanwhile: whoever follows a run sees its end.
        let drained = async {
            runtime.close(drain).await;
            closing.cancel();
            tokio::time::sleep(FAREWELL).await;
        };
        tokio::select! {
            served = serving => Ok(served?),
            () = drained => Ok(()),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url()).field("drain", &self.drain).finish_non_exhaustive()
    }
}

/// Beyond this machine only with a token. The server goes by what it was told to listen on, name or address.
async fn listen_as(host: &str, port: u16, mut access: Access) -> Result<(Listener, Access), ServerError> {
    let address = resolve(host, port).await?;
    if access.token.is_none() && !address.ip().is_loopback() {
        return Err(ServerError::NoToken(address.ip()));
    }
    if access.token.as_deref().is_some_and(|token| !is_sendable(token)) {
        return Err(ServerError::Token);
    }
    access.hosts.push(host.to_owned());
    Ok((listen(address).await?, access))
}

async fn resolve(host: &str, port: u16) -> Result<SocketAddr, ServerError> {
    let refused = |source| ServerError::Host { host: host.to_owned(), source };
    let found = tokio::net::lookup_host((host, port)).await.map_err(refused)?.next();
    found.ok_or_else(|| refused(std::io::ErrorKind::NotFound.into()))
}
