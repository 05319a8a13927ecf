//! The listening server.
//!
//! Invariant: when it is told to stop it takes no new request, lets streams end, and returns.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}; choose another with --port, or stop what uses it")]
    Bind {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the server stopped")]
    Io(#[source] io::Error),
}

/// A socket that accepts; whoever connects waits until it is served.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    patience: Duration,
}

impl Listener {
    /// How long a connection may stay open on which nothing is asked, or only half of a request.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// With the port that the system chose, where it was left to it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// How many clients may come at once, before one of them is answered. The kernel turns away whoever is beyond that, or
/// lets them knock again a second later; where it is told to allow less (`net.core.somaxconn`), it does.
const AT_THE_DOOR: u32 = 4096;

pub async fn listen(address: SocketAddr) -> Result<Listener, ServeError> {
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A server that begins anew need not wait for the connections of the one before it.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(AT_THE_DOOR)
    };
    let socket = open().map_err(|source| ServeError::Bind { address, source })?;
    let address = socket.local_addr().map_err(ServeError::Io)?;
    Ok(Listener { socket, address, patience: PATIENCE })
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

/// How much the kernel takes from us that it cannot send yet. By itself it would take megabytes for each reader that does
/// not read; what is on its way is not counted, so a long way is no slower.
#[cfg(target_os = "linux")]
const NOT_SENT: u32 = 32 << 10;

/// Longer than clients keep a connection that they do not use, so that none is closed under a request.
const PATIENCE: Duration = Duration::from_secs(120);

/// Serves on a socket that listens already, until `stop`. One version of HTTP and nothing to find out which: a reader that
/// waits for hours costs what hyper keeps for it, and no more.
pub async fn serve_on(listener: Listener, router: Router, stop: CancellationToken) -> Result<(), ServeError> {
    // A router that had yet to be given its state would be taken apart and copied for every connection, 250 KB each.
    let service = TowerToHyperService::new(router.with_state(()));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(listener.patience);
    let connections = TaskTracker::new();
    loop {
        let stream = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            stream = listener.accept() => stream,
        };
        let connection = http.serve_connection(TokioIo::new(stream), service.clone()).with_upgrades();
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection was broken off");
            }
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
    Ok(())
}

/// Long enough for a descriptor to become free.
const PAUSE: Duration = Duration::from_secs(1);

impl Listener {
    /// The next one who connects. Goes on where no connection can be taken, and tells the operator why.
    async fn accept(&self) -> TcpStream {
        loop {
            match self.socket.accept().await {
                Ok((stream, _)) => {
                    // A token must not wait for the next one to fill a packet.
                    let _ = stream.set_nodelay(true);
                    #[cfg(target_os = "linux")]
                    let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(NOT_SENT);
                    return stream;
                }
                Err(error) if is_of_the_client(&error) => {}
                Err(error) => {
                    tracing::error!(
                        %error,
                        "new connections wait: none can be taken. If files are the reason, raise `ulimit -n`"
                    );
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// One that had gone before it was taken.
fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
