//! Skills, for whoever asks over HTTP.
//!
//! Invariant: what is taken in goes through the same door as everywhere; what speaks against it cannot be passed over here.

use std::sync::Arc;

use hart_gateway::{FileError, Skills};
use hart_kernel::async_trait;
use hart_knowledge::skills::{
    Catalogue, Inspected, InstallError, InstallOptions, Limits, NotInLibrary, Package, Root, Skill,
};
use hart_runtime::Workspace;
use serde_json::{Value, json};

use super::file;
use crate::app::OWNER;
use crate::workshop::Workshop;
use crate::{home, review, shelf, wire};

#[async_trait]
impl Skills for Workshop {
    async fn skills(&self) -> Vec<Value> {
        catalogue(self).await.all().map(|skill| told(self, skill)).collect()
    }

    async fn skill(&self, name: &str) -> Option<Value> {
        let skill = Arc::clone(catalogue(self).await.get(name)?);
        let mut told = told(self, &skill);
        // Read only where one is looked at: it may be long.
        let text = tokio::task::spawn_blocking(move || skill.text()).await;
        if let (Some(map), Ok(Ok(text))) = (told.as_object_mut(), text) {
            map.insert("content".to_owned(), text.into());
        }
        Some(told)
    }

    async fn enable(&self, name: &str, enabled: bool) -> Result<(), FileError> {
        let (library, home, name) = (Arc::clone(&self.skills), self.config.home.clone(), name.to_owned());
        let own = self.user_skills(&OWNER.into());
        let switched = tokio::task::spawn_blocking(move || {
            home::prepare(&home)?;
            library.prepare_once()?;
            library.set_enabled(&name, enabled, Some(&own), wire::now())
        });
        match switched.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(NotInLibrary::Unknown { .. })) => Err(FileError::NotFound),
            Ok(Err(error)) => Err(FileError::Failed(error.to_string())),
            Err(error) => Err(FileError::Failed(error.to_string())),
        }
    }

    async fn install(&self, of: &Workspace, path: &str) -> Result<String, FileError> {
        let bytes = file(self, of, path).await?;
        let place = path.to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let no_skill = |source| InstallError::NoPackage { place: place.clone(), source };
            let package = Package::read_archive(&bytes, &Limits::default()).map_err(no_skill)?;
            Inspected::of(package, None).map_err(no_skill)
        });
        let read = read.await.map_err(|error| FileError::Failed(error.to_string()))?;
        let installed = match read {
            Ok(inspected) => {
                review::take_in(self, path.to_owned(), inspected, InstallOptions::default()).await
            }
            Err(error) => Err(error),
        };
        installed.map(|installed| installed.name).map_err(|error| match error {
            InstallError::Exists { .. } => FileError::Exists,
            InstallError::Io { source, .. } => FileError::Failed(source.to_string()),
            error => FileError::Refused(in_full(&error)),
        })
    }
}

/// With each thing that speaks against it.
fn in_full(error: &InstallError) -> String {
    let lines: Vec<String> = match error {
        InstallError::Findings { findings, .. } => findings.iter().map(ToString::to_string).collect(),
        InstallError::Malformed { mistakes, .. } => mistakes.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    std::iter::once(error.to_string()).chain(lines).collect::<Vec<_>>().join("\n")
}

/// All of them, also before the first run.
pub(super) async fn catalogue(workshop: &Workshop) -> Arc<Catalogue> {
    let library = Arc::clone(&workshop.skills);
    let own = workshop.user_skills(&OWNER.into());
    let looked = tokio::task::spawn_blocking(move || shelf::look(&library, &own));
    looked.await.unwrap_or_default()
}

/// As DeerFlow's clients see it.
pub(super) fn told(workshop: &Workshop, skill: &Skill) -> Value {
    json!({
        "name": skill.name(),
        "description": skill.manifest.description,
        "license": skill.manifest.license,
        // Its frontend has two kinds.
        "category": if skill.root == Root::Public { "public" } else { "custom" },
        "enabled": skill.enabled,
        "editable": workshop.skills.config().may_change(skill.root),
    })
}
