//! Files by name.
//!
//! Invariant: a directory that cannot hold a match is not read.

use super::best::{Best, Cutoff};
use super::pattern::Pattern;
use super::{Start, below, each_root};
use crate::contract::{EntryKind, GlobQuery, GlobResult, Shows};
use crate::error::Result;
use crate::files::{Explorer, Roots, Seen, explore, is_noise};
use crate::path::VPath;

const MAX_RESULTS: usize = 1_000;

pub(crate) fn glob(roots: &Roots, query: &GlobQuery) -> Result<GlobResult> {
    let pattern = Pattern::new(&query.pattern, &query.base)?;
    let limit = query.max_results.clamp(1, MAX_RESULTS);
    let mut result = GlobResult::default();
    each_root(roots, &query.base, |Start { root, relative, shown, prefix }| {
        let room = limit - result.paths.len();
        let cutoff = Cutoff::default();
        let make = || Globber {
            pattern: &pattern,
            dirs: query.include_dirs,
            prefix: prefix.as_bytes(),
            key: Vec::new(),
            found: Best::new(room, &cutoff),
            shown,
            shows: &query.shows,
        };
        let skip = |name: &[u8]| is_noise(name) && !pattern.names(name);
        let (globbers, truncated) = explore(root, relative, &skip, make)?;
        let (found, more) = Best::merge(globbers.into_iter().map(|globber| globber.found), room);
        result.paths.extend(found.iter().map(|found| below(shown, &found.key)));
        result.truncated |= truncated || more;
        Ok(!result.truncated)
    })?;
    Ok(result)
}

struct Globber<'a> {
    pattern: &'a Pattern,
    dirs: bool,
    prefix: &'a [u8],
    /// Used again for every entry.
    key: Vec<u8>,
    found: Best<'a, ()>,
    shown: &'a VPath,
    shows: &'a Shows,
}

impl Explorer for Globber<'_> {
    fn notice(&mut self, seen: &Seen<'_>) -> bool {
        if seen.kind == EntryKind::Directory && !self.dirs {
            return false;
        }
        if self.pattern.matches(seen, self.prefix, &mut self.key) {
            seen.write_key(&mut self.key);
            if !self.found.excludes(&self.key) && self.shows.file(|| below(self.shown, &self.key)) {
                self.found.push(&self.key, 1, ());
            }
        }
        false
    }

    fn enters(&self, key: &[u8]) -> bool {
        self.pattern.may_match_below(self.prefix, key) && !self.found.excludes(key)
    }
}
