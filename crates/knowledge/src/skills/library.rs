//! Finds the skills in their roots, sees that each is the one that was approved, and holds back what is not.
//!
//! Invariant: a catalogue is made anew when a file it was made of has changed, and only then.

mod approval;
mod discovery;
mod sweep;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hart_kernel::Timestamp;

use super::bundled::{hashes, is_laid_out};
use super::catalogue::{Catalogue, Root, Skill, Trouble, TroubleKind};
use super::lay_out;
use super::scan::Finding;
use super::stamps::Stamps;
use super::states::{self, States};
use super::watch::Watch;
pub(super) use discovery::in_lock;
use discovery::{Found, Loaded, add, discover, embedded, read_skill};

/// Where skills are, and how they are looked at.
#[derive(Clone, Debug)]
pub struct LibraryConfig {
    /// Holds `public` and `custom`.
    pub skills: PathBuf,
    /// Hart's data directory.
    pub home: PathBuf,
    /// `extensions_config.json`.
    pub states: PathBuf,
    /// Whether the folder is hart's own: bundled skills are laid out there, what is installed is written there, and what is
    /// held back is moved away. In one that is not, nothing is changed; see [`LibraryConfig::installs`].
    pub own: bool,
    /// Whether packages that nobody approved are scanned.
    pub scan: bool,
    /// Whether packages are held to `skills.lock`.
    pub lock: bool,
}

impl LibraryConfig {
    /// The root that packages are installed to.
    pub(super) const fn installs_to(&self) -> Root {
        if self.own { Root::Custom } else { Root::Installed }
    }

    /// Whether hart may write to skills of this root.
    pub fn may_change(&self, root: Root) -> bool {
        root == Root::User || root == self.installs_to()
    }

    /// Where that is: hart's own, whoever the other folder belongs to.
    pub fn installs(&self) -> PathBuf {
        match self.own {
            true => self.skills.join(Root::Custom.name()),
            false => self.home.join("skills").join(Root::Custom.name()),
        }
    }
}

/// All skills of one installation. Clones of the `Arc` around it share what was found.
#[derive(Debug)]
pub struct Library {
    pub(super) config: LibraryConfig,
    /// By the user's root. Never held across anything that waits.
    /// By the user's folder; each is locked by whoever looks at its files.
    made: Mutex<HashMap<Option<PathBuf>, Shelf>>,
    /// Packages as they were last read.
    read: Mutex<HashMap<PathBuf, (Stamps, Arc<Loaded>)>>,
    prepared: Mutex<bool>,
    /// Who changes a skill, by its folder: from reading it to writing it down nobody else does.
    writing: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// What was found last, if anything.
type Shelf = Arc<Mutex<Option<Made>>>;

#[derive(Debug)]
struct Made {
    stamps: Stamps,
    catalogue: Arc<Catalogue>,
    /// When the look began that last found it to be so.
    seen: Instant,
    /// Tells when something happens to the files; none where nobody does.
    watch: Option<Watch>,
    /// When each of them was last looked at; nothing once something was told of them.
    stamped: Option<Instant>,
}

impl Made {
    /// Whether all is as it was when it was made.
    fn still_holds(&mut self) -> bool {
        if self.is_quiet() {
            return true;
        }
        self.stamped = Some(Instant::now());
        self.stamps.still_hold()
    }

    /// Whether that is known without looking.
    fn is_quiet(&mut self) -> bool {
        if self.watch.as_ref().is_none_or(|watch| !watch.is_quiet()) {
            // It is told once: whoever looks next looks at the files.
            self.stamped = None;
        }
        self.stamped.is_some_and(|at| at.elapsed() < RECHECK)
    }
}

/// How long the word of a [`Watch`] is taken, which may not be told of everything.
const RECHECK: Duration = Duration::from_secs(2);
/// How many users' skills are watched; those of others are looked at every time. The kernel watches for few.
const WATCHED: usize = 16;

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

impl Library {
    pub fn new(config: LibraryConfig) -> Self {
        let (made, read, writing) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { config, made, read, prepared: Mutex::default(), writing }
    }

    /// Makes the folders, and lays out what comes with hart.
    pub fn prepare(&self) -> io::Result<()> {
        fs::create_dir_all(self.config.installs())?;
        self.swept();
        if !self.config.own {
            return Ok(());
        }
        lay_out(&self.config.skills.join(Root::Public.name()))
    }

    /// As [`Library::prepare`], the first time.
    pub fn prepare_once(&self) -> io::Result<()> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if !*prepared {
            let public = self.config.skills.join(Root::Public.name());
            match self.config.own && is_laid_out(&public) {
                true => self.swept(),
                false => self.prepare()?,
            }
            *prepared = true;
        }
        Ok(())
    }

    fn swept(&self) {
        if let Err(error) = self.sweep() {
            tracing::warn!(%error, "what an earlier hart left half done cannot be taken away");
        }
    }

    pub fn config(&self) -> &LibraryConfig {
        &self.config
    }

    /// The skills as they are now, for a user whose own are in `user`.
    ///
    /// Files are read only where something changed since the last call; what is new is scanned, and what was changed
    /// behind hart's back is held back.
    pub fn catalogue(&self, user: Option<&Path>, now: Timestamp) -> Arc<Catalogue> {
        let asked = Instant::now();
        let one = {
            let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(user.map(Path::to_owned)).or_default())
        };
        // Whoever had to wait here takes what somebody found who began to look after it had asked.
        let mut made = one.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        if let Some(known) = made.as_mut() {
            if known.seen < asked && known.still_holds() {
                known.seen = began;
            }
            if known.seen >= asked {
                return Arc::clone(&known.catalogue);
            }
        }
        let millis = now.as_millisecond();
        let mut stamps = Stamps::default();
        let catalogue = Arc::new(self.make(user, now, &mut stamps));
        stamps.add(self.config.states.clone(), millis);
        stamps.add(self.lock_file(), millis);
        // What was there is closed before the next one is opened.
        drop(made.take());
        let watch = self.may_watch().then(|| Watch::over(&stamps)).flatten();
        let stamped = Some(Instant::now());
        *made = Some(Made { stamps, catalogue: Arc::clone(&catalogue), seen: began, watch, stamped });
        catalogue
    }

    /// The same, if it is known without looking at any file that nothing has changed.
    pub fn unchanged(&self, user: Option<&Path>) -> Option<Arc<Catalogue>> {
        let one = {
            let all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.get(&user.map(Path::to_owned))?)
        };
        let mut made = one.try_lock().ok()?;
        let (known, began) = (made.as_mut()?, Instant::now());
        if !known.is_quiet() {
            return None;
        }
        known.seen = began;
        Some(Arc::clone(&known.catalogue))
    }

    fn may_watch(&self) -> bool {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).len() <= WATCHED
    }

    /// Switches a skill on or off, for the runs that begin from now on. A user's own are in `user`.
    pub fn set_enabled(
        &self,
        name: &str,
        enabled: bool,
        user: Option<&Path>,
        now: Timestamp,
    ) -> Result<(), NotInLibrary> {
        let catalogue = self.catalogue(user, now);
        if catalogue.get(name).is_none() {
            return Err(unknown(&catalogue, name));
        }
        Ok(states::set_enabled(&self.config.states, name, enabled)?)
    }

    /// Waits until nobody else changes what is in this folder.
    pub(super) async fn alone_with(&self, folder: &Path) -> tokio::sync::OwnedMutexGuard<()> {
        let one = {
            let mut all = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(folder.to_owned()).or_default())
        };
        one.lock_owned().await
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.config.home.join("skills.lock")
    }

    pub(super) fn root(&self, root: Root, user: Option<&Path>) -> Option<PathBuf> {
        match root {
            Root::Public | Root::Custom => Some(self.config.skills.join(root.name())),
            Root::Installed => (!self.config.own).then(|| self.config.installs()),
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
}

pub(super) fn unknown(catalogue: &Catalogue, name: &str) -> NotInLibrary {
    let near = catalogue.near(name).into_iter().map(str::to_owned).collect();
    NotInLibrary::Unknown { name: name.to_owned(), near }
}
