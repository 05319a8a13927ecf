//! What an operator asks of the skills: which there are, take one in, let one be used.
//!
//! Invariant: looking makes no data directory; what is installed or approved is there for the next run of any process.

use std::io;
use std::path::Path;
use std::sync::Arc;

use hart_knowledge::skills::{
    Catalogue, Inspected, InstallError, InstallOptions, Installed, NotInLibrary, activation,
};

use crate::app::{App, OWNER};
use crate::{home, review, shelf, wire};

impl App {
    /// All skills, and what is not offered and why. Before the first run there are those that come with hart.
    pub fn skills(&self) -> Arc<Catalogue> {
        let library = &self.workshop.skills;
        let own = self.workshop.user_skills(&OWNER.into());
        match library.config().skills.exists() {
            true => shelf::look(library, &own),
            false => library.catalogue(Some(&own), wire::now()),
        }
    }

    /// Takes a folder or a `.skill` archive in, for everyone.
    pub async fn install_skill(
        &self,
        path: &Path,
        options: InstallOptions,
    ) -> Result<Installed, InstallError> {
        let inspected = Inspected::read(path)?;
        review::take_in(&self.workshop, path.display().to_string(), inspected, options).await
    }

    /// Switches a skill on or off.
    pub fn enable_skill(&self, name: &str, enabled: bool) -> Result<(), NotInLibrary> {
        self.ready()?;
        let own = self.workshop.user_skills(&OWNER.into());
        self.workshop.skills.set_enabled(name, enabled, Some(&own), wire::now())
    }

    /// Lets a skill be used that was held back; `despite_findings` whatever the scanner says.
    pub fn approve_skill(
        &self,
        name: &str,
        despite_findings: bool,
    ) -> Result<std::path::PathBuf, NotInLibrary> {
        self.workshop.skills.approve(name, despite_findings, wire::now())
    }

    /// The names that were probably meant, if a prompt begins with `/name` and there is no such skill.
    pub fn misspelt_skill(&self, prompt: &str) -> Option<(String, Vec<String>)> {
        let (name, _) = activation(prompt)?;
        let skills = self.skills();
        let near = skills.near(name);
        let unknown = skills.get(name).is_none() && !near.is_empty();
        unknown.then(|| (name.to_owned(), near.into_iter().map(str::to_owned).collect()))
    }

    fn ready(&self) -> io::Result<()> {
        home::prepare(&self.workshop.config.home)?;
        self.workshop.skills.prepare_once()
    }
}
