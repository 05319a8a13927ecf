//! Takes host paths out of what a command prints.
//!
//! A command cannot reach them, but it can see some: `/proc/self/mountinfo` names what its directories were mounted
//! from. This is cosmetics for the model and the user, no boundary.
//!
//! Invariant: in whatever pieces output arrives, it is shown as if it had come in one; what is held back meanwhile is
//! bounded, and it is nothing that no host path can begin with.

use std::borrow::Cow;
use std::path::Path;

use memchr::memmem::Finder;

use crate::files::Roots;
use crate::mounts::MountTable;
use crate::path::{USER_DATA, WORKSPACE};

/// How far before a path that is known its unknown beginning may reach: as far as a path can.
const MAX_BACK: usize = 4096;

/// The host paths of one thread, and what to show for them.
#[derive(Clone, Debug)]
pub(crate) struct HostMask {
    needles: Vec<Needle>,
    back: usize,
}

#[derive(Clone, Debug)]
struct Needle {
    finder: Finder<'static>,
    shown: String,
    begins: Begins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    Anywhere,
    /// A name such as `/tmp` is one only where no other name stands before it.
    AtTheRoot,
    /// The kernel shows paths from the root of their file system, so what stands before the needle varies.
    Above,
}

/// A host path in the output.
#[derive(Clone, Copy)]
struct Occurrence<'a> {
    needle: &'a Needle,
    /// Where the needle is.
    at: usize,
    /// Where what is replaced begins.
    from: usize,
}

impl HostMask {
    pub(crate) fn new(roots: &Roots) -> Self {
        let mut mask = Self { needles: Vec::new(), back: MAX_BACK };
        for root in &roots.0 {
            let Some(host) = root.host.as_path().to_str() else { continue };
            if root.shown_at.as_str() == WORKSPACE {
                let above = host.rsplit_once('/').map_or(host, |(above, _)| above);
                mask.add_of_thread(above, USER_DATA);
            } else if root.is_archive() {
                mask.add_of_thread(host, root.shown_at.as_str());
            } else if !root.shown_at.is_under(USER_DATA) {
                mask = mask.also(root.host.as_path(), root.shown_at.as_str());
            }
        }
        mask
    }

    /// Shows `host` as `shown` too.
    pub(crate) fn also(mut self, host: &Path, shown: &str) -> Self {
        if let Some(host) = host.to_str() {
            let at_the_root = host.matches('/').count() == 1;
            self.add(host, shown, if at_the_root { Begins::AtTheRoot } else { Begins::Anywhere });
        }
        self
    }

    /// Shows what the kernel says the roots were mounted from. That of a thread is known whatever stands before it.
    pub(crate) fn with_origins(mut self, roots: &Roots, mounts: &MountTable) -> Self {
        for root in roots.0.iter().filter(|root| !root.is_archive() && !root.shown_at.is_under(USER_DATA)) {
            let origin = mounts.origin(root.host.as_path());
            // A single name says nothing about the host, and is too common a word to replace.
            let told = |path: &&str| path.matches('/').count() > 1;
            if let Some(origin) = origin.as_deref().and_then(Path::to_str).filter(told) {
                self.add(origin, root.shown_at.as_str(), Begins::AtTheRoot);
            }
        }
        self
    }

    /// A whole text as it is shown.
    pub(crate) fn shown(&self, text: &str) -> String {
        let mut shown = Vec::with_capacity(text.len());
        let mut stream = MaskStream::new(self.clone());
        stream.push(text.as_bytes(), |bytes| shown.extend_from_slice(bytes));
        stream.finish(|bytes| shown.extend_from_slice(bytes));
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// `/users/{user}/threads/{thread}/user-data` and its like: enough to know the thread's directories by.
    fn add_of_thread(&mut self, host: &str, shown: &str) {
        const OWN: usize = 5;
        let at = host.rmatch_indices('/').nth(OWN - 1).map_or(0, |(at, _)| at);
        self.add(host.get(at..).unwrap_or(host), shown, Begins::Above);
    }

    fn add(&mut self, host: &str, shown: &str, begins: Begins) {
        if host.len() > 1 {
            let finder = Finder::new(host).into_owned();
            self.needles.push(Needle { finder, shown: shown.to_owned(), begins });
        }
    }

    /// Where in `text` a path that is not complete yet may begin.
    fn hold_from(&self, text: &[u8]) -> usize {
        let of_needle = |needle: &Needle| {
            let path = needle.finder.needle();
            (text.len().saturating_sub(path.len())..=text.len())
                .filter(|at| text.get(*at..).is_some_and(|tail| path.starts_with(tail)))
                .map(|at| self.reach(needle, text, at, 0))
                .min()
        };
        self.needles.iter().filter_map(of_needle).min().unwrap_or(text.len())
    }

    /// Where what is replaced begins if the needle is at `at`: not before `floor`.
    fn reach(&self, needle: &Needle, text: &[u8], at: usize, floor: usize) -> usize {
        if needle.begins != Begins::Above {
            return at;
        }
        let floor = floor.max(at.saturating_sub(self.back));
        let before = text.get(floor..at).unwrap_or_default();
        // Most output has no path at its end, and a flood must not pay for the question.
        if memchr::memrchr(b'/', before).is_none() {
            return at;
        }
        let run = before.iter().rev().take_while(|byte| **byte == b'/' || is_of_a_name(**byte)).count();
        let run = before.get(before.len() - run..).unwrap_or_default();
        // What stands before the first `/` is no part of an absolute path.
        memchr::memchr(b'/', run).map_or(at, |slash| at - run.len() + slash)
    }

    /// The first place from `floor` on where the needle is a whole path.
    fn next<'a>(&'a self, needle: &'a Needle, piece: &Piece<'_>, floor: usize) -> Option<Occurrence<'a>> {
        let mut start = floor;
        loop {
            let at = start + needle.finder.find(piece.text.get(start..)?)?;
            let end = at + needle.finder.needle().len();
            let ends = match piece.text.get(end) {
                Some(byte) => !is_of_a_name(*byte),
                None => piece.is_last,
            };
            let before = at.checked_sub(1).map_or(piece.before, |before| piece.text.get(before).copied());
            let inside = before.is_some_and(|byte| byte == b'/' || is_of_a_name(byte));
            if ends && !(inside && needle.begins == Begins::AtTheRoot) {
                return Some(Occurrence { needle, at, from: self.reach(needle, piece.text, at, floor) });
            }
            start = at + 1;
        }
    }

    /// What can be shown of `piece`, and how many bytes of it that stands for.
    fn apply<'t>(&self, piece: &Piece<'t>) -> (Cow<'t, [u8]>, usize) {
        let text = piece.text;
        let hold = if piece.is_last { text.len() } else { self.hold_from(text) };
        let mut next: Vec<_> = self.needles.iter().map(|needle| self.next(needle, piece, 0)).collect();
        let mut shown = Vec::new();
        let mut floor = 0;
        loop {
            // The one that begins first, of several the longest.
            let of =
                |found: &Occurrence<'_>| (found.from, std::cmp::Reverse(found.needle.finder.needle().len()));
            let first = next.iter().flatten().copied().min_by_key(of).filter(|found| found.from < hold);
            let Some(found) = first else { break };
            shown.extend_from_slice(text.get(floor..found.from).unwrap_or_default());
            shown.extend_from_slice(found.needle.shown.as_bytes());
            floor = found.at + found.needle.finder.needle().len();
            for (next, needle) in next.iter_mut().zip(&self.needles) {
                *next = match *next {
                    Some(found) if found.at >= floor => {
                        Some(Occurrence { from: self.reach(needle, text, found.at, floor), ..found })
                    }
                    Some(_) => self.next(needle, piece, floor),
                    None => None,
                };
            }
        }
        let end = hold.max(floor);
        let rest = text.get(floor..end).unwrap_or_default();
        if floor == 0 {
            return (Cow::Borrowed(rest), end);
        }
        shown.extend_from_slice(rest);
        (Cow::Owned(shown), end)
    }
}

/// A part of the output.
struct Piece<'t> {
    text: &'t [u8],
    /// The byte before it.
    before: Option<u8>,
    is_last: bool,
}

/// Masks a stream of bytes, holding back what may be the beginning of a path whose rest is still to come.
pub(crate) struct MaskStream {
    mask: HostMask,
    held: Vec<u8>,
    before: Option<u8>,
}

impl MaskStream {
    pub(crate) fn new(mask: HostMask) -> Self {
        Self { mask, held: Vec::new(), before: None }
    }

    /// Hands over what can be shown now.
    pub(crate) fn push(&mut self, bytes: &[u8], take: impl FnOnce(&[u8])) {
        self.advance(bytes, false, take);
    }

    /// Hands over what was held back; nothing follows.
    pub(crate) fn finish(mut self, take: impl FnOnce(&[u8])) {
        self.advance(&[], true, take);
    }

    fn advance(&mut self, bytes: &[u8], is_last: bool, take: impl FnOnce(&[u8])) {
        let mut held = std::mem::take(&mut self.held);
        let text = if held.is_empty() {
            bytes
        } else {
            held.extend_from_slice(bytes);
            held.as_slice()
        };
        let (shown, done) = self.mask.apply(&Piece { text, before: self.before, is_last });
        if !shown.is_empty() {
            take(&shown);
        }
        self.before = done.checked_sub(1).and_then(|last| text.get(last).copied()).or(self.before);
        self.held = text.get(done..).unwrap_or_default().to_vec();
    }
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'@' | 0x80..)
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
