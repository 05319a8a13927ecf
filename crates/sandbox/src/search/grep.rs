//! Lines by content.
//!
//! Invariant: a file that is passed over because it is large or no text is counted, unless it lies behind the last
//! result that is shown.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder};
use rustix::fs::{FileType, Mode, OFlags};

use super::best::{Best, Cutoff, Found};
use super::lines::{Collected, Collector};
use super::pattern::Pattern;
use super::{Start, below, each_root};
use crate::contract::{EntryKind, GrepFile, GrepOutput, GrepQuery, GrepResult, Shows};
use crate::error::{Result, SandboxError};
use crate::files::{Explorer, OpenRoot, Place, Roots, Seen, explain, explore, is_noise, path_order};
use crate::path::VPath;

/// A larger file among others is passed over; one that is named itself is searched.
const MAX_FILE: u64 = 1 << 20;
/// Of one search, over all files.
const MAX_BYTES: u64 = 512 << 20;
const MAX_RESULTS: usize = 500;
const MAX_CONTEXT: usize = 20;
/// A named file is read in pieces; its longest line must fit into one.
const MAX_LINE_IN_NAMED: usize = 32 << 20;
/// Where a file without text is told from one with text.
const HEAD: usize = 8 << 10;

pub(crate) fn grep(roots: &Roots, query: &GrepQuery) -> Result<GrepResult> {
    let limit = query.max_results.clamp(1, MAX_RESULTS);
    let grep = Grep::new(query, limit)?;
    let mut answer = Answer { result: GrepResult::default(), output: query.output, limit };
    if let Place::In { root, relative } = roots.locate(&query.base)? {
        let open = OpenRoot::open(root, &query.base)?;
        let explained = |errno| explain(&query.base, errno);
        let kind = open
            .beneath(relative, OFlags::PATH, Mode::empty())
            .and_then(rustix::fs::fstat)
            .map_err(explained)?;
        if !FileType::from_raw_mode(kind.st_mode).is_dir() {
            let cutoff = Cutoff::default();
            let mut grepper = grep.with("", &query.base, limit, &cutoff);
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            if let Ok(fd) = open.beneath(relative, flags, Mode::empty()) {
                grepper.named_file(fd.into());
            }
            answer.add(vec![grepper], limit, |_| query.base.clone());
            return Ok(answer.result);
        }
    }
    each_root(roots, &query.base, |Start { root, relative, shown, prefix }| {
        let room = answer.room();
        let cutoff = Cutoff::default();
        let skip = |name: &[u8]| is_noise(name) && !grep.filter.as_ref().is_some_and(|glob| glob.names(name));
        let (greppers, truncated) =
            explore(root, relative, &skip, || grep.with(prefix, shown, room, &cutoff))?;
        answer.result.truncated |= truncated;
        answer.add(greppers, room, |key| below(shown, key));
        Ok(!answer.result.truncated)
    })?;
    Ok(answer.result)
}

/// What all threads of a search share.
struct Grep {
    matcher: RegexMatcher,
    filter: Option<Pattern>,
    output: GrepOutput,
    before: usize,
    after: usize,
    limit: usize,
    line_end: LineTerminator,
    bytes_left: AtomicU64,
    shows: Shows,
}

impl Grep {
    fn new(query: &GrepQuery, limit: usize) -> Result<Self> {
        let bad = |reason: String| SandboxError::BadPattern { pattern: query.pattern.clone(), reason };
        // `$` shall be found before a Windows line end too; only patterns that ask for a line's end pay for it.
        let windows = !query.literal && query.pattern.contains('$');
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .case_insensitive(!query.case_sensitive)
            .fixed_strings(query.literal)
            .size_limit(10 << 20)
            .dfa_size_limit(10 << 20);
        let line_end = if windows {
            builder.crlf(true);
            LineTerminator::crlf()
        } else {
            builder.line_terminator(Some(b'\n'));
            LineTerminator::byte(b'\n')
        };
        let context =
            |lines: usize| if query.output == GrepOutput::Lines { lines.min(MAX_CONTEXT) } else { 0 };
        Ok(Self {
            matcher: builder.build(&query.pattern).map_err(|error| bad(in_words(&error)))?,
            filter: query.glob.as_deref().map(|glob| Pattern::new(glob, &query.base)).transpose()?,
            output: query.output,
            before: context(query.before),
            after: context(query.after),
            limit,
            line_end,
            bytes_left: AtomicU64::new(MAX_BYTES),
            shows: query.shows.clone(),
        })
    }

    fn with<'a>(&'a self, prefix: &'a str, shown: &'a VPath, room: usize, cutoff: &'a Cutoff) -> Grepper<'a> {
        let searcher = SearcherBuilder::new()
            .line_terminator(self.line_end)
            .line_number(self.output == GrepOutput::Lines)
            .before_context(self.before)
            .after_context(self.after)
            .heap_limit(Some(MAX_LINE_IN_NAMED))
            .build();
        Grepper {
            grep: self,
            searcher,
            prefix: prefix.as_bytes(),
            shown,
            buffer: Vec::new(),
            key: Vec::new(),
            found: Best::new(room, cutoff),
            skipped: Vec::new(),
        }
    }
}

fn in_words(error: &grep_regex::Error) -> String {
    match error.kind() {
        ErrorKind::NotAllowed(_) => {
            "it holds a line end, and matching is by line; look for one of the lines, with the lines around it".to_owned()
        }
        _ => error.to_string(),
    }
}

struct Grepper<'a> {
    grep: &'a Grep,
    searcher: Searcher,
    prefix: &'a [u8],
    shown: &'a VPath,
    /// Both used again for every file.
    buffer: Vec<u8>,
    key: Vec<u8>,
    found: Best<'a, Collected>,
    skipped: Vec<(Vec<u8>, Skipped)>,
}

impl Explorer for Grepper<'_> {
    fn notice(&mut self, seen: &Seen<'_>) -> bool {
        let Self { grep, prefix, key, .. } = self;
        let wanted = |filter: &Pattern| filter.matches(seen, prefix, key);
        seen.kind == EntryKind::File && grep.filter.as_ref().is_none_or(wanted)
    }

    fn examine(&mut self, file: &Seen<'_>) -> bool {
        file.write_key(&mut self.key);
        let shows = || self.grep.shows.file(|| below(self.shown, &self.key));
        if self.found.excludes(&self.key) || !shows() {
            return true;
        }
        file.open().is_none_or(|file| self.file(file))
    }

    fn enters(&self, key: &[u8]) -> bool {
        let filter = self.grep.filter.as_ref();
        filter.is_none_or(|filter| filter.may_match_below(self.prefix, key)) && !self.found.excludes(key)
    }
}

impl Grepper<'_> {
    /// Searches the file at `self.key`. False once more was read than anyone should wait for.
    fn file(&mut self, file: File) -> bool {
        let text = match read_text(&file, &mut self.buffer) {
            Ok(text) => text,
            Err(Skipped::Unreadable) => return true,
            Err(skipped) => {
                self.skipped.push((self.key.clone(), skipped));
                return true;
            }
        };
        let (left, len) = (&self.grep.bytes_left, text.len() as u64);
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(len)).is_err() {
            return false;
        }
        let mut collector = Collector::new(&self.grep.matcher, self.grep.output, self.grep.limit);
        // Reading from memory cannot fail; were it to, the file counts as unreadable.
        let _ = self.searcher.search_slice(&self.grep.matcher, text, &mut collector);
        self.keep(collector);
        true
    }

    /// Searches a file that was asked for by its name, however large it is.
    fn named_file(&mut self, mut file: File) {
        let Ok(found) = rustix::fs::fstat(&file) else { return };
        if !FileType::from_raw_mode(found.st_mode).is_file() {
            return;
        }
        let mut head = Vec::with_capacity(HEAD);
        if (&mut file).take(HEAD as u64).read_to_end(&mut head).is_err() {
            return;
        }
        if memchr::memchr(0, &head).is_some() {
            self.skipped.push((Vec::new(), Skipped::Binary));
            return;
        }
        let mut collector = Collector::new(&self.grep.matcher, self.grep.output, self.grep.limit);
        let whole = head.as_slice().chain(file).take(MAX_BYTES);
        let searched = self.searcher.search_reader(&self.grep.matcher, whole, &mut collector);
        if searched.is_err() || (found.st_size.unsigned_abs() > MAX_BYTES && !collector.is_full()) {
            self.skipped.push((Vec::new(), Skipped::Large));
        }
        self.keep(collector);
    }

    fn keep(&mut self, collector: Collector<'_>) {
        if let Some((weight, collected)) = collector.finish() {
            self.found.push(&self.key, weight, collected);
        }
    }
}

/// Why a file was not searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skipped {
    Large,
    Binary,
    /// Gone, not allowed, or no file at all.
    Unreadable,
}

fn read_text<'a>(file: &File, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Skipped> {
    let found = rustix::fs::fstat(file).map_err(|_| Skipped::Unreadable)?;
    if !FileType::from_raw_mode(found.st_mode).is_file() {
        return Err(Skipped::Unreadable);
    }
    let size = found.st_size.unsigned_abs();
    if size > MAX_FILE {
        return Err(Skipped::Large);
    }
    let mut read = 0;
    // One byte more than there should be: if it stays unread, that was the end.
    let mut wanted = usize::try_from(size).map_err(|_| Skipped::Large)? + 1;
    loop {
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        let room = buffer.get_mut(read..wanted).unwrap_or_default();
        match rustix::io::retry_on_intr(|| rustix::io::read(file, &mut *room)) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(_) => return Err(Skipped::Unreadable),
        }
        if read as u64 == size {
            break;
        }
        if read as u64 > MAX_FILE {
            return Err(Skipped::Large);
        }
        // It grows while it is read.
        if read == wanted {
            wanted = (wanted * 2).min(MAX_FILE as usize + 1);
        }
    }
    let text = buffer.get(..read).unwrap_or_default();
    if memchr::memchr(0, text).is_some() { Err(Skipped::Binary) } else { Ok(text) }
}

struct Answer {
    result: GrepResult,
    output: GrepOutput,
    limit: usize,
}

impl Answer {
    fn room(&self) -> usize {
        self.limit - self.result.matches.len().max(self.result.files.len())
    }

    fn add(&mut self, greppers: Vec<Grepper<'_>>, room: usize, path: impl Fn(&[u8]) -> VPath) {
        let (found, skipped): (Vec<_>, Vec<_>) =
            greppers.into_iter().map(|grepper| (grepper.found, grepper.skipped)).unzip();
        let (found, more) = Best::merge(found, room);
        // How far the threads came beyond the last result is chance.
        let end = found.last().filter(|_| more).map(|last| last.key.clone());
        for (_, why) in skipped
            .into_iter()
            .flatten()
            .filter(|(key, _)| end.as_ref().is_none_or(|end| path_order(key, end).is_lt()))
        {
            match why {
                Skipped::Large => self.result.skipped_large += 1,
                Skipped::Binary => self.result.skipped_binary += 1,
                Skipped::Unreadable => {}
            }
        }
        for Found { key, item, .. } in found {
            let path = path(&key);
            match self.output {
                GrepOutput::Lines => self.result.matches.extend(item.at(&path)),
                GrepOutput::Files | GrepOutput::Counts => {
                    self.result.files.push(GrepFile { path, lines: item.counted });
                }
            }
        }
        self.result.matches.truncate(self.limit);
        self.result.truncated |= more;
    }
}
