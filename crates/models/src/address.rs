//! Addresses of servers: how a path is added to one, and how one is shown.
//!
//! Invariant: what may be secret in an address (a name, a password, the values of its query) is never shown.

use std::fmt;
use std::ops::Deref;

/// What stands where a secret was.
pub const MASK: &str = "********";

/// Where an API begins: an address without a slash at its end, but perhaps with a query (`https://h/v1?version=2`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address(String);

impl Address {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address of `path` below this one. A query stays at the end.
    pub fn at(&self, path: &str) -> String {
        let (base, query) = halves(&self.0);
        let (path, more) = halves(path);
        let queries: Vec<&str> = [query, more].into_iter().filter(|query| !query.is_empty()).collect();
        let mark = if queries.is_empty() { "" } else { "?" };
        format!("{base}{path}{mark}{}", queries.join("&"))
    }
}

/// What stands before the query, and the query.
pub(crate) fn halves(url: &str) -> (&str, &str) {
    url.split_once('?').unwrap_or((url, ""))
}

impl<T: Into<String>> From<T> for Address {
    fn from(url: T) -> Self {
        Self(url.into())
    }
}

/// With everything that it may hide: for comparing and asking, not for showing.
impl Deref for Address {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for Address {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

/// An address as it may be shown: `http://me:pw@h/v1?key=x` becomes `http://********@h/v1?key=********`. Any other text
/// stays as it is.
pub fn shown(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (host, tail) = match authority.rsplit_once('@') {
        Some((_, host)) => (format!("{MASK}@{host}"), tail),
        // What looks like a port and is none is the start of a password with a slash in it.
        None if !has_port_or_none(authority) => match tail.rsplit_once('@') {
            Some((_, tail)) => (MASK.to_owned() + "@", tail),
            None => (MASK.to_owned(), ""),
        },
        None => (authority.to_owned(), tail),
    };
    let (tail, fragment) = tail.split_once('#').unwrap_or((tail, ""));
    let fragment = if fragment.is_empty() { String::new() } else { format!("#{MASK}") };
    let Some((path, query)) = tail.split_once('?') else {
        return format!("{scheme}://{host}{tail}{fragment}");
    };
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() => format!("{name}={MASK}"),
        Some((name, _)) => format!("{name}="),
        // A bare word may be the key itself.
        None if pair.is_empty() => String::new(),
        None => MASK.to_owned(),
    };
    let query: Vec<String> = query.split('&').map(pair).collect();
    format!("{scheme}://{host}{path}?{}{fragment}", query.join("&"))
}

fn has_port_or_none(authority: &str) -> bool {
    let after_host = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    after_host.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok() || port.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_before_the_query() {
        for (base, path, want) in [
            ("https://h/v1", "/chat", "https://h/v1/chat"),
            ("https://h/v1?a=1", "/chat", "https://h/v1/chat?a=1"),
            ("https://h?a=1", "/x?alt=sse", "https://h/x?a=1&alt=sse"),
            ("https://h", "/x?alt=sse", "https://h/x?alt=sse"),
        ] {
            assert_eq!(Address::from(base).at(path), want);
        }
    }

    #[test]
    fn secrets_are_hidden_and_the_rest_is_not() {
        for (url, want) in [
            ("postgres://me:pw@db/x", "postgres://********@db/x"),
            ("https://h/v1?key=abc&v=2&abc&x=&", "https://h/v1?key=********&v=********&********&x=&"),
            ("https://me@h:1/v1#abc", "https://********@h:1/v1#********"),
            ("https://h/v1", "https://h/v1"),
            ("http://[::1]:80/v1", "http://[::1]:80/v1"),
            ("http://[::1]/v1", "http://[::1]/v1"),
            ("http://me:p/w@h/v1", "http://********@h/v1"),
            ("http://me:p/w", "http://********"),
            ("https://h/@me/x", "https://h/@me/x"),
            ("a@b", "a@b"),
            ("", ""),
        ] {
            assert_eq!(shown(url), want);
        }
        assert_eq!(format!("{:?}", Address::from("http://a:b@h")), "http://********@h");
    }
}
