//! Who holds what of a file on a simulated disk, and the memory its users share.
//!
//! Invariant: a lock that excludes others has one holder.
#![allow(unsafe_code, reason = "SQLite shares memory between connections by its address")]

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ffi;

#[derive(Debug, Default)]
pub(super) struct FileLocks {
    levels: HashMap<Holder, c_int>,
    slots: [Slot; 8],
    mapped: Vec<Holder>,
    regions: Vec<Arc<Region>>,
}

#[derive(Debug, Default)]
struct Slot {
    shared: Vec<Holder>,
    exclusive: Option<Holder>,
}

/// One open file of one process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    pub(super) dir: PathBuf,
    pub(super) n: u64,
}

impl FileLocks {
    pub(super) fn forget(&mut self, gone: &dyn Fn(&Holder) -> bool) {
        self.levels.retain(|holder, _| !gone(holder));
        self.mapped.retain(|holder| !gone(holder));
        for slot in &mut self.slots {
            slot.shared.retain(|holder| !gone(holder));
            slot.exclusive.take_if(|holder| gone(holder));
        }
    }

    /// Whether nobody was in the way.
    pub(super) fn raise(&mut self, holder: &Holder, wanted: c_int) -> bool {
        let others = self.levels.iter().filter(|(other, _)| *other != holder);
        let highest = others.map(|(_, level)| *level).max().unwrap_or(ffi::SQLITE_LOCK_NONE);
        let is_free = match wanted {
            ffi::SQLITE_LOCK_SHARED => highest < ffi::SQLITE_LOCK_PENDING,
            ffi::SQLITE_LOCK_EXCLUSIVE => highest == ffi::SQLITE_LOCK_NONE,
            _ => highest < ffi::SQLITE_LOCK_RESERVED,
        };
        if is_free {
            let level = self.levels.entry(holder.clone()).or_insert(wanted);
            *level = wanted.max(*level);
        }
        is_free
    }

    pub(super) fn lower(&mut self, holder: &Holder, level: c_int) {
        if level == ffi::SQLITE_LOCK_NONE {
            self.levels.remove(holder);
        } else if let Some(held) = self.levels.get_mut(holder) {
            *held = level;
        }
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.levels.values().any(|level| *level >= ffi::SQLITE_LOCK_RESERVED)
    }

    /// Whether nobody was in the way; then all of the slots are taken.
    pub(super) fn take(&mut self, holder: &Holder, slots: Range<usize>, exclusive: bool) -> bool {
        let is_others = |slot: &Slot| {
            slot.exclusive.as_ref().is_some_and(|other| other != holder)
                || (exclusive && slot.shared.iter().any(|other| other != holder))
        };
        let slots = &mut self.slots[slots];
        if slots.iter().any(is_others) {
            return false;
        }
        for slot in slots {
            match exclusive {
                true => slot.exclusive = Some(holder.clone()),
                false => slot.shared.push(holder.clone()),
            }
        }
        true
    }

    pub(super) fn let_go(&mut self, holder: &Holder, slots: Range<usize>) -> bool {
        for slot in &mut self.slots[slots] {
            slot.shared.retain(|other| other != holder);
            slot.exclusive.take_if(|other| other == holder);
        }
        true
    }

    /// The nth part of the shared memory, made if that is wanted.
    pub(super) fn map(
        &mut self,
        holder: Holder,
        n: usize,
        bytes: usize,
        extend: bool,
    ) -> Option<Arc<Region>> {
        // What is left of processes that are all gone is worth nothing.
        if self.mapped.is_empty() {
            self.regions.clear();
        }
        if !self.mapped.contains(&holder) {
            self.mapped.push(holder);
        }
        while extend && self.regions.len() <= n {
            self.regions.push(Arc::new(Region::new(bytes)));
        }
        self.regions.get(n).cloned()
    }

    pub(super) fn unmap(&mut self, holder: &Holder, delete: bool) {
        self.mapped.retain(|other| other != holder);
        if delete && self.mapped.is_empty() {
            self.regions.clear();
        }
    }
}

/// Memory that connections share. Nobody here looks into it.
pub(super) struct Region(UnsafeCell<Box<[u64]>>);

// SAFETY: only its address is taken; SQLite orders its own accesses by locks and barriers, as it does with memory that
// processes share.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    fn new(bytes: usize) -> Self {
        Self(UnsafeCell::new(vec![0; bytes / size_of::<u64>()].into_boxed_slice()))
    }

    pub(super) fn address(&self) -> *mut c_void {
        // SAFETY: the box itself is never changed, only what it points to, and that by SQLite alone.
        unsafe { (*self.0.get()).as_mut_ptr().cast() }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").finish_non_exhaustive()
    }
}
