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

/// Serves until `stop`. `ready` hears the address, which matters when the port was left to the system.
pub async fn serve(
    address: SocketAddr,
    router: Router,
    stop: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let listener = TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
    ready(listener.local_addr().map_err(ServeError::Io)?);
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        // A token must not wait for the next one to fill a packet.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router)
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .await
        .map_err(ServeError::Io)
}
