//! Finds the skills in their roots, sees that each is the one that was approved, and holds back what is not.
//!
//! Invariant: a catalogue is made anew when a file it was made of has changed, and only then.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hart_kernel::Timestamp;

use super::agents_file::{self, AGENTS_FILE};
use super::bundled::{hashes, is_laid_out};
use super::catalogue::{Catalogue, Root, Skill, Trouble, TroubleKind, location};
use super::lock::{self, Approval, Held, Lock};
use super::manifest::{MANIFEST, Severity};
use super::package::{Limits, Package};
use super::scan::{Finding, scan};
use super::stamps::Stamps;
use super::states::{self, States};
use super::{bundled, lay_out};

/// Where skills are, and how they are looked at.
#[derive(Clone, Debug)]
pub struct LibraryConfig {
    /// Holds `public` and `custom`.
    pub skills: PathBuf,
    /// Hart's data directory.
    pub home: PathBuf,
    /// `extensions_config.json`.
    pub states: PathBuf,
    /// Whether the folder is hart's own: bundled skills are laid out there, and what is held back is moved away.
    pub own: bool,
    /// Whether packages that nobody approved are scanned.
    pub scan: bool,
    /// Whether packages are held to `skills.lock`.
    pub lock: bool,
}

/// All skills of one installation. Clones of the `Arc` around it share what was found.
#[derive(Debug)]
pub struct Library {
    pub(super) config: LibraryConfig,
    /// By the user's root. Never held across anything that waits.
    made: Mutex<HashMap<Option<PathBuf>, Made>>,
    /// Packages as they were last read.
    read: Mutex<HashMap<PathBuf, (Stamps, Arc<Loaded>)>>,
    prepared: OnceLock<()>,
}

#[derive(Debug)]
struct Made {
    stamps: Stamps,
    catalogue: Arc<Catalogue>,
}

/// A folder with a `SKILL.md`, read.
#[derive(Debug)]
struct Loaded {
    /// What there is to offer, or why there is nothing.
    skill: Result<Skill, String>,
    hash: String,
}

/// A place in a root where a package is.
#[derive(Debug)]
struct Found {
    root: Root,
    /// Its path in the root.
    inside: String,
    folder: PathBuf,
}

impl Found {
    /// What it is called in the lock.
    fn key(&self) -> String {
        match self.root {
            // Users are told apart by their folders.
            Root::User => format!("user/{}", self.folder.display()),
            Root::Public | Root::Custom => format!("{}/{}", self.root.name(), self.inside),
        }
    }
}

/// What was asked for is not there.
#[derive(Debug, thiserror::Error)]
pub enum NotInLibrary {
    #[error("there is no skill `{name}`{}", did_you_mean(near))]
    Unknown { name: String, near: Vec<String> },
    #[error("`{name}` does not wait for approval{}", held_instead(held))]
    NotHeld { name: String, held: Vec<String> },
    #[error(
        "`{name}` has findings that speak against it; look at them, and say `--despite-findings` if they are meant"
    )]
    Findings { name: String, findings: Vec<Finding> },
    #[error("`{name}` is no skill that can be used: {why}")]
    Malformed { name: String, why: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => "; `hart skills list` shows those there are".to_owned(),
        near => format!("; did you mean {}?", listed(near)),
    }
}

fn held_instead(held: &[String]) -> String {
    if held.is_empty() { "; nothing does".to_owned() } else { format!("; these do: {}", listed(held)) }
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

/// How deep a root may sort its skills into folders.
const DEEPEST: usize = 4;

impl Library {
    pub fn new(config: LibraryConfig) -> Self {
        Self { config, made: Mutex::default(), read: Mutex::default(), prepared: OnceLock::new() }
    }

    /// Makes the folders, and lays out what comes with hart.
    pub fn prepare(&self) -> io::Result<()> {
        if !self.config.own {
            return Ok(());
        }
        fs::create_dir_all(self.config.skills.join(Root::Custom.name()))?;
        lay_out(&self.config.skills.join(Root::Public.name()))
    }

    /// As [`Library::prepare`], the first time.
    pub fn prepare_once(&self) -> io::Result<()> {
        if self.prepared.get().is_none() {
            let public = self.config.skills.join(Root::Public.name());
            if !self.config.own || !is_laid_out(&public) {
                self.prepare()?;
            }
            let _ = self.prepared.set(());
        }
        Ok(())
    }

    pub fn config(&self) -> &LibraryConfig {
        &self.config
    }

    /// The skills as they are now, for a user whose own are in `user`.
    ///
    /// Files are read only where something changed since the last call; what is new is scanned, and what was changed
    /// behind hart's back is held back.
    pub fn catalogue(&self, user: Option<&Path>, now: Timestamp) -> Arc<Catalogue> {
        let key = user.map(Path::to_owned);
        let made = |made: &HashMap<_, Made>| {
            made.get(&key).filter(|made| made.stamps.still_hold()).map(|made| Arc::clone(&made.catalogue))
        };
        let known = made(&self.made.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(known) = known {
            return known;
        }
        let millis = now.as_millisecond();
        let mut stamps = Stamps::default();
        let catalogue = Arc::new(self.make(user, now, &mut stamps));
        stamps.add(self.config.states.clone(), millis);
        stamps.add(self.lock_file(), millis);
        let entry = Made { stamps, catalogue: Arc::clone(&catalogue) };
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(key, entry);
        catalogue
    }

    /// Switches a skill on or off, for the runs that begin from now on.
    pub fn set_enabled(&self, name: &str, enabled: bool, now: Timestamp) -> Result<(), NotInLibrary> {
        let catalogue = self.catalogue(None, now);
        if catalogue.get(name).is_none() {
            return Err(unknown(&catalogue, name));
        }
        Ok(states::set_enabled(&self.config.states, name, enabled)?)
    }

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

    pub(super) fn lock_file(&self) -> PathBuf {
        self.config.home.join("skills.lock")
    }

    pub(super) fn root(&self, root: Root, user: Option<&Path>) -> Option<PathBuf> {
        match root {
            Root::Public | Root::Custom => Some(self.config.skills.join(root.name())),
            Root::User => user.map(Path::to_owned),
        }
    }

    fn make(&self, user: Option<&Path>, now: Timestamp, stamps: &mut Stamps) -> Catalogue {
        let states = States::read(&self.config.states);
        let mut troubles = Vec::new();
        if let Some(broken) = &states.broken {
            let place = self.config.states.display().to_string();
            let message = format!("which skills are on cannot be read: {broken}");
            let help = "correct the file; until then no skill is offered".to_owned();
            troubles.push(Trouble { name: String::new(), place, kind: TroubleKind::Setup, message, help });
        }
        let mut found = Vec::new();
        for root in Root::ALL {
            if let Some(dir) = self.root(root, user) {
                discover(root, &dir, "", now.as_millisecond(), stamps, &mut found, &mut troubles);
            }
        }
        let mut skills: BTreeMap<String, Arc<Skill>> = BTreeMap::new();
        if !self.config.skills.exists() && self.config.own {
            skills = embedded(&states);
        }
        let load = |found: Found, stamps: &mut Stamps| {
            let loaded = self.load(&found, now.as_millisecond(), stamps);
            (found, loaded)
        };
        let mut loaded: Vec<(Found, Arc<Loaded>)> =
            found.into_iter().map(|found| load(found, stamps)).collect();
        if loaded.iter().any(|(found, loaded)| self.is_spoilt(found, loaded)) {
            if let Err(error) = self.prepare() {
                tracing::warn!(%error, "a bundled skill was changed and cannot be laid out anew");
            }
            loaded = loaded.into_iter().map(|(found, _)| load(found, stamps)).collect();
            loaded.retain(|(found, loaded)| !self.is_spoilt(found, loaded));
        }
        for (found, loaded) in self.approved(loaded, now, &mut troubles) {
            match &loaded.skill {
                Ok(skill) => {
                    let skill = Skill { enabled: states.enabled(skill.name()), ..skill.clone() };
                    add(&mut skills, skill, &mut troubles);
                }
                Err(why) => troubles.push(Trouble {
                    name: found.inside.clone(),
                    place: found.folder.display().to_string(),
                    kind: TroubleKind::Malformed,
                    message: why.clone(),
                    help: format!(
                        "correct it (`hart skills lint {}`), or take the folder away",
                        found.folder.display()
                    ),
                }),
            }
        }
        Catalogue::new(skills, troubles)
    }

    /// One that comes with hart and is not as it came.
    fn is_spoilt(&self, found: &Found, loaded: &Loaded) -> bool {
        let own = self.config.own && found.root == Root::Public;
        own && hashes().get(&found.inside).is_some_and(|hash| *hash != loaded.hash)
    }

    fn load(&self, found: &Found, now: i64, stamps: &mut Stamps) -> Arc<Loaded> {
        let mut own = Stamps::default();
        // Before it is read: what changes meanwhile is seen the next time.
        own.add_tree(&found.folder, now);
        stamps.extend(&own);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, loaded)) = read.get(&found.folder)
            && before.same(&own)
        {
            return Arc::clone(loaded);
        }
        let loaded = Arc::new(read_skill(found));
        read.insert(found.folder.clone(), (own, Arc::clone(&loaded)));
        loaded
    }

    /// Those that are as they were approved; what is new is approved if nothing speaks against it, the rest is held.
    fn approved(
        &self,
        loaded: Vec<(Found, Arc<Loaded>)>,
        now: Timestamp,
        troubles: &mut Vec<Trouble>,
    ) -> Vec<(Found, Arc<Loaded>)> {
        let is_bundled = |found: &Found, loaded: &Loaded| {
            found.root == Root::Public && hashes().get(&found.inside) == Some(&loaded.hash)
        };
        if !self.config.lock {
            return loaded;
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
                let scan = scan(&package);
                let first = scan.blocking().next().map(|finding| {
                    let more = scan.blocking().count() - 1;
                    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
                    format!("it is new, and something in it speaks against it: {finding}{more}")
                });
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
        let folder = self.move_away(found).unwrap_or_else(|error| {
            tracing::warn!(%error, skill = name, "a skill that is held back cannot be moved away");
            found.folder.clone()
        });
        tracing::warn!(skill = name, why, "a skill is held back; `hart skills approve` lets it be used");
        lock.held.insert(key, Held { name, folder, from: found.folder.clone(), why, since: now });
        false
    }

    /// Out of every sandbox's sight, where the folder is hart's to change.
    fn move_away(&self, found: &Found) -> io::Result<PathBuf> {
        if !self.config.own {
            return Ok(found.folder.clone());
        }
        let place = self.config.home.join("quarantine").join(found.root.name());
        let flat = found.inside.replace('/', "_");
        let free = (1_u32..).map(|n| if n == 1 { flat.clone() } else { format!("{flat}.{n}") });
        let to =
            free.map(|name| place.join(name)).find(|to| !to.exists()).unwrap_or_else(|| place.join(&flat));
        fs::create_dir_all(&place)?;
        rename(&found.folder, &to)?;
        Ok(to)
    }
}

pub(super) fn unknown(catalogue: &Catalogue, name: &str) -> NotInLibrary {
    let near = catalogue.near(name).into_iter().map(str::to_owned).collect();
    NotInLibrary::Unknown { name: name.to_owned(), near }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::rename(from, to)
}

/// Folders with a `SKILL.md`; what is below one belongs to it.
fn discover(
    root: Root,
    dir: &Path,
    inside: &str,
    now: i64,
    stamps: &mut Stamps,
    found: &mut Vec<Found>,
    troubles: &mut Vec<Trouble>,
) {
    stamps.add(dir.to_owned(), now);
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut names: Vec<(String, fs::FileType)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?)))
        .filter(|(name, _)| !name.starts_with('.') && name != "node_modules")
        .collect();
    names.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (name, kind) in names {
        let folder = dir.join(&name);
        let inside = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        let is_skill = || folder.join(MANIFEST).is_file();
        if kind.is_symlink() && is_skill() {
            let message = "it is a link; agents could not follow it".to_owned();
            let help = "install it: `hart skills install FOLDER`".to_owned();
            let place = folder.display().to_string();
            troubles.push(Trouble { name: inside, place, kind: TroubleKind::Malformed, message, help });
        } else if kind.is_dir() && is_skill() {
            found.push(Found { root, inside, folder });
        } else if kind.is_dir() && inside.split('/').count() < DEEPEST {
            discover(root, &folder, &inside, now, stamps, found, troubles);
        }
    }
}

fn read_skill(found: &Found) -> Loaded {
    let package = match Package::read_folder(&found.folder, &Limits::default()) {
        Ok(package) => package,
        Err(error) => return Loaded { skill: Err(error.to_string()), hash: String::new() },
    };
    let hash = package.hash();
    let name = found.folder.file_name().and_then(|name| name.to_str());
    let skill = skill_of(&package, name, found.root, &found.inside, Some(found.folder.clone()), &hash);
    Loaded { skill, hash }
}

pub(super) fn skill_of(
    package: &Package,
    folder_name: Option<&str>,
    root: Root,
    inside: &str,
    folder: Option<PathBuf>,
    hash: &str,
) -> Result<Skill, String> {
    let document = package.document(folder_name).map_err(|error| error.to_string())?;
    let Some(manifest) = document.manifest else {
        let errors = document.mistakes.iter().filter(|mistake| mistake.severity == Severity::Error);
        return Err(errors.map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    };
    let (agents, mistakes) = package.text(AGENTS_FILE).map(agents_file::read).unwrap_or_default();
    let mut warnings = document.mistakes;
    warnings.extend(mistakes);
    Ok(Skill {
        manifest,
        root,
        location: location(root, inside),
        folder,
        enabled: true,
        hash: hash.to_owned(),
        files: package.files().map(|(path, file)| (path.to_owned(), file.bytes.len() as u64)).collect(),
        agents,
        warnings,
    })
}

/// Before anything was laid out: what would be.
fn embedded(states: &States) -> BTreeMap<String, Arc<Skill>> {
    let made = bundled().into_iter().filter_map(|(name, package)| {
        let skill = skill_of(&package, Some(&name), Root::Public, &name, None, &package.hash()).ok()?;
        Some((name, Arc::new(Skill { enabled: states.enabled(skill.name()), ..skill })))
    });
    made.collect()
}

/// Of two with one name the later root's counts; of one root the first by its folder.
fn add(skills: &mut BTreeMap<String, Arc<Skill>>, skill: Skill, troubles: &mut Vec<Trouble>) {
    let name = skill.name().to_owned();
    let shadowed = match skills.get(&name) {
        Some(before) if before.root == skill.root => {
            let winner = before.location.clone();
            Some((Arc::new(skill), winner))
        }
        _ => {
            let winner = skill.location.clone();
            skills.insert(name.clone(), Arc::new(skill)).map(|before| (before, winner))
        }
    };
    if let Some((loser, winner)) = shadowed {
        troubles.push(Trouble {
            place: loser
                .folder
                .as_deref()
                .map_or_else(|| loser.location.clone(), |folder| folder.display().to_string()),
            kind: TroubleKind::Shadowed,
            message: format!("there are two skills `{name}`; {winner} is the one that counts"),
            help: "rename one of them: its folder and `name` in its SKILL.md".to_owned(),
            name,
        });
    }
}
