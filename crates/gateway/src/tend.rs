//! What a server does beside answering: starts the runs of crons when they are due, and tells of runs that have ended.
//!
//! Invariant: a process that does not serve does none of it.

use std::sync::Arc;

use axum::http::StatusCode;
use hart_kernel::async_trait;
use hart_runtime::port::{Cron, StoreError};
use hart_runtime::{CronRequestError, CronRequests, Runtime, StartRun};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Gateway;
use crate::native::NoHouse;
use crate::parse::read;
use crate::readers::Readers;
use crate::routes::RunRequest;
use crate::settings::Settings;
use crate::webhook::HttpPostman;

/// Looks after crons and webhooks until the runtime closes. Of several processes over one store, any or all may.
pub fn tend(runtime: &Runtime, settings: Settings) {
    let gateway = Gateway {
        runtime: runtime.clone(),
        closing: CancellationToken::new(),
        settings,
        readers: Readers::default(),
        house: Arc::new(NoHouse),
        access: Arc::default(),
    };
    runtime.keep_crons(Arc::new(Payloads { gateway }));
    runtime.keep_outbox(Arc::new(HttpPostman::new(runtime.clone(), settings)));
}

/// Crons were made with the body of a request.
struct Payloads {
    gateway: Gateway,
}

#[async_trait]
impl CronRequests for Payloads {
    async fn request(&self, cron: &Cron) -> Result<StartRun, CronRequestError> {
        let started = match read::<RunRequest>(cron.payload.clone()) {
            Ok(request) => request.start(&self.gateway, cron.thread.clone(), None).await,
            Err(error) => Err(error),
        };
        let mut start = started.map_err(|error| match error.status {
            StatusCode::INTERNAL_SERVER_ERROR | StatusCode::INSUFFICIENT_STORAGE => {
                CronRequestError::Store(StoreError::Failed { message: error.detail, source: None })
            }
            _ => CronRequestError::Never(error.detail),
        })?;
        start.user = cron.user.clone();
        start.keep_thread = cron.keep_threads;
        start.metadata.insert("cron_id".to_owned(), Value::from(cron.id.as_str()));
        Ok(start)
    }
}
