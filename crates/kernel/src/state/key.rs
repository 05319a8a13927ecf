//! A state key: a type that names one channel of a thread's state and says how writes fold into it.
//!
//! Invariant: `reduce` is the only way a value changes; hooks, tools, run input and replay all end in it.

use std::any::{TypeId, type_name};
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Slot, StateError, TypedWrite, Write};

/// The type is the key. A third party adds one in its own crate:
///
/// ```
/// use hart_kernel::{ReduceError, StateKey};
///
/// struct Artifacts;
/// impl StateKey for Artifacts {
///     type Value = Vec<String>;
///     type Update = Vec<String>;
///     const NAME: &'static str = "artifacts";
///     fn reduce(current: Option<Vec<String>>, new: Vec<String>) -> Result<Vec<String>, ReduceError> {
///         let mut all = current.unwrap_or_default();
///         all.extend(new);
///         Ok(all)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state key",
    note = "implement `StateKey` for it and declare it in `Middleware::declare` with `schema.declare::<{Self}>()`"
)]
pub trait StateKey: Send + Sync + 'static {
    type Value: Serialize + DeserializeOwned + Clone + Send + Sync + 'static;
    /// What a writer sends; equal to `Value` for last-write-wins keys.
    type Update: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The spelling in the LangGraph `values` object.
    const NAME: &'static str;
    const SCOPE: Scope = Scope::Shared;

    /// Folds one write into the channel. `current` is `None` before the first write.
    fn reduce(current: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError>;
}

/// Who may see a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Clients see it, subagents start with it.
    Shared,
    /// Clients see it, subagents do not.
    Thread,
    /// Stored, but never leaves the process: not in `values`, not in input, not inherited.
    Private,
}

/// Why a reducer refused a write.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReduceError(pub String);

/// The erased operations of one key: what a schema stores per name.
#[derive(Clone, Copy)]
pub(super) struct KeySpec {
    pub(super) name: &'static str,
    pub(super) scope: Scope,
    pub(super) type_id: TypeId,
    pub(super) type_name: &'static str,
    pub(super) decode: fn(&Value) -> Result<Slot, serde_json::Error>,
    pub(super) parse: fn(Value) -> Result<Box<dyn Write>, StateError>,
}

impl KeySpec {
    pub(super) fn of<K: StateKey>() -> Self {
        Self {
            name: K::NAME,
            scope: K::SCOPE,
            type_id: TypeId::of::<K>(),
            type_name: type_name::<K>(),
            decode: |json| {
                let value = <K::Value as serde::Deserialize>::deserialize(json)?;
                Ok(Slot::typed::<K>(value))
            },
            parse: |json| {
                let update = serde_json::from_value(json)
                    .map_err(|source| StateError::Shape { name: K::NAME, source })?;
                Ok(Box::new(TypedWrite::<K>(update)))
            },
        }
    }
}

impl fmt::Debug for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySpec")
            .field("name", &self.name)
            .field("scope", &self.scope)
            .field("type", &self.type_name)
            .finish_non_exhaustive()
    }
}
