//! What a server tells beyond threads and runs: its models and the files of its threads.
//!
//! Invariant: a file is read through the thread's sandbox, so that no link in it leads out.

mod agents;
mod connections;
mod custom_skills;
mod files;
mod helpers;
mod skills;

use std::sync::Arc;

use hart_client::ModelInfo;
use hart_gateway::{Agents, Connections, CustomSkills, FileError, Files, Goals, Helpers, House, Skills};
use hart_kernel::async_trait;
use hart_models::ModelConfig;
use hart_runtime::Workspace;
use hart_sandbox::{SandboxError, SnapshotError, Snapshots};
use hart_types::RunId;
use serde_json::Value;

use crate::choice::{self, ChooseError, ModelListing};
use crate::workshop::Workshop;

/// Where a thread's own files are, as its agent sees it.
const OWN: &str = "/mnt/user-data/";

#[async_trait]
impl House for Workshop {
    async fn models(&self) -> Result<Vec<Value>, String> {
        let models = choice::list(self).await.map_err(|error| error.to_string())?;
        Ok(models.into_iter().map(told).collect())
    }

    async fn file(&self, of: &Workspace, path: &str) -> Result<Vec<u8>, FileError> {
        file(self, of, path).await
    }

    async fn changes(&self, of: &Workspace, run: &RunId) -> Option<Value> {
        let dirs = self.sandboxes.thread_dirs(&of.thread, &of.user);
        let changes = Snapshots::new(dirs).run_changes(run).await;
        match changes {
            Ok(changes) => serde_json::to_value(changes).ok(),
            // Too long ago, or before there were any.
            Err(SnapshotError::NotFound { .. }) => None,
            Err(error) => {
                tracing::warn!(%run, %error, "what a run changed cannot be told");
                None
            }
        }
    }

    async fn window(&self, model: &str) -> Option<u64> {
        let (config, _) = choice::connected(self, Some(model)).await.ok()?;
        config.context_window.map(u64::from)
    }

    fn counts_tokens(&self) -> bool {
        self.config.middleware.token_usage
    }

    fn files(&self) -> Option<&dyn Files> {
        Some(self)
    }

    fn skills(&self) -> Option<&dyn Skills> {
        Some(self)
    }

    fn custom_skills(&self) -> Option<&dyn CustomSkills> {
        Some(self)
    }

    fn agents(&self) -> Option<&dyn Agents> {
        Some(self)
    }

    fn goals(&self) -> Option<Goals> {
        let goal = &self.config.middleware.goal;
        Some(Goals { enabled: goal.enabled, max_continuations: goal.max_continuations })
    }

    fn connections(&self) -> Option<&dyn Connections> {
        Some(self)
    }

    fn helpers(&self) -> Option<&dyn Helpers> {
        Some(self)
    }
}

pub(crate) async fn models(workshop: &Workshop) -> Result<Vec<ModelInfo>, ChooseError> {
    Ok(choice::list(workshop).await?.into_iter().map(info).collect())
}

/// With what DeerFlow's frontend asks of a model, and what else it is chosen by.
fn told(mut listing: ModelListing) -> Value {
    let config = listing.config.take();
    let model = info(listing);
    let mut told = serde_json::to_value(&model).unwrap_or_default();
    if let Some(map) = told.as_object_mut() {
        let config = config.as_ref();
        let shown = config.and_then(|config| config.display_name.as_deref()).unwrap_or(&model.name);
        map.insert("display_name".to_owned(), shown.into());
        let can = |ask: fn(&ModelConfig) -> bool| config.is_some_and(ask);
        map.insert("supports_thinking".to_owned(), can(|config| config.supports_thinking).into());
        let effort = can(|config| config.supports_reasoning_effort);
        map.insert("supports_reasoning_effort".to_owned(), effort.into());
        map.insert("supports_vision".to_owned(), can(|config| config.supports_vision).into());
        map.insert("context_window".to_owned(), config.and_then(|config| config.context_window).into());
        let pricing = config.and_then(|config| serde_json::to_value(config.pricing.as_ref()?).ok());
        map.insert("pricing".to_owned(), pricing.into());
    }
    told
}

fn info(listing: ModelListing) -> ModelInfo {
    let mut info = ModelInfo::new(listing.name, listing.provider, listing.model);
    info.description = listing.description;
    info.reason = listing.reason.to_string();
    info.is_default = listing.is_default;
    info
}

pub(crate) async fn file(workshop: &Workshop, of: &Workspace, path: &str) -> Result<Vec<u8>, FileError> {
    let (sandbox, path) = files::reach(workshop, of, path).await?;
    sandbox.read(&path).await.map_err(of_file)
}

fn of_file(error: SandboxError) -> FileError {
    match error {
        // What leads out of the thread is not there for whoever asks.
        SandboxError::NotFound(_) | SandboxError::NotADirectory(_) | SandboxError::Path(_) => {
            FileError::NotFound
        }
        SandboxError::Forbidden { .. } => FileError::NotFound,
        SandboxError::IsDirectory(_) | SandboxError::NotAFile { .. } | SandboxError::TooLarge { .. } => {
            FileError::Refused(error.to_string())
        }
        SandboxError::AlreadyExists(_) => FileError::Exists,
        SandboxError::ReadOnly(_) | SandboxError::NotEmpty(_) => FileError::Refused(error.to_string()),
        SandboxError::DiskFull { .. } => FileError::Full(error.to_string()),
        error => FileError::Failed(error.to_string()),
    }
}

/// Keeps the server's own routes from holding more than they need.
pub(crate) fn of(workshop: &Arc<Workshop>) -> Arc<dyn House> {
    Arc::clone(workshop) as Arc<dyn House>
}
