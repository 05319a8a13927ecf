//! The listening server.
//!
//! Invariant: when it is told to stop it takes no new request, lets streams end, and returns.

use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}; choose another with --port, or stop what uses it")]
    Bind {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("the server stopped")]
    Io(#[source] std::io::Error),
}

/// A socket that accepts; whoever connects waits until it is served.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// With the port that the system chose, where it was left to it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

pub async fn listen(address: SocketAddr) -> Result<Listener, ServeError> {
    let socket = TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
    let address = socket.local_addr().map_err(ServeError::Io)?;
    Ok(Listener { socket, address })
}

/// Serves until `stop`. `ready` hears the address, which matters when the port was left to the system.
pub async fn serve(
    address: SocketAddr,
    router: Router,
    stop: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let listener = listen(address).await?;
    ready(listener.address());
    serve_on(listener, router, stop).await
}

/// Serves on a socket that listens already, until `stop`.
pub async fn serve_on(listener: Listener, router: Router, stop: CancellationToken) -> Result<(), ServeError> {
    let socket = axum::serve::ListenerExt::tap_io(listener.socket, |stream| {
        // A token must not wait for the next one to fill a packet.
        let _ = stream.set_nodelay(true);
    });
    // A router that is served as it is would be taken apart and copied for every connection, 250 KB each.
    axum::serve(socket, router.into_make_service())
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .await
        .map_err(ServeError::Io)
}
