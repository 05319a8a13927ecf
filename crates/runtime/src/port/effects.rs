//! Effects: what runs have begun that must not happen twice, and what came of it.
//!
//! Invariant: only whoever holds a run writes down its effects; they go with the run's end.

use async_trait::async_trait;
use hart_kernel::{Begun, EffectKey};
use hart_types::RunId;
use serde_json::Value;

use super::{Lease, StoreError};

#[async_trait]
pub trait Effects {
    /// Those of a run that has not ended, in the order they were begun.
    async fn effects(&self, run: &RunId) -> Result<Vec<Begun>, StoreError>;

    async fn begin_effect(&self, begun: Begun, lease: &Lease) -> Result<(), StoreError>;

    async fn finish_effect(&self, key: &EffectKey, outcome: Value, lease: &Lease) -> Result<(), StoreError>;

    async fn withdraw_effect(&self, key: &EffectKey, lease: &Lease) -> Result<(), StoreError>;
}
