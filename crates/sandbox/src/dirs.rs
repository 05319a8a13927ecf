//! Where a thread's files are on the host.
//!
//! Invariant: an id is opaque client text, so what it becomes in a host path is one plain, harmless name.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hart_types::{ThreadId, UserId};
use sha2::{Digest, Sha256};

use crate::path::HostPath;

/// `{home}/users/{user}`: what all threads of a user have in common.
#[derive(Clone, Debug)]
pub(crate) struct UserDirs {
    user: PathBuf,
}

impl UserDirs {
    pub(crate) fn new(home: &Path, user: &UserId) -> Self {
        Self { user: home.join("users").join(safe_name(user.as_str())) }
    }

    pub(crate) fn skills(&self) -> HostPath {
        HostPath::new(self.user.join("skills"))
    }
}

/// `{home}/users/{user}/threads/{thread}/user-data/{workspace,uploads,outputs}`, and beside `user-data` what hart keeps
/// for the thread to read: `large_tool_results` and `conversation_history`.
#[derive(Clone, Debug)]
pub struct ThreadDirs {
    user: UserDirs,
    thread: PathBuf,
}

impl ThreadDirs {
    pub fn new(home: &Path, user: &UserId, thread: &ThreadId) -> Self {
        let user = UserDirs::new(home, user);
        let thread = user.user.join("threads").join(safe_name(thread.as_str()));
        Self { user, thread }
    }

    /// The thread's own directory; what sandboxed commands see lies below it, in `user-data`.
    pub fn root(&self) -> &Path {
        &self.thread
    }

    pub fn workspace(&self) -> HostPath {
        self.dir("workspace")
    }

    pub fn uploads(&self) -> HostPath {
        self.dir("uploads")
    }

    pub fn outputs(&self) -> HostPath {
        self.dir("outputs")
    }

    pub fn large_results(&self) -> HostPath {
        HostPath::new(self.thread.join("large_tool_results"))
    }

    pub fn history(&self) -> HostPath {
        HostPath::new(self.thread.join("conversation_history"))
    }

    /// Where a user's own skills are in a data directory.
    pub fn user_skills_in(home: &Path, user: &UserId) -> PathBuf {
        UserDirs::new(home, user).skills().as_path().to_owned()
    }

    pub(crate) fn of_user(&self) -> &UserDirs {
        &self.user
    }

    /// Makes what is missing, for the owner alone.
    pub fn create(&self) -> io::Result<()> {
        let make = |dir: &Path| DirBuilder::new().recursive(true).mode(0o700).create(dir);
        // From the outermost on, so that none is tried in vain.
        make(&self.thread)?;
        make(&self.thread.join(USER_DATA))?;
        self.all().iter().try_for_each(|dir| make(dir.as_path()))
    }

    pub(crate) fn are_there(&self) -> bool {
        self.all().iter().all(|dir| dir.as_path().is_dir())
    }

    /// Gives everything in the thread's directories to `owner`, unless that was done before.
    pub(crate) fn give_to(&self, owner: u32) -> io::Result<()> {
        for dir in self.all() {
            if std::fs::metadata(dir.as_path())?.uid() != owner {
                give_tree(dir.as_path(), owner)?;
            }
        }
        Ok(())
    }

    /// Lets a user to whom the directories were given pass through what lies above them, and see nothing of it.
    pub(crate) fn let_pass(&self) -> io::Result<()> {
        const PASS: u32 = 0o011;
        // `user-data`, the thread, `threads`, the user, `users`: hart made them all.
        const OWN: usize = 5;
        for dir in self.workspace().as_path().ancestors().skip(1).take(OWN) {
            let mut permissions = std::fs::metadata(dir)?.permissions();
            permissions.set_mode(permissions.mode() | PASS);
            std::fs::set_permissions(dir, permissions)?;
        }
        Ok(())
    }

    /// Deletes all files of the thread. Nothing there is no error.
    pub fn delete(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.thread) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn all(&self) -> [HostPath; 5] {
        [self.workspace(), self.uploads(), self.outputs(), self.large_results(), self.history()]
    }

    fn dir(&self, name: &str) -> HostPath {
        HostPath::new(self.thread.join(USER_DATA).join(name))
    }
}

const USER_DATA: &str = "user-data";

/// Lets a group read a tree that stays hart's, and nobody else: what others may read already is left alone.
pub(crate) fn let_read(path: &Path, group: u32) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    let needs = match found.file_type() {
        kind if kind.is_dir() => 0o5,
        kind if kind.is_file() => 0o4,
        // Of a link only where it leads matters, and nothing else belongs here.
        _ => return Ok(()),
    };
    let mode = found.permissions().mode();
    let by_group = found.gid() == group && mode & (needs << 3) == needs << 3;
    if !by_group && mode & needs != needs {
        std::os::unix::fs::lchown(path, None, Some(group))?;
        std::fs::set_permissions(path, PermissionsExt::from_mode((mode | needs << 3) & 0o777))?;
    }
    if found.is_dir() {
        for entry in std::fs::read_dir(path)? {
            let_read(&entry?.path(), group)?;
        }
    }
    Ok(())
}

/// Content first: the top is what says that it was done. Links are given, not followed.
fn give_tree(path: &Path, owner: u32) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give_tree(&entry?.path(), owner)?;
        }
    }
    std::os::unix::fs::lchown(path, Some(owner), Some(owner))
}

/// Plain ids stay readable; anything else becomes a hash, marked with a dot that no plain id has.
pub(crate) fn safe_name(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.is_empty() && id.len() <= 64 && id.bytes().all(plain) {
        return id.to_owned();
    }
    let digest = Sha256::digest(id.as_bytes());
    digest.iter().take(20).fold(String::from("h."), |name, byte| format!("{name}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_ids_keep_their_name() {
        for id in ["a", "0198c2d4-7e1b-7cc3-98c4-dc0c0c07398f", "user_1", &"x".repeat(64)] {
            assert_eq!(safe_name(id), id);
        }
    }

    #[test]
    fn hostile_ids_become_one_harmless_component() {
        let long = "x".repeat(300);
        let hostile =
            ["", ".", "..", "../x", "/etc", "a/b", "a\0b", "a\nb", "h.00", "ä", " ", &long, "a\\b", "~"];
        let mut seen = std::collections::HashSet::new();
        for id in hostile {
            let name = safe_name(id);
            assert!(name.starts_with("h.") && name.len() == 42, "{id:?} became {name:?}");
            assert!(name.bytes().skip(2).all(|b| b.is_ascii_hexdigit()));
            assert!(seen.insert(name), "{id:?} shares its directory");
        }
    }

    #[test]
    fn a_thread_stays_below_its_user() {
        let dirs = ThreadDirs::new(Path::new("/home/h"), &UserId::from("../u"), &ThreadId::from("../../t"));
        assert!(dirs.workspace().as_path().starts_with("/home/h/users"));
        assert!(!dirs.workspace().as_path().components().any(|part| part == std::path::Component::ParentDir));
    }
}
