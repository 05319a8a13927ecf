//! What the log has been told already, so that what stays wrong does not fill it.
//!
//! Invariant: the same words about the same bytes are told once in the life of a process.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Told(
    /// Never held across an await.
    Mutex<HashSet<u64>>,
);

impl Told {
    /// Whether these words are new, or the file they are about has changed since they were told.
    pub(crate) fn is_new(&self, file: &Path, what: &str) -> bool {
        let mut hash = DefaultHasher::new();
        // One that cannot be read has no bytes that could change.
        (file, what, std::fs::read(file).unwrap_or_default()).hash(&mut hash);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(hash.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_of_again_when_it_changed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, told) = (dir.path().join("a.md"), Told::default());
        std::fs::write(&file, "one").unwrap();
        assert!(told.is_new(&file, "wrong") && !told.is_new(&file, "wrong"));
        assert!(told.is_new(&file, "also wrong"));
        std::fs::write(&file, "two").unwrap();
        assert!(told.is_new(&file, "wrong") && !told.is_new(&file, "wrong"));
        let gone = dir.path().join("gone");
        assert!(told.is_new(&gone, "missing") && !told.is_new(&gone, "missing"));
    }
}
