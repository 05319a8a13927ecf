//! Finding files by name and lines by content.
//!
//! Invariant: the cost of a search is bounded by the tree, never by the pattern: both engines are linear.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use globset::{Glob, GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{Searcher, SearcherBuilder};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::contract::{EntryKind, GlobQuery, GlobResult, GrepMatch, GrepQuery, GrepResult};
use crate::error::{Result, SandboxError};
use crate::files::{Explorer, OpenRoot, Place, Roots, Seen, explain, explore, is_noise, path_order};
use crate::path::VPath;

const MAX_FILE: u64 = 1 << 20;
const MAX_LINE: usize = 200;
/// Of one search, over all files.
const MAX_BYTES: u64 = 512 << 20;
const MAX_RESULTS_GLOB: usize = 1_000;
const MAX_RESULTS_GREP: usize = 500;

pub(crate) fn glob(roots: &Roots, query: &GlobQuery) -> Result<GlobResult> {
    let pattern = relative_pattern(&query.pattern, &query.base)?;
    let matcher = compile_glob(&pattern)?;
    let limit = query.max_results.clamp(1, MAX_RESULTS_GLOB);
    let mut result = GlobResult::default();
    each_root(roots, &query.base, |root, relative, start, prefix| {
        let room = limit - result.paths.len();
        let make = || Globber { matcher: &matcher, dirs: query.include_dirs, prefix, found: Best::new(room) };
        let skip = |name: &str| is_noise(name) && !names(&pattern, name);
        let (globbers, truncated) = explore(root, relative, &skip, make)?;
        let (found, more) = Best::merge(globbers.into_iter().map(|globber| globber.found), room);
        result.paths.extend(found.into_iter().map(|(_, shown)| start.child(&shown)));
        result.truncated |= truncated || more;
        Ok(!result.truncated)
    })?;
    Ok(result)
}

pub(crate) fn grep(roots: &Roots, query: &GrepQuery) -> Result<GrepResult> {
    let filter = query.glob.as_deref().map(|glob| relative_pattern(glob, &query.base)).transpose()?;
    let limit = query.max_results.clamp(1, MAX_RESULTS_GREP);
    let grep = Grep {
        matcher: compile_regex(query)?,
        filter: filter.as_deref().map(compile_glob).transpose()?,
        filter_by_name: filter.as_deref().is_some_and(|filter| !filter.contains('/')),
        bytes_left: AtomicU64::new(MAX_BYTES),
        skipped_large: AtomicUsize::new(0),
        skipped_binary: AtomicUsize::new(0),
    };
    let mut result = GrepResult::default();
    if let Place::In { root, relative } = roots.locate(&query.base)? {
        let open = OpenRoot::open(root, &query.base)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let explained = |errno| explain(&query.base, errno);
        let kind = open
            .beneath(relative, OFlags::PATH, Mode::empty())
            .and_then(rustix::fs::fstat)
            .map_err(explained)?;
        if !FileType::from_raw_mode(kind.st_mode).is_dir() {
            let cutoff = Cutoff::default();
            let mut grepper = grep.with("", limit, &cutoff);
            if let Ok(fd) = open.beneath(relative, flags, Mode::empty()) {
                grepper.file(fd.into(), b"", "");
            }
            let (found, more) = Best::merge([grepper.found], limit);
            result.matches.extend(found.into_iter().map(|(_, hit)| hit.at(query.base.clone())));
            result.truncated = more;
            grep.tell_skipped(&mut result);
            return Ok(result);
        }
    }
    each_root(roots, &query.base, |root, relative, start, prefix| {
        let room = limit - result.matches.len();
        let cutoff = Cutoff::default();
        let skip = |name: &str| is_noise(name) && !filter.as_deref().is_some_and(|glob| names(glob, name));
        let (greppers, truncated) = explore(root, relative, &skip, || grep.with(prefix, room, &cutoff))?;
        let (found, more) = Best::merge(greppers.into_iter().map(|grepper| grepper.found), room);
        result.matches.extend(found.into_iter().map(|(_, hit)| {
            let path = start.child(&hit.shown);
            hit.at(path)
        }));
        result.truncated |= truncated || more;
        Ok(!result.truncated)
    })?;
    grep.tell_skipped(&mut result);
    Ok(result)
}

/// Who names a noisy directory in the pattern means it.
fn names(pattern: &str, name: &str) -> bool {
    pattern.split('/').any(|part| part == name)
}

/// Calls `search` for the directory that `base` is, or for each of the thread's own, until it says no.
fn each_root(
    roots: &Roots,
    base: &VPath,
    mut search: impl FnMut(&OpenRoot, &str, &VPath, &str) -> Result<bool, Errno>,
) -> Result<()> {
    let explained = |errno| explain(base, errno);
    match roots.locate(base)? {
        Place::In { root, relative } => {
            search(&OpenRoot::open(root, base)?, relative, base, "").map_err(explained)?;
        }
        Place::UserData => {
            for root in roots.of_thread() {
                let prefix = format!("{}/", root.shown_at.file_name());
                if !search(&OpenRoot::open(root, base)?, "", &root.shown_at, &prefix).map_err(explained)? {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The first results in path order, whatever order they are found in.
struct Best<T> {
    found: Vec<(Vec<u8>, T)>,
    limit: usize,
    more: bool,
}

impl<T> Best<T> {
    fn new(limit: usize) -> Self {
        Self { found: Vec::new(), limit, more: false }
    }

    /// True when this made it drop some: then what comes after [`Self::last`] does not count any more.
    fn push(&mut self, key: &[u8], item: T) -> bool {
        self.found.push((key.to_vec(), item));
        let full = self.found.len() >= self.limit.saturating_mul(2).max(64);
        if full {
            self.trim();
        }
        full
    }

    fn trim(&mut self) {
        // Stable: the lines of one file stay in their order.
        self.found.sort_by(|a, b| path_order(&a.0, &b.0));
        self.more |= self.found.len() > self.limit;
        self.found.truncate(self.limit);
    }

    fn last(&self) -> Option<&[u8]> {
        (self.found.len() >= self.limit).then(|| self.found.last().map(|(key, _)| key.as_slice())).flatten()
    }

    fn merge(parts: impl IntoIterator<Item = Self>, limit: usize) -> (Vec<(Vec<u8>, T)>, bool) {
        let mut all = Self::new(limit);
        for part in parts {
            all.more |= part.more;
            all.found.extend(part.found);
        }
        all.trim();
        (all.found, all.more)
    }
}

struct Globber<'a> {
    matcher: &'a GlobMatcher,
    dirs: bool,
    prefix: &'a str,
    found: Best<String>,
}

impl Explorer for Globber<'_> {
    fn visit(&mut self, seen: &Seen<'_>) -> bool {
        if seen.kind == EntryKind::Directory && !self.dirs {
            return true;
        }
        let matches = match self.prefix {
            "" => self.matcher.is_match(seen.shown),
            prefix => self.matcher.is_match(format!("{prefix}{}", seen.shown)),
        };
        if matches {
            self.found.push(seen.key, seen.shown.to_owned());
        }
        true
    }
}

/// The path after which no result counts any more, known to all threads of a search.
#[derive(Default)]
struct Cutoff(Mutex<Option<Vec<u8>>>);

impl Cutoff {
    fn excludes(&self, key: &[u8]) -> bool {
        let cutoff = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cutoff.as_ref().is_some_and(|last| path_order(key, last).is_gt())
    }

    fn lower(&self, last: &[u8]) {
        let mut cutoff = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cutoff.as_ref().is_none_or(|now| path_order(last, now).is_lt()) {
            *cutoff = Some(last.to_vec());
        }
    }
}

struct Hit {
    shown: String,
    line: u64,
    text: String,
}

impl Hit {
    fn at(self, path: VPath) -> GrepMatch {
        GrepMatch { path, line: self.line, text: self.text }
    }
}

/// What all threads of a search share.
struct Grep {
    matcher: RegexMatcher,
    filter: Option<GlobMatcher>,
    filter_by_name: bool,
    bytes_left: AtomicU64,
    skipped_large: AtomicUsize,
    skipped_binary: AtomicUsize,
}

impl Grep {
    fn tell_skipped(&self, result: &mut GrepResult) {
        result.skipped_large = self.skipped_large.load(Ordering::Relaxed);
        result.skipped_binary = self.skipped_binary.load(Ordering::Relaxed);
    }

    fn with<'a>(&'a self, prefix: &'a str, room: usize, cutoff: &'a Cutoff) -> Grepper<'a> {
        let searcher = SearcherBuilder::new().line_number(true).build();
        Grepper { grep: self, searcher, prefix, buffer: Vec::new(), found: Best::new(room), cutoff }
    }
}

struct Grepper<'a> {
    grep: &'a Grep,
    searcher: Searcher,
    prefix: &'a str,
    /// Used again for every file.
    buffer: Vec<u8>,
    found: Best<Hit>,
    cutoff: &'a Cutoff,
}

impl Explorer for Grepper<'_> {
    fn visit(&mut self, seen: &Seen<'_>) -> bool {
        if seen.kind != EntryKind::File || !self.wants(seen.shown) || self.cutoff.excludes(seen.key) {
            return true;
        }
        match seen.open() {
            Some(file) => self.file(file, seen.key, seen.shown),
            None => true,
        }
    }

    fn enters(&self, key: &[u8]) -> bool {
        !self.cutoff.excludes(key)
    }
}

impl Grepper<'_> {
    fn wants(&self, shown: &str) -> bool {
        let Some(filter) = &self.grep.filter else { return true };
        if self.grep.filter_by_name {
            return filter.is_match(shown.rsplit('/').next().unwrap_or(shown));
        }
        filter.is_match(format!("{}{shown}", self.prefix))
    }

    /// False once there is no room for more. Files that are large, binary or unreadable are passed over.
    fn file(&mut self, file: File, key: &[u8], shown: &str) -> bool {
        match read_text_file(file, &mut self.buffer) {
            Ok(()) => {}
            Err(Skipped::Large) => {
                self.grep.skipped_large.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Err(Skipped::Binary) => {
                self.grep.skipped_binary.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Err(Skipped::Unreadable) => return true,
        }
        let len = self.buffer.len() as u64;
        let left = &self.grep.bytes_left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(len));
        if taken.is_err() {
            return false;
        }
        let Self { grep, searcher, buffer, found, cutoff, .. } = self;
        let mut of_this_file = 0;
        let sink = Lossy(|line, text| {
            let text = text.trim_end_matches(['\n', '\r']);
            let hit = Hit { shown: shown.to_owned(), line, text: cut(text) };
            if found.push(key, hit)
                && let Some(last) = found.last()
            {
                cutoff.lower(last);
            }
            of_this_file += 1;
            // One more than counts, so that it is known that there are more.
            Ok(of_this_file <= found.limit)
        });
        // Reading from memory cannot fail; were it to, the file counts as unreadable.
        let _ = searcher.search_slice(&grep.matcher, buffer, sink);
        true
    }
}

/// Why a file was not searched.
enum Skipped {
    Large,
    Binary,
    /// Gone, not allowed, or no file at all.
    Unreadable,
}

fn read_text_file(mut file: File, content: &mut Vec<u8>) -> Result<(), Skipped> {
    content.clear();
    let found = rustix::fs::fstat(&file).map_err(|_| Skipped::Unreadable)?;
    let size = found.st_size.unsigned_abs();
    if !FileType::from_raw_mode(found.st_mode).is_file() {
        return Err(Skipped::Unreadable);
    }
    if size > MAX_FILE {
        return Err(Skipped::Large);
    }
    content.reserve(usize::try_from(size).map_err(|_| Skipped::Large)? + 1);
    // The file may grow while it is read, so the limit is on what is read.
    (&mut file).take(MAX_FILE + 1).read_to_end(content).map_err(|_| Skipped::Unreadable)?;
    if content.len() as u64 > MAX_FILE {
        return Err(Skipped::Large);
    }
    if memchr::memchr(0, content).is_some() { Err(Skipped::Binary) } else { Ok(()) }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

/// Accepts an absolute pattern below `base`, as models like to write them.
fn relative_pattern(pattern: &str, base: &VPath) -> Result<String> {
    let bad =
        |reason: &str| SandboxError::BadPattern { pattern: pattern.to_owned(), reason: reason.to_owned() };
    let relative = if pattern.starts_with('/') {
        pattern.strip_prefix(base.as_str()).and_then(|rest| rest.strip_prefix('/')).ok_or_else(|| {
            bad(&format!("it is absolute and not below `{base}`; write it relative to that path"))
        })?
    } else {
        pattern.strip_prefix("./").unwrap_or(pattern)
    };
    if relative.is_empty() {
        return Err(bad("it is empty; write for example `**/*.md`"));
    }
    if relative.split('/').any(|part| part == "..") {
        return Err(bad("`..` is not allowed in it; give another path to search in"));
    }
    Ok(relative.to_owned())
}

fn compile_glob(pattern: &str) -> Result<GlobMatcher> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .as_ref()
        .map(Glob::compile_matcher)
        .map_err(|error| SandboxError::BadPattern {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })
}

fn compile_regex(query: &GrepQuery) -> Result<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(!query.case_sensitive)
        .fixed_strings(query.literal)
        .line_terminator(Some(b'\n'))
        .size_limit(10 << 20)
        .dfa_size_limit(10 << 20);
    builder.build(&query.pattern).map_err(|error| SandboxError::BadPattern {
        pattern: query.pattern.clone(),
        reason: error.to_string(),
    })
}
