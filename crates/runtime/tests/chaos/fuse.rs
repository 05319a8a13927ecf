//! Kills its process before or after one of its operations: every write of a run is a named place to die at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::surrounded::Around;

/// Where to die: `(operation, before or after it, how manyth)`.
#[derive(Debug, Default)]
pub(crate) struct Fuse {
    at: Option<(String, bool, u32)>,
    seen: Mutex<HashMap<&'static str, u32>>,
}

impl Fuse {
    /// `before:append_steps:2`, or nothing.
    pub(crate) fn parse(text: &str) -> Arc<Self> {
        let mut parts = text.split(':');
        let at = match (parts.next(), parts.next(), parts.next()) {
            (Some(when), Some(operation), Some(nth)) => {
                Some((operation.to_owned(), when == "before", nth.parse().unwrap()))
            }
            _ => None,
        };
        Arc::new(Self { at, seen: Mutex::default() })
    }

    /// How often each operation was met.
    pub(crate) fn counts(&self) -> HashMap<&'static str, u32> {
        self.seen.lock().unwrap().clone()
    }
}

impl Around for Fuse {
    const AHEAD: bool = true;

    async fn around<T: Send>(&self, operation: &'static str, work: impl Future<Output = T> + Send) -> T {
        let nth = {
            let mut seen = self.seen.lock().unwrap();
            let nth = seen.entry(operation).or_default();
            *nth += 1;
            *nth
        };
        let is_here = |before| self.at.as_ref().is_some_and(|at| *at == (operation.to_owned(), before, nth));
        if is_here(true) {
            die();
        }
        let done = work.await;
        if is_here(false) {
            die();
        }
        done
    }
}

/// SIGKILL: nothing is flushed, dropped or told.
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}
