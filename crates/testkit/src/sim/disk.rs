//! A disk in memory that keeps what was synced, and of the rest what chance leaves.
//!
//! Invariant: what was synced is there after a cut of the power; what was not is there, gone or torn, sector by sector,
//! in no order.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Random;
use super::locks::{FileLocks, Holder};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// A copy is the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    state: Arc<Mutex<State>>,
    /// Of processes, so nothing of them is left when the power goes.
    locks: Arc<Mutex<HashMap<String, FileLocks>>>,
}

/// When the power goes, counted from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// So many writes get through; or all of them, and the sync behind them does not.
    BeforeWrite(u64),
    /// The next sync is done, and nobody hears of it.
    AfterSync,
}

/// What becomes of data that was written and not synced when the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    Everything,
    /// Some sectors are there, some are not; of the last write one is missing at least.
    Torn,
}

/// What the next operation of its kind fails with, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Read,
    Write,
    /// What could not be synced is still to be synced.
    Sync,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, File>,
    full: bool,
    fault: Option<Fault>,
    cut: Option<Cut>,
    dark: bool,
}

#[derive(Clone, Debug, Default)]
struct File {
    now: Vec<u8>,
    /// None as long as not even its name was synced.
    durable: Option<Vec<u8>>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, data: Vec<u8> },
    Resize(usize),
}

/// Why the disk did not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    Full,
    Broken,
}

impl Disk {
    /// Another disk with what this one shows now, all of it synced.
    pub fn image(&self) -> Self {
        let mut files = self.state().files.clone();
        for file in files.values_mut() {
            file.durable = Some(file.now.clone());
            file.unsynced.clear();
        }
        Self { state: Arc::new(Mutex::new(State { files, ..State::default() })), locks: Arc::default() }
    }

    pub fn set_full(&self, full: bool) {
        self.state().full = full;
    }

    pub fn break_once(&self, fault: Fault) {
        self.state().fault = Some(fault);
    }

    /// Nothing reaches the disk from then on, until [`Disk::power_on`].
    pub fn cut(&self, when: Cut) {
        self.state().cut = Some(when);
    }

    pub fn cut_now(&self) {
        self.state().dark = true;
    }

    pub fn is_dark(&self) -> bool {
        self.state().dark
    }

    /// What is there after the power was gone.
    pub fn power_on(&self, loss: Loss, random: &mut Random) {
        let mut state = self.state();
        for file in state.files.values_mut() {
            if loss == Loss::Nothing {
                file.durable = Some(file.now.clone());
            } else if let (Some(durable), Loss::Torn) = (&mut file.durable, loss) {
                tear(durable, &file.unsynced, random);
            }
            file.unsynced.clear();
        }
        state.files.retain(|_, file| file.durable.is_some());
        for file in state.files.values_mut() {
            file.now = file.durable.clone().unwrap_or_default();
        }
        (state.dark, state.cut, state.fault) = (false, None, None);
    }

    pub(super) fn with_locks<T>(&self, name: &str, work: impl FnOnce(&mut FileLocks) -> T) -> T {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        work(locks.entry(name.to_owned()).or_default())
    }

    pub(super) fn forget_locks(&self, gone: impl Fn(&Holder) -> bool) {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.values_mut().for_each(|file| file.forget(&gone));
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.state().files.contains_key(name)
    }

    pub(super) fn create(&self, name: &str) -> Result<(), Failed> {
        let mut state = self.state();
        if state.dark {
            return Err(Failed::Broken);
        }
        state.files.entry(name.to_owned()).or_default();
        Ok(())
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Failed> {
        let mut state = self.state();
        if state.dark || state.files.remove(name).is_none() {
            return Err(Failed::Broken);
        }
        Ok(())
    }

    pub(super) fn len(&self, name: &str) -> usize {
        self.state().files.get(name).map_or(0, |file| file.now.len())
    }

    /// How much of it there was to read.
    pub(super) fn read(&self, name: &str, at: usize, into: &mut [u8]) -> Result<usize, Failed> {
        let mut state = self.state();
        if state.dark || state.breaks(Fault::Read) {
            return Err(Failed::Broken);
        }
        let now = state.files.get(name).map_or(&[][..], |file| &file.now);
        let found = &now[at.min(now.len())..(at + into.len()).min(now.len())];
        into[..found.len()].copy_from_slice(found);
        Ok(found.len())
    }

    pub(super) fn write(&self, name: &str, at: usize, data: &[u8]) -> Result<(), Failed> {
        let mut state = self.state();
        state.spend_write();
        if state.dark || state.breaks(Fault::Write) {
            return Err(Failed::Broken);
        }
        if state.full {
            return Err(Failed::Full);
        }
        state.change(name, Change::Write { at, data: data.to_owned() });
        Ok(())
    }

    pub(super) fn resize(&self, name: &str, len: usize) -> Result<(), Failed> {
        let mut state = self.state();
        state.spend_write();
        if state.dark || state.breaks(Fault::Write) {
            return Err(Failed::Broken);
        }
        state.change(name, Change::Resize(len));
        Ok(())
    }

    pub(super) fn sync(&self, name: &str) -> Result<(), Failed> {
        let mut state = self.state();
        if let Some(Cut::BeforeWrite(_)) = state.cut {
            state.dark = true;
        }
        if state.dark {
            return Err(Failed::Broken);
        }
        if state.breaks(Fault::Sync) {
            return Err(Failed::Broken);
        }
        if let Some(file) = state.files.get_mut(name) {
            let durable = file.durable.get_or_insert_default();
            file.unsynced.drain(..).for_each(|change| change.apply(durable));
        }
        if state.cut == Some(Cut::AfterSync) {
            state.dark = true;
            return Err(Failed::Broken);
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn change(&mut self, name: &str, change: Change) {
        let file = self.files.entry(name.to_owned()).or_default();
        change.apply(&mut file.now);
        file.unsynced.push(change);
    }

    fn breaks(&mut self, how: Fault) -> bool {
        let breaks = self.fault == Some(how);
        if breaks {
            self.fault = None;
        }
        breaks
    }

    fn spend_write(&mut self) {
        match &mut self.cut {
            Some(Cut::BeforeWrite(0)) => self.dark = true,
            Some(Cut::BeforeWrite(left)) => *left -= 1,
            Some(Cut::AfterSync) | None => {}
        }
    }
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, data } => put(to, *at, data),
            Self::Resize(len) => resize(to, *len),
        }
    }
}

fn put(to: &mut Vec<u8>, at: usize, data: &[u8]) {
    if to.len() < at + data.len() {
        resize(to, at + data.len());
    }
    to[at..at + data.len()].copy_from_slice(data);
}

/// `Vec::resize` goes byte by byte where nothing is optimised.
fn resize(to: &mut Vec<u8>, len: usize) {
    if len > to.len() {
        to.extend_from_slice(&vec![0; len - to.len()]);
    }
    to.truncate(len);
}

fn tear(durable: &mut Vec<u8>, unsynced: &[Change], random: &mut Random) {
    for (n, change) in unsynced.iter().enumerate() {
        let is_last = n + 1 == unsynced.len();
        match change {
            Change::Write { at, data } => {
                let missing = is_last.then(|| random.draw() as usize % data.len().div_ceil(SECTOR).max(1));
                for (sector, part) in data.chunks(SECTOR).enumerate() {
                    if missing != Some(sector) && random.chance(50) {
                        put(durable, at + sector * SECTOR, part);
                    }
                }
            }
            Change::Resize(len) => {
                if !is_last && random.chance(50) {
                    resize(durable, *len);
                }
            }
        }
    }
}
