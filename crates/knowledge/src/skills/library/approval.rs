//! Which packages may be used: those that are as they were approved. The rest is held back.
//!
//! Invariant: a package is let through by the hash of the bytes that were looked at, never by its name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hart_kernel::Timestamp;

use super::discovery::{Found, Loaded, refusal};
use super::{Library, NotInLibrary};
use crate::skills::bundled::hashes;
use crate::skills::catalogue::{Root, Trouble, TroubleKind};
use crate::skills::lock::{self, Approval, Held, Lock};
use crate::skills::package::{Limits, Package};
use crate::skills::scan::scan;

impl Library {
    /// What waits for a person.
    pub fn held(&self) -> io::Result<Vec<Held>> {
        Ok(Lock::read(&self.lock_file())?.held.into_values().collect())
    }

    /// Lets a package be used that was held back, as it is now.
    pub fn approve(
        &self,
        name: &str,
        despite_findings: bool,
        now: Timestamp,
    ) -> Result<PathBuf, NotInLibrary> {
        let held = Lock::read(&self.lock_file())?.held;
        let Some((key, held)) = held.iter().find(|(key, held)| held.name == name || *key == name) else {
            let held = held.into_values().map(|held| held.name).collect();
            return Err(NotInLibrary::NotHeld { name: name.to_owned(), held });
        };
        let malformed = |why: String| NotInLibrary::Malformed { name: name.to_owned(), why };
        let package =
            Package::read_folder(&held.folder, &Limits::default()).map_err(|e| malformed(e.to_string()))?;
        let document = package.document(None).map_err(|e| malformed(e.to_string()))?;
        if document.manifest.is_none() {
            let first = document.mistakes.first().map(ToString::to_string).unwrap_or_default();
            return Err(malformed(first));
        }
        let found = scan(&package);
        if found.blocked() && !despite_findings {
            return Err(NotInLibrary::Findings { name: name.to_owned(), findings: found.findings });
        }
        lock::change(&self.lock_file(), |lock| {
            if held.folder != held.from {
                if held.from.exists() {
                    let there = held.from.display();
                    return Err(io::Error::other(format!(
                        "there is something at {there} again; move it away first"
                    )));
                }
                rename(&held.folder, &held.from)?;
            }
            lock.approve(key, &package, Approval::Approved, now);
            Ok(())
        })?;
        Ok(held.from.clone())
    }

    /// Those that are as they were approved; what is new is approved if nothing speaks against it, the rest is held.
    pub(super) fn approved(
        &self,
        loaded: Vec<(Found, Arc<Loaded>)>,
        now: Timestamp,
        troubles: &mut Vec<Trouble>,
    ) -> Vec<(Found, Arc<Loaded>)> {
        let is_bundled = |found: &Found, loaded: &Loaded| {
            found.root == Root::Public && hashes().get(&found.inside) == Some(&loaded.hash)
        };
        if !self.config.lock {
            // Nothing is remembered of what a person approved, so it is the scanner's word alone that counts.
            let (kept, refused): (Vec<_>, Vec<_>) = loaded.into_iter().partition(|(found, loaded)| {
                let looked_at = self.config.scan && loaded.skill.is_ok() && !is_bundled(found, loaded);
                !looked_at || loaded.against(found).is_none()
            });
            troubles.extend(refused.iter().map(|(found, loaded)| refused_by_scan(found, loaded)));
            return kept;
        }
        let lock = match Lock::read(&self.lock_file()) {
            Ok(lock) => lock,
            Err(error) => {
                troubles.push(self.broken_lock(&error));
                return loaded.into_iter().filter(|(found, loaded)| is_bundled(found, loaded)).collect();
            }
        };
        let mut offered = Vec::new();
        let mut open = Vec::new();
        for (found, loaded) in loaded {
            let known = lock.skills.get(&found.key());
            let same = known.is_some_and(|known| known.hash == loaded.hash);
            match is_bundled(&found, &loaded) || same || loaded.skill.is_err() {
                true => offered.push((found, loaded)),
                false => open.push((found, loaded)),
            }
        }
        if !open.is_empty() {
            let keys: Vec<String> = open.iter().map(|(found, _)| found.key()).collect();
            let decided = lock::change(&self.lock_file(), |lock| {
                Ok(open
                    .into_iter()
                    .filter(|(found, loaded)| self.decide(lock, found, loaded, now))
                    .collect::<Vec<_>>())
            });
            match decided {
                Ok(decided) => offered.extend(decided),
                Err(error) => troubles.push(self.broken_lock(&error)),
            }
            if let Err(error) = self.move_held(&keys) {
                tracing::warn!(%error, "skills that are held back cannot be moved away");
            }
        }
        let held = Lock::read(&self.lock_file()).map(|lock| lock.held).unwrap_or_default();
        troubles.extend(held.into_values().filter(|held| held.folder.exists()).map(|held| Trouble {
            help: format!("look at it, then `hart skills approve {}`, or delete the folder", held.name),
            place: held.folder.display().to_string(),
            kind: TroubleKind::Held,
            message: held.why,
            name: held.name,
        }));
        offered.sort_by(|(a, _), (b, _)| (a.root, &a.inside).cmp(&(b.root, &b.inside)));
        offered
    }

    fn broken_lock(&self, error: &io::Error) -> Trouble {
        Trouble {
            name: String::new(),
            place: self.lock_file().display().to_string(),
            kind: TroubleKind::Setup,
            message: format!("what was approved cannot be read or written: {error}"),
            help: "correct or delete the file; until then only bundled skills are offered".to_owned(),
        }
    }

    /// Whether a package that is not as the lock has it may be used. Writes what was decided into the lock.
    fn decide(&self, lock: &mut Lock, found: &Found, loaded: &Loaded, now: Timestamp) -> bool {
        let key = found.key();
        let known = lock.skills.get(&key);
        if known.is_some_and(|known| known.hash == loaded.hash) {
            return true;
        }
        let Ok(package) = Package::read_folder(&found.folder, &Limits::default()) else { return false };
        if known.is_some_and(|known| known.hash == package.hash()) {
            // Another process put it there after it was read here; the next run has it.
            return false;
        }
        let why = match known {
            None if self.config.scan => {
                let first = refusal(&scan(&package)).map(|why| format!("it is new, and {why}"));
                // The bytes that were scanned must be the ones that are offered.
                let changed =
                    (package.hash() != loaded.hash).then(|| "it changed while it was read".to_owned());
                first.or(changed)
            }
            None => None,
            Some(known) => Some(format!("it changed since it was approved: {}", known.differences(&package))),
        };
        let Some(why) = why else {
            lock.approve(&key, &package, Approval::FirstSeen, now);
            return true;
        };
        let name = loaded.skill.as_ref().map_or(&found.inside, |skill| &skill.manifest.name).clone();
        let folder = self.place_for(lock, found);
        tracing::warn!(skill = name, why, "a skill is held back; `hart skills approve` lets it be used");
        lock.held.insert(key, Held { name, folder, from: found.folder.clone(), why, since: now });
        false
    }

    /// Out of every sandbox's sight, where the folder is hart's to change.
    fn place_for(&self, lock: &Lock, found: &Found) -> PathBuf {
        if !self.config.own && found.root != Root::Installed && found.root != Root::User {
            return found.folder.clone();
        }
        let place = self.quarantine().join(found.root.name());
        let flat = found.inside.replace('/', "_");
        let free = (1_u32..).map(|n| if n == 1 { flat.clone() } else { format!("{flat}.{n}") });
        let taken = |to: &PathBuf| to.exists() || lock.held.values().any(|held| held.folder == *to);
        free.map(|name| place.join(name)).find(|to| !taken(to)).unwrap_or_else(|| place.join(&flat))
    }

    pub(super) fn quarantine(&self) -> PathBuf {
        self.config.home.join("quarantine")
    }

    /// Moves those of these that the lock says are held back. It says so first: should hart be cut off in between, the
    /// package is still where it was, and is held back again.
    fn move_held(&self, keys: &[String]) -> io::Result<()> {
        let is_there = |held: &Held| !held.folder.exists() && held.from.exists();
        let lock = Lock::read(&self.lock_file())?;
        if !keys.iter().any(|key| lock.held.get(key).is_some_and(is_there)) {
            return Ok(());
        }
        lock::change(&self.lock_file(), |lock| {
            for key in keys {
                let Some(held) = lock.held.get_mut(key).filter(|held| is_there(held)) else { continue };
                if let Err(error) = rename(&held.from, &held.folder) {
                    let skill = &held.name;
                    tracing::warn!(%error, skill, "a skill that is held back cannot be moved away");
                    held.folder.clone_from(&held.from);
                }
            }
            Ok(())
        })
    }
}

fn refused_by_scan(found: &Found, loaded: &Loaded) -> Trouble {
    let name = loaded.skill.as_ref().map_or(&found.inside, |skill| &skill.manifest.name).clone();
    Trouble {
        name,
        place: found.folder.display().to_string(),
        kind: TroubleKind::Held,
        message: loaded.against(found).unwrap_or_default().to_owned(),
        help: "mend it, or delete the folder; with `skills.lock: true` it could be approved".to_owned(),
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::rename(from, to)
}
