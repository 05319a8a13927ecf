//! Patterns for paths: `*` and `?` within a name, `**` across directories, `[a-z]`, `{a,b}`.
//!
//! Without a `/` a pattern is about the name, in any directory. With one it is about the path below the directory that
//! is searched; a leading `/` or `./` says so for a single name. Hidden names are names like all others.
//!
//! Invariant: what is ruled out early could not have matched.

use globset::{Glob, GlobBuilder, GlobMatcher};

use crate::error::{Result, SandboxError};
use crate::files::Seen;
use crate::path::VPath;

pub(super) struct Pattern {
    text: String,
    matcher: GlobMatcher,
    /// Only the name matters, in whatever directory.
    by_name: bool,
    /// How every matching name begins and ends; far cheaper to ask than the matcher.
    first: Vec<u8>,
    last: Vec<u8>,
    /// The directories every matching path begins with.
    leading: Vec<Vec<u8>>,
    /// How many names a matching path has at most.
    depth: usize,
}

impl Pattern {
    /// `base` is where the search begins; an absolute pattern below it is understood too, as models like to write them.
    pub(super) fn new(pattern: &str, base: &VPath) -> Result<Self> {
        let (relative, anchored) = relative(pattern, base)?;
        let by_name = match relative.strip_prefix("**/") {
            Some(name) => Some(name).filter(|name| !name.contains('/') && *name != "**"),
            None => Some(relative).filter(|name| !anchored && !name.contains('/')),
        };
        let text = by_name.unwrap_or(relative);
        let matcher = GlobBuilder::new(text)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .as_ref()
            .map(Glob::compile_matcher)
            .map_err(|error| SandboxError::BadPattern {
                pattern: pattern.to_owned(),
                reason: error.kind().to_string(),
            })?;
        let mut made = Self {
            text: relative.to_owned(),
            matcher,
            by_name: by_name.is_some(),
            first: Vec::new(),
            last: Vec::new(),
            leading: Vec::new(),
            depth: usize::MAX,
        };
        // Brackets, braces and escapes may hide a separator, so nothing is concluded from such patterns.
        if !text.contains(['[', ']', '{', '}', '\\']) {
            made.conclude(text);
        }
        Ok(made)
    }

    fn conclude(&mut self, text: &str) {
        const WILD: [char; 2] = ['*', '?'];
        let (above, name) = text.rsplit_once('/').unwrap_or(("", text));
        self.first = name.split(WILD).next().unwrap_or_default().into();
        self.last = name.rsplit(WILD).next().unwrap_or_default().into();
        if self.by_name {
            return;
        }
        let above: Vec<&str> = above.split('/').filter(|part| !part.is_empty()).collect();
        let leading = above.iter().take_while(|part| !part.contains(WILD));
        self.leading = leading.map(|part| part.as_bytes().to_vec()).collect();
        if !text.contains("**") {
            self.depth = above.len() + 1;
        }
    }

    /// `key` is room to write in.
    pub(super) fn matches(&self, seen: &Seen<'_>, prefix: &[u8], key: &mut Vec<u8>) -> bool {
        let name = seen.name();
        if !name.starts_with(&self.first) || !name.ends_with(&self.last) {
            return false;
        }
        if self.by_name {
            return self.is_match(name);
        }
        key.clear();
        key.extend_from_slice(prefix);
        seen.add_key(key);
        self.is_match(key)
    }

    fn is_match(&self, path: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt;
        self.matcher.is_match(std::ffi::OsStr::from_bytes(path))
    }

    /// Whether there can be a match in the directory `key`, or below it.
    pub(super) fn may_match_below(&self, prefix: &[u8], key: &[u8]) -> bool {
        if self.leading.is_empty() && self.depth == usize::MAX {
            return true;
        }
        let parts = |path| <[u8]>::split(path, |byte| *byte == b'/').filter(|part| !part.is_empty());
        let mut wanted = self.leading.iter();
        let mut depth = 0;
        let leads_there = parts(prefix).chain(parts(key)).all(|part| {
            depth += 1;
            wanted.next().is_none_or(|wanted| wanted == part)
        });
        leads_there && depth < self.depth
    }

    /// Who names a noisy directory in the pattern means it.
    pub(super) fn names(&self, name: &[u8]) -> bool {
        self.text.split('/').any(|part| part.as_bytes() == name)
    }
}

/// The pattern below `base`, and whether it says that it begins there.
fn relative<'a>(pattern: &'a str, base: &VPath) -> Result<(&'a str, bool)> {
    let bad =
        |reason: &str| SandboxError::BadPattern { pattern: pattern.to_owned(), reason: reason.to_owned() };
    let below = pattern.strip_prefix(base.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let (relative, anchored) = if let Some(below) = below {
        (below, true)
    } else if pattern.starts_with("/mnt/") {
        return Err(bad(&format!("it is absolute and not below `{base}`; write it relative to that path")));
    } else if let Some(below) = pattern.strip_prefix('/').or_else(|| pattern.strip_prefix("./")) {
        (below, true)
    } else {
        (pattern, false)
    };
    if relative.is_empty() {
        return Err(bad("it is empty; write for example `**/*.md`"));
    }
    if relative.split('/').any(|part| part == "..") {
        return Err(bad("`..` is not allowed in it; give another path to search in"));
    }
    Ok((relative, anchored))
}
