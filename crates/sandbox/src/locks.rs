//! Who may change a file now.
//!
//! Invariant: while a change runs, also one whose caller has gone, no other change of this process to the same file
//! does, whatever name it goes by.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hart_types::SandboxId;
use tokio::sync::OwnedMutexGuard;

use crate::files::FileKey;
use crate::path::VPath;

/// The right to change a file, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    /// Not there if the path leads nowhere.
    pub(crate) _file: Option<OwnedMutexGuard<()>>,
    pub(crate) _name: OwnedMutexGuard<()>,
}

/// A name is locked before the file it leads to, and nobody who holds a file waits for a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LockKey {
    Name(SandboxId, VPath),
    File(FileKey),
}

type FileLock = tokio::sync::Mutex<()>;

/// One lock a key, kept only while someone holds or awaits it.
#[derive(Debug, Default)]
pub(crate) struct FileLocks(Mutex<HashMap<LockKey, Weak<FileLock>>>);

impl FileLocks {
    pub(crate) async fn lock(&self, key: LockKey) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match locks.get(&key).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    locks.retain(|_, lock| lock.strong_count() > 0);
                    let lock = Arc::new(FileLock::new(()));
                    locks.insert(key, Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}
