//! Whether what a call names is there for the caller: files, processes, addresses.
//!
//! Invariant: where it cannot be found out, it counts as there, and nothing is written down.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::memory;

type Refused = Option<(&'static str, String)>;

/// The C library asks these caching services before everything; that they are missing is no news.
const HELPERS: [&str; 4] =
    ["/var/run/nscd/socket", "/run/nscd/socket", "/run/systemd/userdb", "/var/run/setrans/.setrans-unix"];

pub(super) fn exists(pid: u32, path: &str) -> bool {
    let seen = Path::new("/proc").join(pid.to_string()).join("root").join(path.trim_start_matches('/'));
    !std::fs::symlink_metadata(seen).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

pub(super) fn descends(pid: u32, ancestor: u32) -> bool {
    let mut pid = pid;
    // No tree of processes is deeper than this.
    for _ in 0..10_000 {
        if pid == ancestor {
            return true;
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        match parent {
            Some(parent) if parent > 0 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// Of a `connect` or an addressed packet, in a network of the command's own.
pub(super) fn destination(pid: u32, address: u64, length: u64) -> Refused {
    let mut buffer = [0_u8; 128];
    let length = usize::try_from(length).unwrap_or_default().min(buffer.len());
    let wanted = buffer.get_mut(..length)?;
    let read = memory::read(pid, address, wanted);
    let (family, rest) = buffer.get(..read)?.split_first_chunk::<2>()?;
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_UNIX => local(pid, rest),
        libc::AF_INET => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let address = IpAddr::V4(Ipv4Addr::from(*rest.first_chunk::<4>()?));
            internet(pid, SocketAddr::new(address, u16::from_be_bytes(*port)))
        }
        libc::AF_INET6 => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let address = IpAddr::V6(Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?));
            internet(pid, SocketAddr::new(address.to_canonical(), u16::from_be_bytes(*port)))
        }
        _ => None,
    }
}

fn local(pid: u32, name: &[u8]) -> Refused {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(|letter: char| letter.is_control(), "?");
    match name.split_first() {
        None => None,
        Some((0, name)) => {
            let name = text(name);
            let known = std::fs::read_to_string(format!("/proc/{pid}/net/unix")).ok()?;
            let bound = known.lines().any(|line| line.rsplit_once(" @").is_some_and(|(_, it)| it == name));
            (!bound).then(|| ("net.local", format!("connection to the local socket `@{name}`")))
        }
        Some(_) => {
            let path = text(name.split(|byte| *byte == 0).next()?);
            let missing = path.starts_with('/') && !HELPERS.contains(&path.as_str()) && !exists(pid, &path);
            missing.then(|| ("net.local", format!("connection to the local socket `{path}`")))
        }
    }
}

fn internet(pid: u32, to: SocketAddr) -> Refused {
    // Without a port nothing is sent: the C library asks the kernel which address it would use.
    if to.port() == 0 {
        return None;
    }
    let own = to.ip().is_loopback() || to.ip().is_unspecified();
    if !own {
        return Some(("net.off", format!("connection to {to}")));
    }
    let tables = ["tcp", "tcp6", "udp", "udp6"];
    let heard = tables.iter().any(|table| listens(pid, table, to.port()).unwrap_or(true));
    (!heard).then(|| ("net.loopback", format!("connection to {to}, where nothing of the command's listens")))
}

/// The second field of a line is `ADDRESS:PORT` in hexadecimal, the fourth the state: 0A listens, 07 is an open UDP socket.
fn listens(pid: u32, table: &str, port: u16) -> Option<bool> {
    let known = match std::fs::read_to_string(format!("/proc/{pid}/net/{table}")) {
        // A kernel without IPv6.
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(false),
        other => other.ok()?,
    };
    let wanted = format!(":{port:04X}");
    Some(known.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().is_some_and(|local| local.ends_with(&wanted));
        local && matches!(fields.nth(1), Some("0A" | "07"))
    }))
}
