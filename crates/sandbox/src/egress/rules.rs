//! What the configuration says about the network, and whether a destination is allowed by it.
//!
//! Invariant: an empty list allows nothing, and a name is compared in one form only: lower case, no closing dot.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// What commands reach outside their sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing; a command has a loopback device of its own.
    #[default]
    Off,
    /// Everything the host reaches, services on its loopback device among them.
    Allow,
    /// Only these, through a proxy that hart runs.
    Hosts(Vec<HostRule>),
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            /// YAML reads `off` as false.
            Bool(bool),
            Word(String),
            Hosts(Vec<String>),
        }
        let bad = |what: String| {
            serde::de::Error::custom(format!("network: {what}; write `off`, `allow` or a list of hosts"))
        };
        match Written::deserialize(deserializer)
            .map_err(|_| bad("neither a word nor a list of hosts".to_owned()))?
        {
            Written::Bool(false) => Ok(Self::Off),
            Written::Bool(true) => Err(bad("`true` does not say what to allow".to_owned())),
            Written::Word(word) if word == "off" => Ok(Self::Off),
            Written::Word(word) if word == "allow" => Ok(Self::Allow),
            Written::Word(word) => Err(bad(format!("`{word}` is not known"))),
            Written::Hosts(hosts) => {
                hosts.iter().map(|host| host.parse().map_err(bad)).collect::<Result<_, _>>().map(Self::Hosts)
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Allow => f.write_str("the host's"),
            Self::Hosts(hosts) => write!(f, "{} listed host(s) through a proxy", hosts.len()),
        }
    }
}

/// One entry of the list: `example.org`, `*.example.org`, `192.0.2.7`, each with `:port` if not 80 and 443.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRule {
    host: Pattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Name(String),
    /// Everything below, not the name itself; with the dot.
    Below(String),
    Address(IpAddr),
}

impl FromStr for HostRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) =
            split_port(text).ok_or_else(|| format!("`{text}` has a port that is no number"))?;
        let host = if let Some(below) = host.strip_prefix("*.") {
            match Destination::parse_host(below) {
                Some(Host::Name(name)) => Pattern::Below(format!(".{name}")),
                _ => return Err(format!("`{text}` is no pattern of host names")),
            }
        } else {
            match Destination::parse_host(host) {
                Some(Host::Name(name)) => Pattern::Name(name),
                Some(Host::Address(address)) => Pattern::Address(address),
                None => return Err(format!("`{text}` is neither a host name nor an address")),
            }
        };
        Ok(Self { host, port })
    }
}

impl HostRule {
    /// Whether it is about this very name or address.
    pub(super) fn names(&self, host: &str) -> bool {
        match &self.host {
            Pattern::Name(own) => own == host,
            Pattern::Below(_) => false,
            Pattern::Address(own) => host.parse() == Ok(*own),
        }
    }

    fn covers_port(&self, port: u16) -> bool {
        self.port.map_or(matches!(port, 80 | 443), |own| own == port)
    }

    fn covers_name(&self, name: &str) -> bool {
        match &self.host {
            Pattern::Name(own) => own == name,
            Pattern::Below(end) => name.len() > end.len() && name.ends_with(end.as_str()),
            Pattern::Address(_) => false,
        }
    }

    fn covers_address(&self, address: IpAddr) -> bool {
        self.host == Pattern::Address(address)
    }
}

/// Where a request wants to go, as it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) host: Host,
    pub(super) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Destination {
    /// `host:port` or `[v6]:port`.
    pub(super) fn parse(authority: &str, default_port: Option<u16>) -> Option<Self> {
        let (host, port) = split_port(authority)?;
        Some(Self { host: Self::parse_host(host)?, port: port.or(default_port)? })
    }

    fn parse_host(text: &str) -> Option<Host> {
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return inner.parse().ok().map(|address| Host::Address(IpAddr::V6(address)));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Host::Address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(plain);
        let last = name.rsplit('.').next().unwrap_or_default();
        // What resolvers take for a number in another notation (`127.1`, `0x7f000001`) is not a name.
        let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
        (name.len() <= 253 && name.split('.').all(label) && !number).then_some(Host::Name(name))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
        }
    }
}

fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    // An IPv6 address without brackets has colons but no port.
    if text.parse::<IpAddr>().is_ok() || text.ends_with(']') {
        return Some((text, None));
    }
    match text.rsplit_once(':') {
        None => Some((text, None)),
        Some((host, port)) => {
            let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|port| digits && *port != 0)?;
            Some((host, Some(port)))
        }
    }
}

/// The list, asked in two steps: may this name be looked up, and may that address be connected to.
#[derive(Clone, Debug)]
pub(crate) struct Rules(Vec<HostRule>);

impl Rules {
    pub(crate) fn new(rules: Vec<HostRule>) -> Self {
        Self(rules)
    }

    /// `Err` carries the rule that refuses.
    pub(super) fn check(&self, destination: &Destination) -> Result<(), &'static str> {
        let listed = |rule: &&HostRule| match &destination.host {
            Host::Name(name) => rule.covers_name(name),
            Host::Address(address) => rule.covers_address(*address),
        };
        let mut listed = self.0.iter().filter(listed).peekable();
        if listed.peek().is_none() {
            return Err("egress.host");
        }
        if listed.any(|rule| rule.covers_port(destination.port)) { Ok(()) } else { Err("egress.port") }
    }

    /// A name may resolve to anything: what is not public counts only if the list has that very address.
    pub(super) fn vet(&self, address: SocketAddr) -> bool {
        let explicit =
            self.0.iter().any(|rule| rule.covers_address(address.ip()) && rule.covers_port(address.port()));
        explicit || hart_types::is_public_address(address.ip())
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
