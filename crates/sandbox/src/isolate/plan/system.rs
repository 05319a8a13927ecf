//! What of the host's system a command may read.
//!
//! Invariant: nothing listed here holds keys or passwords; `/etc` as a whole does, and is not listed.

use std::fs;
use std::path::{Path, PathBuf};

/// Read-only, with everything below.
pub(super) const SYSTEM: [&str; 2] = ["/usr", "/opt"];
/// Links into `/usr` on most systems, directories on others.
pub(super) const SYSTEM_DIRS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What ordinary programs read. Nothing here holds keys or passwords; `/etc` as a whole does.
pub(super) const ETC: [&str; 38] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "pki/ca-trust",
    "crypto-policies",
    "localtime",
    "timezone",
    "nsswitch.conf",
    "host.conf",
    "gai.conf",
    "protocols",
    "services",
    "networks",
    "rpc",
    "mime.types",
    "magic",
    "magic.mime",
    "os-release",
    "lsb-release",
    "debian_version",
    "redhat-release",
    "alpine-release",
    "locale.alias",
    "locale.conf",
    "inputrc",
    "terminfo",
    "fonts",
    "perl",
    "vim",
    "xml",
    "papersize",
];
/// Directories with a version in their name.
const ETC_PREFIXES: [&str; 5] = ["python", "java", "ImageMagick", "libreoffice", "texmf"];
pub(in crate::isolate) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

pub(in crate::isolate) fn shell() -> &'static str {
    if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" }
}

/// What of the system is shown, as the host has it.
pub(crate) fn system_paths() -> Vec<PathBuf> {
    let system = SYSTEM.iter().chain(&SYSTEM_DIRS).map(PathBuf::from);
    let etc = ETC.iter().map(|name| Path::new("/etc").join(name));
    system.chain(etc).chain(versioned_etc()).chain(["/etc/passwd".into(), "/etc/group".into()]).collect()
}

pub(super) fn versioned_etc() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        ETC_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    })
}
