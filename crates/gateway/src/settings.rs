//! What may be set about a server, beside who may ask it.
//!
//! Invariant: the defaults are safe on a machine that others reach.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// How often a stream shows that its line is alive. Clients take three missing beats for a dead one.
    pub heartbeat: Duration,
    /// How large a request may be, in bytes. A conversation with pictures in it is large; nothing else is.
    pub body_limit: usize,
    /// How long a request may take until its answer begins.
    pub request_timeout: Duration,
    /// Lets webhooks go to this machine and to private networks.
    pub private_webhooks: bool,
    pub uploads: UploadLimits,
}

/// How much may be uploaded at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
    pub max_files: u32,
    /// Of one file, in bytes.
    pub max_file_size: u64,
    /// Of all files of a request, in bytes.
    pub max_total_size: u64,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self { max_files: 10, max_file_size: 50 << 20, max_total_size: 100 << 20 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(15),
            body_limit: 64 << 20,
            request_timeout: Duration::from_secs(60),
            private_webhooks: false,
            uploads: UploadLimits::default(),
        }
    }
}

impl Settings {
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    #[must_use]
    pub fn private_webhooks(mut self, allowed: bool) -> Self {
        self.private_webhooks = allowed;
        self
    }

    #[must_use]
    pub fn uploads(mut self, limits: UploadLimits) -> Self {
        self.uploads = limits;
        self
    }
}
