//! Ctrl-C and SIGTERM as something to wait for.
//!
//! Invariant: while an [`Interrupts`] lives, no signal it listens to is lost between two waits.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug)]
pub(crate) struct Interrupts {
    ctrl_c: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Needs a runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { ctrl_c: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.ctrl_c.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
