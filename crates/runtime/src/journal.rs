//! The kernel's journal over a store.
//!
//! Invariant: an effect is begun only behind a durable step that asks for it, so that a crash finds both or neither.

use std::sync::Arc;

use hart_kernel::{Begun, CheckpointError, EffectKey, Journal, async_trait};
use hart_types::ThreadId;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::checkpoints::{StepLog, failed};
use crate::port::{Lease, Store, StoreError};
use crate::tape::Tape;

pub(crate) struct RunJournal {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) thread: ThreadId,
    pub(crate) lease: Lease,
    /// Told when the run is no longer ours.
    pub(crate) lost: CancellationToken,
    pub(crate) steps: Arc<StepLog>,
    pub(crate) tape: Arc<Tape>,
}

impl RunJournal {
    /// A full disk is waited for, as with steps.
    async fn insist<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        write: impl Fn() -> F,
    ) -> Result<T, CheckpointError> {
        let mut told = false;
        loop {
            match write().await {
                Err(StoreError::Full) => self.tape.wait_for_room(&mut told).await,
                Err(error @ StoreError::Lost(_)) => {
                    self.lost.cancel();
                    return Err(failed(error));
                }
                written => return written.map_err(failed),
            }
        }
    }
}

#[async_trait]
impl Journal for RunJournal {
    async fn recall(&self) -> Result<Vec<Begun>, CheckpointError> {
        self.insist(|| self.store.effects(&self.lease.run)).await
    }

    async fn begin(&self, begun: Begun) -> Result<(), CheckpointError> {
        self.steps.flush(&self.thread).await?;
        self.insist(|| self.store.begin_effect(begun.clone(), &self.lease)).await
    }

    async fn finish(&self, key: &EffectKey, outcome: Value) -> Result<(), CheckpointError> {
        self.insist(|| self.store.finish_effect(key, outcome.clone(), &self.lease)).await
    }

    async fn withdraw(&self, key: &EffectKey) -> Result<(), CheckpointError> {
        self.insist(|| self.store.withdraw_effect(key, &self.lease)).await
    }
}
