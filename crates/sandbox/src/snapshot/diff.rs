//! What changed between two snapshots, as clients are told.
//!
//! Invariant: the answer is bounded whatever was done, and says what it leaves out; secrets are never shown.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::manifest::{Content, Entry, Manifest, What, unescape};
use super::store::Store;
use crate::path::USER_DATA;
use crate::save::RESULTS;

/// The payload of `workspace_changes`, as DeerFlow spells it.
#[derive(Clone, Debug, Serialize)]
pub struct WorkspaceChanges {
    pub available: bool,
    pub version: u32,
    pub summary: ChangeSummary,
    pub files: Vec<ChangedFile>,
    pub limits: ChangeLimits,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeSummary {
    pub created: usize,
    pub modified: usize,
    pub deleted: usize,
    pub symlink_created: usize,
    pub additions: usize,
    pub deletions: usize,
    /// There were more files than are listed.
    pub truncated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    /// As the model knows it.
    pub path: String,
    pub root: String,
    pub status: ChangeStatus,
    pub binary: bool,
    pub sensitive: bool,
    pub size_before: Option<u64>,
    pub size_after: Option<u64>,
    pub sha256_before: Option<String>,
    pub sha256_after: Option<String>,
    /// Unified, with three lines around each change.
    pub diff: Option<String>,
    pub diff_truncated: bool,
    pub diff_unavailable_reason: Option<&'static str>,
    pub additions: usize,
    pub deletions: usize,
    pub symlink: bool,
    pub symlink_target_before: Option<String>,
    pub symlink_target_after: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeStatus {
    Created,
    Modified,
    Deleted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeLimits {
    pub max_files: usize,
    pub max_scanned_files: usize,
    pub max_file_bytes_for_diff: u64,
    pub max_total_diff_bytes: usize,
}

const LIMITS: ChangeLimits = ChangeLimits {
    max_files: 200,
    max_scanned_files: 200_000,
    max_file_bytes_for_diff: 256 << 10,
    max_total_diff_bytes: 1 << 20,
};

/// What is made by machines and read by nobody.
const EXCLUDED: [&str; 11] = [
    ".git",
    ".hg",
    ".svn",
    ".cache",
    ".next",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    RESULTS,
];

impl WorkspaceChanges {
    /// Of a run that met no files and made none.
    pub(super) fn none() -> Self {
        let (summary, files) = (ChangeSummary::default(), Vec::new());
        Self { available: true, version: 1, summary, files, limits: LIMITS }
    }
}

pub(super) fn diff(store: &Store, before: &Manifest, after: &Manifest) -> WorkspaceChanges {
    let paths: BTreeSet<&Vec<u8>> = before.entries.keys().chain(after.entries.keys()).collect();
    let mut summary = ChangeSummary::default();
    let mut files = Vec::new();
    let mut budget = LIMITS.max_total_diff_bytes;
    for path in paths {
        let (then, now) = (before.entries.get(path), after.entries.get(path));
        if is_excluded(path) || same(then, now) {
            continue;
        }
        let (then, now) = (then.filter(|entry| is_content(entry)), now.filter(|entry| is_content(entry)));
        let status = match (then, now) {
            (None, None) => continue,
            (None, Some(_)) => ChangeStatus::Created,
            (Some(_), Some(_)) => ChangeStatus::Modified,
            (Some(_), None) => ChangeStatus::Deleted,
        };
        match status {
            ChangeStatus::Created => summary.created += 1,
            ChangeStatus::Modified => summary.modified += 1,
            ChangeStatus::Deleted => summary.deleted += 1,
        }
        let is_link = |entry: Option<&Entry>| entry.is_some_and(|entry| matches!(entry.what, What::Link(_)));
        summary.symlink_created += usize::from(is_link(now) && !is_link(then));
        if files.len() >= LIMITS.max_files {
            summary.truncated = true;
            continue;
        }
        let file = describe(store, path, status, then, now, &mut budget);
        summary.additions += file.additions;
        summary.deletions += file.deletions;
        files.push(file);
    }
    WorkspaceChanges { summary, files, ..WorkspaceChanges::none() }
}

fn is_excluded(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| EXCLUDED.iter().any(|name| name.as_bytes() == part))
}

/// Directories come and go with what is in them.
fn is_content(entry: &Entry) -> bool {
    matches!(entry.what, What::File(_) | What::Link(_))
}

fn same(then: Option<&Entry>, now: Option<&Entry>) -> bool {
    match (then.map(|entry| &entry.what), now.map(|entry| &entry.what)) {
        (Some(What::Link(then)), Some(What::Link(now))) => then == now,
        (Some(What::File(a)), Some(What::File(b))) => match (a.hash(), b.hash()) {
            (Some(a), Some(b)) => a == b,
            // Not kept: its stamp is all there is to go by.
            _ => then.map(|entry| entry.stamp) == now.map(|entry| entry.stamp),
        },
        _ => false,
    }
}

fn describe(
    store: &Store,
    path: &[u8],
    status: ChangeStatus,
    then: Option<&Entry>,
    now: Option<&Entry>,
    budget: &mut usize,
) -> ChangedFile {
    let shown = String::from_utf8_lossy(path).into_owned();
    let root = shown.split('/').next().unwrap_or_default().to_owned();
    let (before, after) = (Side::of(then), Side::of(now));
    let sensitive = is_sensitive(path);
    let mut file = ChangedFile {
        path: format!("{USER_DATA}/{shown}"),
        root,
        status,
        binary: false,
        sensitive,
        size_before: before.size,
        size_after: after.size,
        sha256_before: before.hash.clone(),
        sha256_after: after.hash.clone(),
        diff: None,
        diff_truncated: false,
        diff_unavailable_reason: None,
        additions: 0,
        deletions: 0,
        symlink: before.target.is_some() || after.target.is_some(),
        symlink_target_before: before.target.clone(),
        symlink_target_after: after.target.clone(),
    };
    let reason = if sensitive {
        Some("sensitive")
    } else if file.symlink {
        Some("symlink")
    } else if before.size.max(after.size).unwrap_or(0) > LIMITS.max_file_bytes_for_diff {
        Some("too_large")
    } else if *budget == 0 {
        Some("total_limit")
    } else {
        None
    };
    if reason.is_some() {
        file.diff_unavailable_reason = reason;
        return file;
    }
    match (before.text(store), after.text(store)) {
        (Ok(before), Ok(after)) => add_diff(&mut file, &shown, &before, &after, budget),
        (Err(reason), _) | (_, Err(reason)) => {
            file.binary = reason == "binary";
            file.diff_unavailable_reason = Some(reason);
        }
    }
    file
}

fn add_diff(file: &mut ChangedFile, shown: &str, before: &str, after: &str, budget: &mut usize) {
    // Texts with nothing in common cost the square of their length; beyond this it settles for a coarser answer.
    const PATIENCE: Duration = Duration::from_millis(100);
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => file.additions += 1,
            ChangeTag::Delete => file.deletions += 1,
            ChangeTag::Equal => {}
        }
    }
    let name =
        |side: &str, exists: bool| if exists { format!("{side}/{shown}") } else { "/dev/null".to_owned() };
    let (old, new) = (name("a", file.size_before.is_some()), name("b", file.size_after.is_some()));
    let mut text = diff.unified_diff().context_radius(3).header(&old, &new).to_string();
    if text.len() > *budget {
        text.truncate(text.floor_char_boundary(*budget));
        file.diff_truncated = true;
    }
    *budget -= text.len();
    file.diff = Some(text);
}

/// One side of a change.
#[derive(Default)]
struct Side<'a> {
    content: Option<&'a Content>,
    size: Option<u64>,
    hash: Option<String>,
    target: Option<String>,
}

impl<'a> Side<'a> {
    fn of(entry: Option<&'a Entry>) -> Self {
        match entry.map(|entry| (&entry.what, entry.stamp.size)) {
            Some((What::File(content), size)) => Side {
                content: Some(content),
                size: Some(size),
                hash: content.hash().map(str::to_owned),
                target: None,
            },
            Some((What::Link(target), _)) => {
                let target = unescape(target).unwrap_or_default();
                Side { target: Some(String::from_utf8_lossy(&target).into_owned()), ..Side::default() }
            }
            _ => Side::default(),
        }
    }

    fn text(&self, store: &Store) -> Result<String, &'static str> {
        let Some(content) = self.content else { return Ok(String::new()) };
        if matches!(content, Content::LeftOut { .. }) {
            return Err("not_kept");
        }
        let size = self.size.unwrap_or(0);
        let bytes = store.read(content, size, LIMITS.max_file_bytes_for_diff).map_err(|_| "not_readable")?;
        if bytes.contains(&0) {
            return Err("binary");
        }
        String::from_utf8(bytes).map_err(|_| "binary")
    }
}

/// Names that promise a secret. Its content, and what changed in it, is nobody's business.
fn is_sensitive(path: &[u8]) -> bool {
    const PARTS: [&str; 5] = ["secret", "token", "password", "passwd", "credential"];
    const ENDS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"];
    const NAMES: [&str; 4] = [".netrc", ".npmrc", ".pypirc", ".htpasswd"];
    let parts =
        path.split(|byte| *byte == b'/').map(|part| String::from_utf8_lossy(part).to_ascii_lowercase());
    // A folder of secrets is as good as a file.
    parts.skip(1).any(|name| {
        name.starts_with(".env")
            || name.starts_with("id_rsa")
            || name.starts_with("id_ed25519")
            || name == ".ssh"
            || PARTS.iter().any(|part| name.contains(part))
            || ENDS.iter().any(|end| name.ends_with(end))
            || NAMES.contains(&name.as_str())
    })
}
