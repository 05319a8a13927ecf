//! Packages in the roots: where they are, and what each is.
//!
//! Invariant: what cannot be read is told, and the others are found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::skills::agents_file::{self, AGENTS_FILE};
use crate::skills::bundled;
use crate::skills::catalogue::{Root, Skill, Trouble, TroubleKind, location};
use crate::skills::manifest::MANIFEST;
use crate::skills::mistake::Severity;
use crate::skills::package::{Limits, Package};
use crate::skills::scan::{Scan, scan};
use crate::skills::stamps::Stamps;
use crate::skills::states::States;

/// A folder with a `SKILL.md`, read.
#[derive(Debug)]
pub(super) struct Loaded {
    /// What there is to offer, or why there is nothing.
    pub(super) skill: Result<Skill, String>,
    pub(super) hash: String,
    /// What speaks against it, once somebody asked.
    against: OnceLock<Option<String>>,
}

impl Loaded {
    fn new(skill: Result<Skill, String>, hash: String) -> Self {
        Self { skill, hash, against: OnceLock::new() }
    }

    /// The first thing the scanner would refuse it for. It is looked at once.
    pub(super) fn against(&self, found: &Found) -> Option<&str> {
        let looked = || match Package::read_folder(&found.folder, &Limits::default()) {
            Ok(package) if package.hash() == self.hash => refusal(&scan(&package)),
            // It is read anew with the next catalogue.
            Ok(_) => Some("it changed while it was read".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        self.against.get_or_init(looked).as_deref()
    }
}

/// Why a package is not used, by what was found in it.
pub(super) fn refusal(scan: &Scan) -> Option<String> {
    let first = scan.blocking().next()?;
    let more = scan.blocking().count() - 1;
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!("something in it speaks against it: {first}{more}"))
}

/// A place in a root where a package is.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) root: Root,
    /// Its path in the root.
    pub(super) inside: String,
    pub(super) folder: PathBuf,
}

impl Found {
    /// What it is called in the lock.
    pub(super) fn key(&self) -> String {
        match self.root {
            // Users are told apart by their folders.
            Root::User => format!("user/{}", self.folder.display()),
            root => in_lock(root, &self.inside),
        }
    }
}

/// What a package that is everyone's is called in the lock.
pub(in crate::skills) fn in_lock(root: Root, inside: &str) -> String {
    format!("{}/{inside}", root.name())
}

/// How deep a root may sort its skills into folders.
const DEEPEST: usize = 4;

/// Folders with a `SKILL.md`; what is below one belongs to it.
pub(super) fn discover(
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

pub(super) fn read_skill(found: &Found) -> Loaded {
    let package = match Package::read_folder(&found.folder, &Limits::default()) {
        Ok(package) => package,
        Err(error) => return Loaded::new(Err(error.to_string()), String::new()),
    };
    let hash = package.hash();
    let name = found.folder.file_name().and_then(|name| name.to_str());
    let skill = skill_of(&package, name, found.root, &found.inside, Some(found.folder.clone()), &hash);
    Loaded::new(skill, hash)
}

fn skill_of(
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
pub(super) fn embedded(states: &States) -> BTreeMap<String, Arc<Skill>> {
    let made = bundled().into_iter().filter_map(|(name, package)| {
        let skill = skill_of(&package, Some(&name), Root::Public, &name, None, &package.hash()).ok()?;
        Some((name, Arc::new(Skill { enabled: states.enabled(skill.name()), ..skill })))
    });
    made.collect()
}

/// Of two with one name the later root's counts; of one root the first by its folder.
pub(super) fn add(skills: &mut BTreeMap<String, Arc<Skill>>, skill: Skill, troubles: &mut Vec<Trouble>) {
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
