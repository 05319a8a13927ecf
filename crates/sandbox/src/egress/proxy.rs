//! An HTTP proxy for the commands of one sandbox: `CONNECT` for TLS, absolute requests for plain HTTP.
//!
//! Invariant: nothing is connected to before the list allowed the name, the port and the address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::rules::{Destination, Host, Rules};
use crate::audit::Audit;

const MAX_HEAD: usize = 16 << 10;
const MAX_CONNECTIONS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(30);

/// Accepts until dropped, and takes its connections with it.
pub(crate) async fn serve(listener: TcpListener, rules: Arc<Rules>, audit: Audit) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(one(stream, Arc::clone(&rules), audit.clone()));
                }
                // Out of descriptors, most likely: give others time to close theirs.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn one(mut client: TcpStream, rules: Arc<Rules>, audit: Audit) {
    let Ok(Some((head, rest))) = timeout(PATIENCE, read_head(&mut client)).await else {
        audit.denied("egress.syntax", "not an HTTP request");
        return answer(&mut client, "400 Bad Request", "this is an HTTP proxy").await;
    };
    let Some(request) = Request::parse(&head) else {
        audit.denied("egress.syntax", "neither CONNECT nor a request with an http:// address");
        let say = "use CONNECT host:port, or a request with an absolute http:// address";
        return answer(&mut client, "400 Bad Request", say).await;
    };
    let destination = &request.destination;
    if let Err(rule) = rules.check(destination) {
        audit.denied(rule, destination.to_string());
        let say = format!("{destination} is not in sandbox.network ({rule})");
        return answer(&mut client, "403 Forbidden", &say).await;
    }
    let addresses = match resolve(destination).await {
        Some(addresses) => addresses,
        None => {
            return answer(&mut client, "502 Bad Gateway", &format!("{destination} has no address")).await;
        }
    };
    let (vetted, refused): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|address| rules.vet(*address));
    if vetted.is_empty() {
        let shown = refused.first().map_or_else(String::new, SocketAddr::to_string);
        audit.denied("egress.address", format!("{destination} resolves to {shown}"));
        let say = format!("{destination} resolves to a private address (egress.address)");
        return answer(&mut client, "403 Forbidden", &say).await;
    }
    audit.allowed("egress.allow", &destination.to_string());
    let mut server = None;
    for address in vetted {
        if let Ok(Ok(stream)) = timeout(PATIENCE, TcpStream::connect(address)).await {
            server = Some(stream);
            break;
        }
    }
    let Some(mut server) = server else {
        return answer(&mut client, "502 Bad Gateway", &format!("{destination} does not answer")).await;
    };
    let opened = match &request.forward {
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await,
        Some(head) => server.write_all(head.as_bytes()).await,
    };
    if opened.is_ok() && server.write_all(&rest).await.is_ok() {
        // Ends when both sides have; an error is a side that went away.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

async fn resolve(destination: &Destination) -> Option<Vec<SocketAddr>> {
    match &destination.host {
        Host::Address(address) => Some(vec![SocketAddr::new(*address, destination.port)]),
        Host::Name(name) => {
            let found = timeout(PATIENCE, lookup_host((name.as_str(), destination.port))).await.ok()?.ok()?;
            Some(found.collect::<Vec<_>>()).filter(|found| !found.is_empty())
        }
    }
}

/// Up to the empty line, and what came behind it.
async fn read_head(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return String::from_utf8(bytes).ok().map(|head| (head, rest));
        }
        let read = client.read(&mut buffer).await.ok()?;
        if read == 0 || bytes.len() > MAX_HEAD {
            return None;
        }
        bytes.extend_from_slice(buffer.get(..read)?);
    }
}

async fn answer(client: &mut TcpStream, status: &str, say: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{say}\n",
        say.len() + 1
    );
    // Whoever asked may be gone.
    let _ = client.write_all(text.as_bytes()).await;
    let _ = client.shutdown().await;
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    destination: Destination,
    /// What to send on instead of the head that came; `None` for a tunnel.
    forward: Option<String>,
}

impl Request {
    fn parse(head: &str) -> Option<Self> {
        let (line, headers) = head.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") || head.bytes().any(|byte| byte == 0) {
            return None;
        }
        if method == "CONNECT" {
            return Some(Self { destination: Destination::parse(target, None)?, forward: None });
        }
        let (scheme, rest) = target.split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case("http://") {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let destination = Destination::parse(authority, Some(80))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        // One request a connection, and the name the list was asked about: the next request is asked about anew.
        let mut forward = format!("{method} {path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
        for header in headers.split("\r\n").filter(|header| !header.is_empty()) {
            let name = header.split_once(':')?.0.to_ascii_lowercase();
            let of_this_hop = name.starts_with("proxy-")
                || matches!(name.as_str(), "host" | "connection" | "keep-alive" | "te" | "upgrade");
            if !of_this_hop {
                forward.push_str(header);
                forward.push_str("\r\n");
            }
        }
        forward.push_str("\r\n");
        Some(Self { destination, forward: Some(forward) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(head: &str) -> Option<String> {
        Request::parse(head).and_then(|request| request.forward)
    }

    #[test]
    fn plain_requests_are_rewritten() {
        let head = "GET http://a.org:8080/x?y HTTP/1.1\r\nHost: evil.org\r\nProxy-Connection: x\r\nAccept: */*\r\n\r\n";
        assert_eq!(
            forwarded(head).unwrap(),
            "GET /x?y HTTP/1.1\r\nHost: a.org:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n"
        );
        assert!(forwarded("GET HTTP://a.org HTTP/1.0\r\n\r\n").unwrap().starts_with("GET / HTTP/1.0\r\n"));
        assert!(
            forwarded("GET http://a.org?q HTTP/1.0\r\n\r\n").unwrap().starts_with("GET /?q HTTP/1.0\r\n")
        );
    }

    #[test]
    fn anything_else_is_no_request() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://user@a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org\\@b.org/ HTTP/1.1\r\n\r\n",
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT a.org:443 HTTP/2\r\n\r\n",
            "CONNECT a.org:443 x HTTP/1.1\r\n\r\n",
            "CONNECT a.org\0:443 HTTP/1.1\r\n\r\n",
            "GET gopher://a.org/ HTTP/1.1\r\n\r\n",
            "\x05\x01\r\n\r\n",
        ] {
            assert_eq!(Request::parse(head), None, "{head:?}");
        }
        assert!(Request::parse("CONNECT a.org:443 HTTP/1.1\r\n\r\n").is_some());
    }
}
