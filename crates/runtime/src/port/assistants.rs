//! Assistants: agents with settings of their own, in versions.
//!
//! Invariant: a version is never changed, and an assistant is always one of its versions.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_types::AssistantId;
use serde_json::{Map, Value};

use super::{Order, StoreError};

#[async_trait]
pub trait Assistants {
    /// Makes it with its first version, unless there is one of that id.
    async fn create_assistant(&self, assistant: Assistant) -> Result<AssistantCreated, StoreError>;

    async fn assistant(&self, id: &AssistantId) -> Result<Option<Assistant>, StoreError>;

    /// Makes a new version out of the present one. `None` when there is no such assistant.
    async fn patch_assistant(
        &self,
        id: &AssistantId,
        patch: AssistantPatch,
    ) -> Result<Option<Assistant>, StoreError>;

    /// Forgets it with all its versions; whether there was one.
    async fn delete_assistant(&self, id: &AssistantId) -> Result<bool, StoreError>;

    async fn search_assistants(&self, query: &AssistantQuery) -> Result<Vec<Assistant>, StoreError>;

    async fn count_assistants(&self, query: &AssistantQuery) -> Result<u64, StoreError>;

    /// Its versions, newest first, each with the time it was made at.
    async fn assistant_versions(
        &self,
        id: &AssistantId,
        query: &VersionQuery,
    ) -> Result<Vec<Assistant>, StoreError>;

    /// Goes back, or forth, to a version. `None` when there is none.
    async fn set_assistant_version(
        &self,
        id: &AssistantId,
        version: u64,
        at: Timestamp,
    ) -> Result<Option<Assistant>, StoreError>;
}

/// An agent, and what its runs are given unless they say otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Assistant {
    pub id: AssistantId,
    /// The agent's name.
    pub graph: String,
    pub name: String,
    pub description: Option<String>,
    pub config: Map<String, Value>,
    pub context: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub version: u64,
    /// It stands for the agent itself: nobody made it, and nobody deletes it.
    pub system: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AssistantCreated {
    New(Assistant),
    Existing(Assistant),
}

/// What to change. Metadata is merged key by key, the rest replaced.
#[derive(Clone, Debug)]
pub struct AssistantPatch {
    pub graph: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub config: Option<Map<String, Value>>,
    pub context: Option<Map<String, Value>>,
    pub metadata: Map<String, Value>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, Default)]
pub struct AssistantQuery {
    pub graph: Option<String>,
    /// A part of the name, in any case.
    pub name: Option<String>,
    /// What the metadata must contain.
    pub metadata: Map<String, Value>,
    /// The agents there are: those that stand for another one are not shown.
    pub agents: Vec<String>,
    pub sort: AssistantSort,
    pub order: Order,
    pub limit: u64,
    pub offset: u64,
}

#[derive(Clone, Debug, Default)]
pub struct VersionQuery {
    /// What the metadata must contain.
    pub metadata: Map<String, Value>,
    pub limit: u64,
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssistantSort {
    Id,
    Graph,
    Name,
    #[default]
    Created,
    Updated,
}
