//! Editing skills, for whoever asks over HTTP: the owner's own and those that were installed for everyone.
//!
//! Invariant: nothing here writes; `Evolution` does, as it does for agents.

use std::sync::Arc;

use hart_gateway::{CustomSkills, FileError};
use hart_kernel::async_trait;
use hart_knowledge::skills::{Change, Evolution, EvolveError, HistoryEntry, MANIFEST, Reviewer, Root};
use serde_json::{Value, json};

use super::skills::{catalogue, told};
use crate::app::OWNER;
use crate::review;
use crate::workshop::Workshop;

#[async_trait]
impl CustomSkills for Workshop {
    async fn list(&self) -> Vec<Value> {
        let catalogue = catalogue(self).await;
        catalogue.all().filter(|skill| skill.root != Root::Public).map(|skill| told(self, skill)).collect()
    }

    async fn read(&self, name: &str) -> Option<Value> {
        let skill = catalogue(self).await.get(name).filter(|skill| skill.root != Root::Public).cloned()?;
        let mut told = told(self, &skill);
        let package = tokio::task::spawn_blocking(move || skill.package()).await.ok()?.ok()?;
        told.as_object_mut()?.insert("content".to_owned(), package.text(MANIFEST)?.into());
        Some(told)
    }

    async fn edit(&self, name: &str, content: String) -> Result<(), FileError> {
        self.change(name, Change::Edit { content }).await
    }

    async fn delete(&self, name: &str) -> Result<(), FileError> {
        self.change(name, Change::Delete).await
    }

    async fn history(&self, name: &str) -> Result<Vec<Value>, FileError> {
        let (known, evolution) = self.evolution(name, Reviewer::default()).await;
        let name = name.to_owned();
        let read = tokio::task::spawn_blocking(move || versions(&evolution, &name));
        let history = read.await.map_err(|error| FileError::Failed(error.to_string()))??;
        if history.is_empty() && !known {
            return Err(FileError::NotFound);
        }
        Ok(history)
    }

    async fn roll_back(&self, name: &str, index: i64) -> Result<(), FileError> {
        let (known, evolution) = self.evolution(name, Reviewer::default()).await;
        let history = evolution.history(name).map_err(refused)?;
        let version = match undone(&history, index) {
            Ok(version) => version,
            Err(_) if history.is_empty() && !known => return Err(FileError::NotFound),
            Err(why) => return Err(FileError::Refused(why)),
        };
        self.change(name, Change::Rollback { version }).await
    }
}

impl Workshop {
    async fn change(&self, name: &str, change: Change) -> Result<(), FileError> {
        let reviewer = review::reviewer(self).await.map_err(|error| FileError::Refused(error.to_string()))?;
        let (_, evolution) = self.evolution(name, reviewer).await;
        let changed = evolution.apply(&review::context(), name, &change).await;
        changed.map(drop).map_err(refused)
    }

    /// Who changes the skill of this name, and whether there is one. One that was deleted is whose it was.
    async fn evolution(&self, name: &str, reviewer: Reviewer) -> (bool, Evolution) {
        let root =
            catalogue(self).await.get(name).map(|skill| skill.root).filter(|root| *root != Root::Public);
        let everyones = Evolution::for_everyone(Arc::clone(&self.skills), reviewer.clone());
        let own = Evolution::new(Arc::clone(&self.skills), self.user_skills(&OWNER.into()), reviewer);
        let has = |evolution: &Evolution| evolution.history(name).is_ok_and(|history| !history.is_empty());
        let of_everyone = match root {
            Some(root) => root != Root::User,
            None => !has(&own) && has(&everyones),
        };
        (root.is_some(), if of_everyone { everyones } else { own })
    }
}

/// The version that was there before the change at this place.
fn undone(history: &[HistoryEntry], index: i64) -> Result<u32, String> {
    let count = i64::try_from(history.len()).unwrap_or(i64::MAX);
    let place = if index < 0 { count.saturating_add(index) } else { index };
    let place = usize::try_from(place).ok().filter(|place| *place < history.len());
    let place = place.ok_or_else(|| format!("history_index is out of range: there are {count} entries"))?;
    let before = place.checked_sub(1).and_then(|before| history.get(before));
    let before = before.filter(|entry| !entry.hash.is_empty());
    before.map(|entry| entry.version).ok_or_else(|| "there was nothing before this change".to_owned())
}

/// As DeerFlow's clients read them, with what changed in the text.
fn versions(evolution: &Evolution, name: &str) -> Result<Vec<Value>, FileError> {
    let mut before = None;
    let mut told = Vec::new();
    for HistoryEntry { version, action, at, thread, hash } in evolution.history(name).map_err(refused)? {
        let text = evolution.text_of(name, version).map_err(refused)?;
        // Who has no thread is a person, and so is who was there before anybody looked.
        let author = if thread.is_empty() || action == "before" { "human" } else { "agent" };
        told.push(json!({
            "version": version, "action": action, "ts": at, "author": author, "file_path": MANIFEST,
            "thread_id": (!thread.is_empty()).then_some(thread), "hash": hash,
            "prev_content": before, "new_content": text,
        }));
        before = text;
    }
    Ok(told)
}

fn refused(error: EvolveError) -> FileError {
    match error {
        EvolveError::Unknown(_) => FileError::NotFound,
        EvolveError::Meanwhile(_) => FileError::Exists,
        EvolveError::Io(error) => FileError::Failed(error.to_string()),
        error => FileError::Refused(error.to_string()),
    }
}
