//! Takes packages in: from a folder or a `.skill` archive, read whole, checked, then moved to their place at once.
//!
//! Invariant: nothing is written before everything was checked, and a skill that is there is not lost by one that fails.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use hart_kernel::Timestamp;
use serde::Serialize;

use super::library::{Library, in_lock};
use super::lock::{self, Approval};
use super::manifest::{MANIFEST, Manifest};
use super::mistake::{Mistake, MistakeCode, Severity};
use super::package::{Limits, Package, PackageError};
use super::scan::{Finding, Scan, scan};
use super::{agents_file, slash};

/// A package that was looked at and is nowhere yet.
#[derive(Debug)]
pub struct Inspected {
    pub package: Package,
    /// There if it can be used.
    pub manifest: Option<Manifest>,
    pub mistakes: Vec<Mistake>,
    pub scan: Scan,
}

#[derive(Clone, Debug, Serialize)]
pub struct Installed {
    pub name: String,
    pub folder: PathBuf,
    pub hash: String,
    pub files: usize,
    /// Whether one of that name was there.
    pub replaced: bool,
    pub findings: Vec<Finding>,
    pub mistakes: Vec<Mistake>,
    /// What a model said of it, if one was asked.
    pub review: Option<String>,
}

/// Why a package was not taken.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{place} is no skill: {source}")]
    NoPackage { place: String, source: PackageError },
    #[error("{} cannot be used as a skill", .place)]
    Malformed { place: String, mistakes: Vec<Mistake> },
    #[error("`{name}` was not installed: {} against it", in_words(findings))]
    Findings { name: String, findings: Vec<Finding> },
    #[error("`{name}` was not installed: the review speaks against it, or there was none: {why}")]
    Review { name: String, why: String },
    #[error("there is a skill `{name}` already, at {}", place.display())]
    Exists { name: String, place: PathBuf },
    #[error("the skill `{name}` cannot be written")]
    Io { name: String, source: io::Error },
}

fn in_words(findings: &[Finding]) -> String {
    match findings {
        [one] => format!("one thing ({one}) speaks"),
        several => format!("{} things speak", several.len()),
    }
}

impl Inspected {
    /// Looks at a folder, a `SKILL.md` in one, or an archive.
    pub fn read(path: &Path) -> Result<Self, InstallError> {
        let limits = Limits::default();
        let failed = |source| InstallError::NoPackage { place: path.display().to_string(), source };
        let io = |source| failed(PackageError::Io { place: path.display().to_string(), source });
        let meta = fs::metadata(path).map_err(io)?;
        let folder = match path.file_name().is_some_and(|name| name == MANIFEST) {
            true => path.parent().map(|parent| if parent == Path::new("") { Path::new(".") } else { parent }),
            false => meta.is_dir().then_some(path),
        };
        let (package, name) = match folder {
            Some(folder) => {
                let real = fs::canonicalize(folder).map_err(io)?;
                let name = real.file_name().map(|name| name.to_string_lossy().into_owned());
                (Package::read_folder(folder, &limits).map_err(failed)?, name)
            }
            None => {
                let mut bytes = Vec::new();
                let file = fs::File::open(path).map_err(io)?;
                file.take(limits.total_bytes + 1).read_to_end(&mut bytes).map_err(io)?;
                (Package::read_archive(&bytes, &limits).map_err(failed)?, None)
            }
        };
        Self::of(package, name.as_deref()).map_err(failed)
    }

    /// Looks at one that is at hand.
    pub fn of(package: Package, folder: Option<&str>) -> Result<Self, PackageError> {
        let document = package.document(folder)?;
        let mut mistakes = document.mistakes;
        if let Some(text) = package.text(agents_file::AGENTS_FILE) {
            mistakes.extend(agents_file::read(text).1);
        }
        if let Some(name) = document.manifest.as_ref().map(|manifest| &manifest.name)
            && slash::is_reserved(name)
        {
            mistakes.push(Mistake {
                code: MistakeCode::ReservedName,
                severity: Severity::Warning,
                file: MANIFEST.to_owned(),
                line: 1,
                message: format!("`/{name}` means something else to clients"),
                help: "choose another name, or it cannot be activated by a slash".to_owned(),
            });
        }
        let scan = scan(&package);
        Ok(Self { package, manifest: document.manifest, mistakes, scan })
    }

    pub fn name(&self) -> Option<&str> {
        self.manifest.as_ref().map(|manifest| manifest.name.as_str())
    }
}

/// What an installation may pass over.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstallOptions {
    /// Take the place of one of the same name.
    pub replace: bool,
    /// Findings that would block it are meant.
    pub despite_findings: bool,
    /// No model is asked; the scanner looks at it all the same.
    pub without_review: bool,
}

impl Library {
    /// Puts a package where everyone's agents find it: the custom root, or hart's own where that is another's.
    pub fn install(
        &self,
        place: &str,
        inspected: Inspected,
        options: InstallOptions,
        now: Timestamp,
    ) -> Result<Installed, InstallError> {
        let Inspected { package, manifest, mistakes, scan } = inspected;
        let Some(manifest) = manifest else {
            return Err(InstallError::Malformed { place: place.to_owned(), mistakes });
        };
        let name = manifest.name;
        if self.config.scan && scan.blocked() && !options.despite_findings {
            let findings = scan.blocking().cloned().collect();
            return Err(InstallError::Findings { name, findings });
        }
        let folder = self.config.installs().join(&name);
        let replaced = folder.exists();
        if replaced && !options.replace {
            return Err(InstallError::Exists { name, place: folder });
        }
        let approval = if options.despite_findings { Approval::Approved } else { Approval::Installed };
        let key = in_lock(self.config.installs_to(), &name);
        self.put(&key, &folder, &package, approval, now)
            .map_err(|source| InstallError::Io { name: name.clone(), source })?;
        let files = package.files().count();
        Ok(Installed {
            name,
            folder,
            hash: package.hash(),
            files,
            replaced,
            findings: scan.findings,
            mistakes,
            review: None,
        })
    }

    /// Puts a package where another may be, and locks it, as one change.
    pub(super) fn put(
        &self,
        key: &str,
        folder: &Path,
        package: &Package,
        approval: Approval,
        now: Timestamp,
    ) -> io::Result<()> {
        lock::change(&self.lock_file(), |lock| {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let before = folder.with_file_name(format!(".{name}.before"));
            let _ = fs::remove_dir_all(&before);
            if folder.exists() {
                fs::rename(folder, &before)?;
            }
            if let Err(error) = package.write_to(folder, false) {
                // What was there is there again.
                let _ = fs::rename(&before, folder);
                return Err(error);
            }
            // What was held back in its place waits for nobody any more.
            let held =
                lock.held.get(key).filter(|held| held.folder != held.from).map(|held| held.folder.clone());
            lock.approve(key, package, approval, now);
            for gone in held.iter().chain([&before]) {
                let _ = fs::remove_dir_all(gone);
            }
            Ok(())
        })
    }
}
