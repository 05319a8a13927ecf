//! Finding files by name and lines by content.
//!
//! Invariant: the cost of a search is bounded by the tree, never by the pattern: both engines are linear.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;

use globset::{Glob, GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{Searcher, SearcherBuilder};
use rustix::fs::{Mode, OFlags};

use crate::contract::{EntryKind, GlobQuery, GlobResult, GrepMatch, GrepQuery, GrepResult};
use crate::error::{Result, SandboxError};
use crate::files::{Found, OpenRoot, Place, Roots, Walk, explain, is_noise};
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
    result.truncated = each_entry(roots, &query.base, &[&pattern], |_, found, path, below| {
        let wanted = found.kind != EntryKind::Directory || query.include_dirs;
        if !wanted || !matcher.is_match(below) {
            return true;
        }
        if result.paths.len() >= limit {
            return false;
        }
        result.paths.push(path);
        true
    })?;
    Ok(result)
}

pub(crate) fn grep(roots: &Roots, query: &GrepQuery) -> Result<GrepResult> {
    let filter = query.glob.as_deref().map(|glob| relative_pattern(glob, &query.base)).transpose()?;
    let filter_by_name = filter.as_deref().is_some_and(|filter| !filter.contains('/'));
    let filter_matcher = filter.as_deref().map(compile_glob).transpose()?;
    let mut search = Search {
        matcher: compile_regex(query)?,
        searcher: SearcherBuilder::new().line_number(true).build(),
        limit: query.max_results.clamp(1, MAX_RESULTS_GREP),
        bytes_left: MAX_BYTES,
        result: GrepResult::default(),
    };
    if let Place::In { root, relative } = roots.locate(&query.base)? {
        let open = OpenRoot::open(root, &query.base)?;
        let fd = open
            .beneath(relative, OFlags::PATH, Mode::empty())
            .map_err(|errno| explain(&query.base, errno))?;
        let kind = rustix::fs::fstat(&fd).map_err(|errno| explain(&query.base, errno))?.st_mode;
        if !rustix::fs::FileType::from_raw_mode(kind).is_dir() {
            search.file(&open, OsStr::new(relative), &query.base);
            return Ok(search.result);
        }
    }
    let named: Vec<&str> = filter.as_deref().into_iter().collect();
    let truncated = each_entry(roots, &query.base, &named, |root, found, path, below| {
        let name = below.rsplit('/').next().unwrap_or(below);
        let subject = if filter_by_name { name } else { below };
        if found.kind != EntryKind::File
            || filter_matcher.as_ref().is_some_and(|glob| !glob.is_match(subject))
        {
            return true;
        }
        search.file(root, found.relative(), &path)
    })?;
    search.result.truncated |= truncated;
    Ok(search.result)
}

/// Visits everything below `base` until `visit` says no; true if something was left out.
fn each_entry(
    roots: &Roots,
    base: &VPath,
    patterns: &[&str],
    mut visit: impl FnMut(&OpenRoot, &Found, VPath, &str) -> bool,
) -> Result<bool> {
    // Who names a noisy directory in the pattern means it.
    let skip =
        |name: &str| is_noise(name) && !patterns.iter().any(|glob| glob.split('/').any(|part| part == name));
    let mut below = |root: &OpenRoot, relative: &str, start: &VPath, prefix: &str| -> Result<bool> {
        let mut walk = Walk::start(root, relative, usize::MAX).map_err(|errno| explain(base, errno))?;
        while let Some(found) = walk.next(skip) {
            let path = start.child(&found.shown);
            if !visit(root, &found, path, &format!("{prefix}{}", found.shown)) {
                return Ok(true);
            }
        }
        Ok(walk.truncated())
    };
    match roots.locate(base)? {
        Place::In { root, relative } => below(&OpenRoot::open(root, base)?, relative, base, ""),
        Place::UserData => {
            for root in roots.of_thread() {
                let prefix = format!("{}/", root.shown_at.file_name());
                if below(&OpenRoot::open(root, base)?, "", &root.shown_at, &prefix)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    limit: usize,
    bytes_left: u64,
    result: GrepResult,
}

impl Search {
    /// False once there is no room for more. Files that are large, binary or unreadable are passed over.
    fn file(&mut self, root: &OpenRoot, relative: &OsStr, path: &VPath) -> bool {
        let Some(content) = read_text_file(root, relative) else { return true };
        let Some(left) = self.bytes_left.checked_sub(content.len() as u64) else {
            self.result.truncated = true;
            return false;
        };
        self.bytes_left = left;
        let Self { matcher, searcher, limit, result, .. } = self;
        let sink = Lossy(|line, text| {
            if result.matches.len() >= *limit {
                result.truncated = true;
                return Ok(false);
            }
            let text = text.trim_end_matches(['\n', '\r']);
            result.matches.push(GrepMatch { path: path.clone(), line, text: cut(text) });
            Ok(true)
        });
        // Reading from memory cannot fail; were it to, the file counts as unreadable.
        let _ = searcher.search_slice(&*matcher, &content, sink);
        !self.result.truncated
    }
}

fn read_text_file(root: &OpenRoot, relative: &OsStr) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(root.beneath(relative, flags, Mode::empty()).ok()?);
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > MAX_FILE {
        return None;
    }
    let mut content = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut content).ok()?;
    let text = content.len() as u64 <= MAX_FILE && memchr::memchr(0, &content).is_none();
    text.then_some(content)
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
