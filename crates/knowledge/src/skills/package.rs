//! A skill's files, whole, in memory: what is scanned, hashed and written is the same bytes.
//!
//! Invariant: a package holds plain files at plain paths below its folder; nothing that is a link, a device or has a
//! name that another system reads differently gets in, and no limit is passed on the way.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::archive;
use super::manifest::{Document, MANIFEST};

/// How large a package may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub files: usize,
    pub file_bytes: u64,
    pub total_bytes: u64,
    /// How many times its packed size a file may have.
    pub ratio: u64,
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 4096, file_bytes: 32 << 20, total_bytes: 128 << 20, ratio: 200, depth: 16 }
    }
}

/// The files of one skill, by their paths in its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    files: BTreeMap<String, PackagedFile>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackagedFile {
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// Why something is no package.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("{place} cannot be read")]
    Io { place: String, source: io::Error },
    #[error("{0}")]
    Archive(String),
    #[error("the path `{path}` is not allowed: {why}")]
    Path { path: String, why: String },
    #[error("`{0}` and `{1}` would be one file on some systems; rename one of them")]
    Twins(String, String),
    #[error("`{0}` is there twice")]
    Twice(String),
    #[error("`{0}` is a link; a package holds plain files only, so put the file itself there")]
    Link(String),
    #[error("`{0}` is neither a file nor a folder")]
    Special(String),
    #[error("it has more than {0} files")]
    TooMany(usize),
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
    #[error("it is larger than {0} bytes in all")]
    TooLargeInAll(u64),
    #[error("`{path}` unpacks to more than {ratio} times its size")]
    Bomb { path: String, ratio: u64 },
    #[error("there is no {MANIFEST} in it; a skill is a folder with this file at its top")]
    NoManifest,
}

impl Package {
    /// A folder as it lies there.
    pub fn read_folder(folder: &Path, limits: &Limits) -> Result<Self, PackageError> {
        let mut package = Builder::new(limits);
        walk(folder, "", limits, &mut package)?;
        Ok(package.finish())
    }

    /// A `.skill` file: a zip archive.
    pub fn read_archive(bytes: &[u8], limits: &Limits) -> Result<Self, PackageError> {
        let mut package = Builder::new(limits);
        archive::read(bytes, limits, &mut package)?;
        Ok(package.finish().unwrapped())
    }

    /// Made of parts, as a tool would write it.
    pub fn from_files(
        files: impl IntoIterator<Item = (String, PackagedFile)>,
        limits: &Limits,
    ) -> Result<Self, PackageError> {
        let mut package = Builder::new(limits);
        for (path, file) in files {
            package.add(&path, file)?;
        }
        Ok(package.finish())
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, &PackagedFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    pub fn get(&self, path: &str) -> Option<&PackagedFile> {
        self.files.get(path)
    }

    /// The text of a file that is one.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(&self.get(path)?.bytes).ok()
    }

    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// What its `SKILL.md` says; `folder` as in [`Document::read`].
    pub fn document(&self, folder: Option<&str>) -> Result<Document, PackageError> {
        if !self.files.contains_key(MANIFEST) {
            return Err(PackageError::NoManifest);
        }
        let text = self.text(MANIFEST).ok_or_else(|| PackageError::Path {
            path: MANIFEST.to_owned(),
            why: "it is not UTF-8 text; save it as such".to_owned(),
        })?;
        Ok(Document::read(text, folder))
    }

    /// Of every path, every byte and whether it may be executed.
    pub fn hash(&self) -> String {
        let mut all = Sha256::new();
        for (path, file) in &self.files {
            all.update((path.len() as u64).to_be_bytes());
            all.update(path.as_bytes());
            all.update([u8::from(file.executable)]);
            all.update((file.bytes.len() as u64).to_be_bytes());
            all.update(&file.bytes);
        }
        format!("sha256:{}", hex(&all.finalize()))
    }

    /// Of each file alone.
    pub fn file_hashes(&self) -> BTreeMap<String, String> {
        let of = |(path, file): (&String, &PackagedFile)| (path.clone(), hex(&Sha256::digest(&file.bytes)));
        self.files.iter().map(of).collect()
    }

    #[must_use]
    pub fn with(mut self, path: &str, file: Option<PackagedFile>) -> Self {
        match file {
            Some(file) => self.files.insert(path.to_owned(), file),
            None => self.files.remove(path),
        };
        self
    }

    /// Writes it to a folder that must not be there, whole or not at all. `read_only` takes the owner's right to write.
    pub fn write_to(&self, folder: &Path, read_only: bool) -> io::Result<()> {
        let parent = folder.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let staged = parent.join(format!(".{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&staged);
        let written = self.write_files(&staged, read_only).and_then(|()| {
            if folder.exists() {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            fs::rename(&staged, folder)
        });
        written.inspect_err(|_| {
            // What is half there must not stay; that it stays is not worse than the error.
            let _ = fs::remove_dir_all(&staged);
        })
    }

    fn write_files(&self, folder: &Path, read_only: bool) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (path, file) in &self.files {
            let to = folder.join(path);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            let mode = match (file.executable, read_only) {
                (true, true) => 0o555,
                (true, false) => 0o755,
                (false, true) => 0o444,
                (false, false) => 0o644,
            };
            let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&to)?;
            io::Write::write_all(&mut out, &file.bytes)?;
            // The process' mask may have taken rights away that the sandbox's user needs to read it.
            out.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    /// Archives often hold the one folder the skill is in.
    fn unwrapped(mut self) -> Self {
        if self.files.contains_key(MANIFEST) {
            return self;
        }
        let top = |path: &String| path.split_once('/').map(|(top, _)| top.to_owned());
        let Some(first) = self.files.keys().next().and_then(top) else { return self };
        if self.files.keys().all(|path| top(path).as_deref() == Some(&first)) {
            let inner = |path: String| path.get(first.len() + 1..).unwrap_or_default().to_owned();
            self.files = self.files.into_iter().map(|(path, file)| (inner(path), file)).collect();
        }
        self
    }
}

/// Takes files one by one and refuses what no package may hold.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    limits: &'a Limits,
    files: BTreeMap<String, PackagedFile>,
    /// How each path reads where case does not count.
    folded: BTreeMap<String, String>,
    bytes: u64,
}

impl<'a> Builder<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self { limits, files: BTreeMap::new(), folded: BTreeMap::new(), bytes: 0 }
    }

    pub(super) fn add(&mut self, path: &str, file: PackagedFile) -> Result<(), PackageError> {
        check_path(path, self.limits.depth)?;
        let size = file.bytes.len() as u64;
        if size > self.limits.file_bytes {
            return Err(PackageError::TooLarge { path: path.to_owned(), limit: self.limits.file_bytes });
        }
        self.bytes += size;
        if self.bytes > self.limits.total_bytes {
            return Err(PackageError::TooLargeInAll(self.limits.total_bytes));
        }
        if self.files.len() >= self.limits.files {
            return Err(PackageError::TooMany(self.limits.files));
        }
        if self.files.contains_key(path) {
            return Err(PackageError::Twice(path.to_owned()));
        }
        let folded = path.to_lowercase();
        if let Some(other) = self.folded.insert(folded, path.to_owned()) {
            return Err(PackageError::Twins(other, path.to_owned()));
        }
        self.files.insert(path.to_owned(), file);
        Ok(())
    }

    fn finish(self) -> Package {
        Package { files: self.files }
    }
}

/// What is left behind by systems and is no part of a skill.
pub(super) fn is_litter(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "__MACOSX" | ".DS_Store" | "Thumbs.db" | ".git"))
}

pub(super) fn check_path(path: &str, depth: usize) -> Result<(), PackageError> {
    let bad = |why: &str| {
        let path = path.chars().take(120).collect::<String>().escape_debug().to_string();
        Err(PackageError::Path { path, why: why.to_owned() })
    };
    if path.is_empty() || path.len() > 240 {
        return bad("it must have 1 to 240 bytes");
    }
    if path.starts_with('/') || path.contains(':') {
        return bad("it is absolute or names a drive; use paths inside the folder");
    }
    if path.contains('\\') {
        return bad("it holds a backslash; part folders with `/`");
    }
    if path.chars().any(|c| c.is_control() || is_invisible(c)) {
        return bad("it holds characters that nobody sees");
    }
    // Names in two spellings of one letter would be one file on some systems.
    if path.chars().any(|c| matches!(c, '\u{300}'..='\u{36f}')) {
        return bad("it holds combining marks; write letters in one piece");
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > depth {
        return bad("it is nested too deeply");
    }
    for part in parts {
        if matches!(part, "" | "." | "..") {
            return bad("it leads out of its folder");
        }
        if part.ends_with(['.', ' ']) || part.starts_with(' ') {
            return bad("a name begins or ends with a space or ends with a dot");
        }
        let stem = part.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let numbered = |name: &str| {
            stem.strip_prefix(name).is_some_and(|n| n.len() == 1 && n.bytes().all(|b| b.is_ascii_digit()))
        };
        if matches!(stem.as_str(), "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt") {
            return bad("Windows keeps this name for a device");
        }
    }
    Ok(())
}

/// Characters that take no room and change how the others read.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

fn walk(folder: &Path, inside: &str, limits: &Limits, package: &mut Builder<'_>) -> Result<(), PackageError> {
    // Where it is in the package: a model may read it, and has no business with paths of this machine.
    let failed = |name: &str| {
        let name = name.trim_end_matches('/');
        let place = if name.is_empty() { "its folder".to_owned() } else { format!("`{name}`") };
        move |source| PackageError::Io { place, source }
    };
    let mut entries: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(inside))? {
        let path = entry.map_err(failed(inside))?.path();
        let name = path.file_name().unwrap_or_default();
        let name = name.to_str().ok_or_else(|| PackageError::Path {
            path: format!("{inside}{}", name.to_string_lossy()),
            why: "its name is not UTF-8".to_owned(),
        })?;
        entries.push((format!("{inside}{name}"), path));
        if entries.len() > limits.files {
            return Err(PackageError::TooMany(limits.files));
        }
    }
    entries.sort();
    for (name, path) in entries {
        if is_litter(&name) {
            continue;
        }
        let meta = fs::symlink_metadata(&path).map_err(failed(&name))?;
        if meta.is_symlink() {
            return Err(PackageError::Link(name));
        }
        if meta.is_dir() {
            if name.split('/').count() >= limits.depth {
                check_path(&format!("{name}/x"), limits.depth)?;
            }
            walk(&path, &format!("{name}/"), limits, package)?;
            continue;
        }
        if !meta.is_file() {
            return Err(PackageError::Special(name));
        }
        if meta.len() > limits.file_bytes {
            return Err(PackageError::TooLarge { path: name, limit: limits.file_bytes });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
        // A file that grows while it is read must not pass the limit either.
        let file = fs::File::open(&path).map_err(failed(&name))?;
        file.take(limits.file_bytes + 1).read_to_end(&mut bytes).map_err(failed(&name))?;
        package.add(&name, PackagedFile { bytes, executable: meta.permissions().mode() & 0o111 != 0 })?;
    }
    Ok(())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
#[path = "package_tests.rs"]
mod tests;
