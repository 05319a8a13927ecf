//! What may be set about a server, beside who may ask it.
//!
//! Invariant: the defaults are safe on a machine that others reach.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Lets webhooks go to this machine and to private networks.
    pub private_webhooks: bool,
}

impl Settings {
    #[must_use]
    pub fn private_webhooks(mut self, allowed: bool) -> Self {
        self.private_webhooks = allowed;
        self
    }
}
