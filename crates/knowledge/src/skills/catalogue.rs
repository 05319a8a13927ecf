//! The skills there are at one moment: what a run is offered, and what is kept from it and why.
//!
//! Invariant: it does not change; two skills in it never have the same name.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::agents_file::SkillAgent;
use super::manifest::{MANIFEST, Manifest};
use super::mistake::Mistake;
use super::package::{Limits, Package};
use super::{INSTALLED_SHOWN_AT, SHOWN_AT, USER_SHOWN_AT, bundled};
use crate::ranking::{Ranking, words};

/// Where a skill comes from. A later one goes before an earlier one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// Comes with hart.
    Public,
    /// Was installed for everyone.
    Custom,
    /// The same, where `custom` is in a folder that hart does not write to.
    Installed,
    /// One user's own.
    User,
}

impl Root {
    pub const ALL: [Self; 4] = [Self::Public, Self::Custom, Self::Installed, Self::User];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Custom => "custom",
            Self::Installed => "installed",
            Self::User => "user",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Skill {
    #[serde(flatten)]
    pub manifest: Manifest,
    pub root: Root,
    /// Where its `SKILL.md` is for the agent.
    pub location: String,
    /// On this machine; nothing for one that was not laid out yet.
    pub folder: Option<PathBuf>,
    pub enabled: bool,
    pub hash: String,
    /// Path and size of each.
    pub files: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<SkillAgent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Mistake>,
}

impl Skill {
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Where its folder is for the agent.
    pub fn shown_folder(&self) -> &str {
        self.location.strip_suffix(MANIFEST).unwrap_or(&self.location).trim_end_matches('/')
    }

    /// The package as it is now; an error if it is not the one that was looked at.
    pub fn package(&self) -> io::Result<Package> {
        let package = match &self.folder {
            Some(folder) => Package::read_folder(folder, &Limits::default()).map_err(io::Error::other)?,
            None => bundled().remove(self.name()).unwrap_or_default(),
        };
        if package.hash() != self.hash {
            return Err(io::Error::other("it has changed a moment ago; begin a new run"));
        }
        Ok(package)
    }

    /// What its `SKILL.md` says below the front matter.
    pub fn body(&self) -> io::Result<String> {
        let package = self.package()?;
        let document = package.document(None).map_err(io::Error::other)?;
        let text = package.text(MANIFEST).and_then(|text| text.get(document.body..)).unwrap_or_default();
        Ok(text.trim().to_owned())
    }

    /// Its whole `SKILL.md`.
    pub fn text(&self) -> io::Result<String> {
        Ok(self.package()?.text(MANIFEST).unwrap_or_default().to_owned())
    }

    /// What it is found by.
    fn words(&self) -> Vec<String> {
        // What it is called says more than how it is described.
        let name = words(self.name());
        let mut all = [name.clone(), name.clone(), name].concat();
        all.extend(words(&self.manifest.description));
        all
    }
}

/// Something that is in a root and not offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// What it is or would be called.
    pub name: String,
    pub place: String,
    pub kind: TroubleKind,
    pub message: String,
    pub help: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// Its files make no skill.
    Malformed,
    /// Another one has its name.
    Shadowed,
    /// It waits for a person.
    Held,
    /// Something around the skills is wrong.
    Setup,
}

#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// By name.
    skills: BTreeMap<String, Arc<Skill>>,
    troubles: Vec<Trouble>,
}

impl Catalogue {
    pub(super) fn new(skills: BTreeMap<String, Arc<Skill>>, troubles: Vec<Trouble>) -> Self {
        Self { skills, troubles }
    }

    /// Those of these names alone.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Self {
        let named = self.skills.iter().filter(|(name, _)| names.contains(name));
        let skills = named.map(|(name, skill)| (name.clone(), Arc::clone(skill))).collect();
        Self { skills, troubles: self.troubles.clone() }
    }

    /// All, also those that are switched off.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Arc<Skill>> {
        self.skills.values()
    }

    /// Those that are switched on.
    pub fn enabled(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.all().filter(|skill| skill.enabled)
    }

    /// Switched on or not.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.skills.get(name)
    }

    /// One that may be used.
    pub fn usable(&self, name: &str) -> Option<&Arc<Skill>> {
        self.get(name).filter(|skill| skill.enabled)
    }

    /// The one whose `SKILL.md` is at this place.
    pub fn at(&self, location: &str) -> Option<&Arc<Skill>> {
        self.enabled().find(|skill| skill.location == location)
    }

    pub fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }

    /// The enabled skills that fit a question, the best first, each with how well.
    pub fn ranked(&self, question: &str) -> Vec<(Arc<Skill>, f64)> {
        let skills: Vec<&Arc<Skill>> = self.enabled().collect();
        let ranking = Ranking::new(skills.iter().map(|skill| skill.words()));
        let scored = ranking.scored(question).into_iter();
        scored.filter_map(|(at, score)| Some((Arc::clone(skills.get(at)?), score))).collect()
    }

    /// Enabled names that a mistyped one may have meant, the likeliest first.
    pub fn near(&self, name: &str) -> Vec<&str> {
        let mut near: Vec<(usize, &str)> = self
            .enabled()
            .map(|skill| (distance(name, skill.name()), skill.name()))
            .filter(|(distance, other)| {
                let shorter = name.len().min(other.len());
                let part = shorter >= 4 && (other.starts_with(name) || other.ends_with(name));
                *distance <= (shorter / 3).clamp(1, 3) || part
            })
            .collect();
        near.sort_unstable();
        near.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

/// The place of a package's `SKILL.md`, as the agent sees it.
pub(super) fn location(root: Root, inside: &str) -> String {
    match root {
        Root::User => format!("{USER_SHOWN_AT}/{inside}/{MANIFEST}"),
        Root::Installed => format!("{INSTALLED_SHOWN_AT}/{inside}/{MANIFEST}"),
        Root::Public | Root::Custom => format!("{SHOWN_AT}/{}/{inside}/{MANIFEST}", root.name()),
    }
}

/// Letters to change, take away or add on the way from one word to the other.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(80).enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.iter().skip(1)) {
            left = (corner + usize::from(x != *y)).min(left + 1).min(above + 1);
            corner = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_between_names() {
        for (a, b, expected) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
