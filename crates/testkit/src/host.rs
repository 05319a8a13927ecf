//! Serves HTTP on the loopback address from a thread and a runtime of its own.
//!
//! Invariant: dropping a `Host` closes every connection and joins its thread before it returns.

use std::net::SocketAddr;
use std::thread;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpSocket;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// Enough for a benchmark that opens thousands of connections at once.
const BACKLOG: u32 = 4096;

/// A server apart from the caller's runtime: a test that blocks, pauses its clock or is being measured neither
/// stalls the server nor pays for it.
#[derive(Debug)]
pub(crate) struct Host {
    addr: SocketAddr,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Host {
    pub(crate) fn start(bind: SocketAddr, workers: usize, app: Router) -> Self {
        let runtime = runtime(workers);
        let handle = runtime.handle().clone();
        let listener = {
            let _inside = runtime.enter();
            let socket = TcpSocket::new_v4().expect("an IPv4 socket");
            socket.set_reuseaddr(true).expect("SO_REUSEADDR");
            socket.bind(bind).unwrap_or_else(|error| panic!("cannot bind {bind}: {error}"));
            socket.listen(BACKLOG).expect("a listening socket")
        };
        let addr = listener.local_addr().expect("the bound address");
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("testkit-http".into())
            .spawn(move || {
                runtime.block_on(async move {
                    let listener = listener.tap_io(|stream| {
                        // A peer that is already gone cannot take the option; serving it fails soon enough.
                        let _ = stream.set_nodelay(true);
                    });
                    tokio::select! {
                        served = async { axum::serve(listener, app).await } => served.expect("axum never stops by itself"),
                        _ = stopped => {}
                    }
                });
            })
            .expect("a thread for the server");
        Self { addr, runtime: handle, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The server's runtime, whose clock is real even where the caller's is paused.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Blocks until the server ends, which only a failure or the end of the process brings about.
    pub(crate) fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server thread");
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The receiver is gone only when the thread has already ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !thread::panicking() {
                ended.expect("the server thread");
            }
        }
    }
}

fn runtime(workers: usize) -> Runtime {
    let mut builder = match workers {
        0 | 1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if workers > 1 {
        builder.worker_threads(workers);
    }
    builder.enable_all().thread_name("testkit-http").build().expect("a runtime for the server")
}
