//! What probes found, kept in `{home}/models`, a file per model.
//!
//! Invariant: a file is whole or not there, and one that cannot be read is told and passed over.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hart_models::{ModelConfig, Profile};

#[derive(Debug)]
pub(crate) struct Profiles {
    dir: PathBuf,
}

impl Profiles {
    pub(crate) fn new(home: &Path) -> Self {
        Self { dir: home.join("models") }
    }

    /// The newest profile of this model at this address, under whatever name it was probed.
    pub(crate) fn of(&self, config: &ModelConfig) -> Option<(PathBuf, Profile)> {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let found = files.filter_map(|path| {
            let profile = read(&path)?;
            profile.is_of(config).then_some((path, profile))
        });
        found.max_by(|(_, a), (_, b)| a.probed_at.cmp(&b.probed_at))
    }

    /// The model with what a probe found of it, if there was one.
    pub(crate) fn apply(&self, config: ModelConfig) -> ModelConfig {
        match self.of(&config) {
            Some((_, profile)) => config.with_profile(&profile),
            None => config,
        }
    }

    /// Writes a profile, replacing what was found earlier under the name.
    pub(crate) fn save(&self, name: &str, profile: &Profile) -> io::Result<PathBuf> {
        crate::home::create_private(&self.dir)?;
        let path = self.dir.join(format!("{}.json", file_name(name)));
        let unfinished = path.with_extension("json.tmp");
        let mut file = fs::File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec_pretty(profile)?)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        Ok(path)
    }
}

fn read(path: &Path) -> Option<Profile> {
    let read = fs::read(path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    let told = |error: &io::Error| {
        tracing::warn!(path = %path.display(), %error, "this profile of a model cannot be read: probe again, or delete it");
    };
    read.inspect_err(told).ok()
}

/// Models are called what people like, `org/model:tag` too.
fn file_name(name: &str) -> String {
    let spelled = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c.to_string(),
        other => other.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect(),
    };
    name.chars().map(spelled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_files_of_one_folder() {
        assert_eq!(file_name("gpt-5.6"), "gpt-5.6");
        assert_eq!(file_name("../a/b:c"), "..%2fa%2fb%3ac");
    }
}
