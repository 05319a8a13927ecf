//! Which path the kernel shows for a directory of the host: its place in its own file system.
//!
//! Invariant: what cannot be found out only leaves something unmasked; nothing else depends on it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Where something is mounted, and which directory of its file system that is.
#[derive(Debug, Default)]
pub(crate) struct MountTable(Vec<(PathBuf, PathBuf)>);

impl MountTable {
    /// Of this process; empty where it cannot be read.
    pub(crate) fn read() -> Self {
        Self::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        let mounts = lines.filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ').skip(3);
            let (inside, at) = (fields.next()?, fields.next()?);
            Some((unescaped(at), unescaped(inside)))
        });
        Self(mounts.collect())
    }

    /// As `/proc/self/mountinfo` names `path` in a sandbox it was bound into, where that differs.
    pub(crate) fn origin(&self, path: &Path) -> Option<PathBuf> {
        let real = std::fs::canonicalize(path).ok()?;
        let above = self.0.iter().filter(|(at, _)| real.starts_with(at));
        // Of several at one place the last covers the others.
        let (at, inside) = above.max_by_key(|(at, _)| at.components().count())?;
        let origin: PathBuf = inside.components().chain(real.strip_prefix(at).ok()?.components()).collect();
        (origin != real).then_some(origin)
    }
}

/// Blanks, line ends and backslashes are written as octal numbers.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let number = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| {
            digits.iter().try_fold(0_u8, |sum, digit| match digit {
                b'0'..=b'7' => sum.checked_mul(8)?.checked_add(digit - b'0'),
                _ => None,
            })
        });
        plain.push(number.unwrap_or(*first));
        rest = if number.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    OsString::from_vec(plain).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_in_its_file_system() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a b/c")).unwrap();
        let escaped = top.display().to_string();
        let table = format!(
            "1 0 8:1 / / rw - ext4 /dev/a rw\n\
             2 1 8:2 /@data {escaped} rw shared:1 - btrfs /dev/b rw\n\
             3 2 8:3 / {escaped}/a\\040b rw - ext4 /dev/c rw\n"
        );
        let table = MountTable::parse(table.as_bytes());
        assert_eq!(table.origin(&top.join("a b/c")), Some("/c".into()));
        assert_eq!(table.origin(&top), Some("/@data".into()));
        assert_eq!(table.origin(Path::new("/usr")), None, "it is the same");
        assert_eq!(table.origin(&top.join("none")), None);
        assert_eq!(MountTable::parse(b"1 0\n\\ x y \\9 \\77\n").origin(&top), None);
    }
}
