//! The way out of a sandbox that may talk to some hosts: hart's own proxy, and what it lets through.
//!
//! Invariant: a connection goes to an address that was vetted, never to a name that is resolved a second time.

mod proxy;
mod rules;

pub(crate) use proxy::serve;
pub(crate) use rules::Rules;
pub use rules::{HostRule, Network};

/// Where the proxy is found inside; any port would do, the network is the sandbox's own.
pub(crate) const PROXY_PORT: u16 = 3128;

/// Says where the proxy is, in every spelling programs look for. What is the sandbox's own goes around it, unless the
/// list means the host's.
pub(crate) fn environment(hosts: &[HostRule]) -> Vec<(String, String)> {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let own = ["localhost", "127.0.0.1", "::1"];
    let own: Vec<_> = own.into_iter().filter(|own| !hosts.iter().any(|rule| rule.names(own))).collect();
    let own = own.join(",");
    [("http_proxy", proxy.as_str()), ("https_proxy", &proxy), ("all_proxy", &proxy), ("no_proxy", &own)]
        .into_iter()
        .flat_map(|(name, value)| {
            [(name.to_owned(), value.to_owned()), (name.to_uppercase(), value.to_owned())]
        })
        .collect()
}
