//! The skills that come with hart: inside the binary, laid out where agents can read them.
//!
//! Invariant: what lies in the public root under a bundled name is what the binary holds, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use super::package::{Limits, Package, PackagedFile};

struct Bundled {
    skill: &'static str,
    path: &'static str,
    executable: bool,
    bytes: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// All of them, by name.
pub fn bundled() -> BTreeMap<String, Package> {
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    for Bundled { skill, path, executable, bytes } in FILES {
        let file = PackagedFile { bytes: bytes.to_vec(), executable: *executable };
        let package = packages.remove(*skill).unwrap_or_default();
        packages.insert((*skill).to_owned(), package.with(path, Some(file)));
    }
    packages
}

/// The hash of each, by name; computed when it is first asked for.
pub(super) fn hashes() -> &'static BTreeMap<String, String> {
    static HASHES: LazyLock<BTreeMap<String, String>> =
        LazyLock::new(|| bundled().into_iter().map(|(name, package)| (name, package.hash())).collect());
    &HASHES
}

/// Whether this hart has laid out what it holds. That it is still as it was laid there is not looked at.
pub(super) fn is_laid_out(public: &Path) -> bool {
    laid_out(public) == *hashes() && hashes().keys().all(|name| public.join(name).is_dir())
}

fn laid_out(public: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(public.join(MARKER)).ok();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Writes those that are missing or different into the public root, and takes away what an older hart laid there.
pub fn lay_out(public: &Path) -> io::Result<()> {
    let bundled = bundled();
    let before = laid_out(public);
    for name in before.keys().filter(|name| !bundled.contains_key(*name)) {
        remove(&public.join(name))?;
    }
    for (name, package) in &bundled {
        let folder = public.join(name);
        let there = Package::read_folder(&folder, &Limits::default());
        if there.is_ok_and(|there| there.hash() == package.hash()) {
            continue;
        }
        if before.contains_key(name) && folder.exists() {
            tracing::warn!(skill = %name, "a bundled skill was not as it should be and is laid out anew");
        }
        remove(&folder)?;
        match package.write_to(&folder, true) {
            // Another process was as quick.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
    }
    if before != *hashes() {
        let text = serde_json::to_string(hashes()).map_err(io::Error::other)?;
        super::states::replace(&public.join(MARKER), text.as_bytes())?;
    }
    Ok(())
}

/// What was laid out, by name and hash.
const MARKER: &str = ".bundled.json";

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_laid_out_is_what_is_inside() {
        let dir = tempfile::tempdir().unwrap();
        let public = dir.path().join("public");
        lay_out(&public).unwrap();
        assert!(bundled().contains_key("skill-creator"));
        for (name, package) in bundled() {
            assert_eq!(
                Package::read_folder(&public.join(&name), &Limits::default()).unwrap(),
                package,
                "{name}"
            );
        }
        fs::remove_file(public.join("skill-creator/SKILL.md")).unwrap();
        fs::write(public.join("skill-creator/SKILL.md"), "changed").unwrap();
        fs::write(public.join(MARKER), r#"{"gone": "x"}"#).unwrap();
        fs::create_dir(public.join("gone")).unwrap();
        lay_out(&public).unwrap();
        let again = Package::read_folder(&public.join("skill-creator"), &Limits::default()).unwrap();
        assert_eq!(again, bundled()["skill-creator"]);
        assert!(!public.join("gone").exists());
    }
}
