//! Writes down what a model answers.
//!
//! Invariant: the file on disk is always a whole recording; an answer is passed on whether or not it could be written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use hart_kernel::{ChatChunk, ChatModel, ChatRequest, ChatStream, ModelError, ModelProfile};
use hart_types::Message;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Cassette, CassetteError, Said, normalise};

/// A model that records another one. Errors are passed through and not recorded.
pub struct Recorder {
    model: Arc<dyn ChatModel>,
    tape: Arc<Tape>,
}

struct Tape {
    path: PathBuf,
    cassette: Mutex<Cassette>,
}

impl Recorder {
    /// Records into `path`, after what it already holds.
    pub fn new(model: Arc<dyn ChatModel>, path: &Path) -> Result<Self, CassetteError> {
        let cassette = match Cassette::load(path) {
            Err(CassetteError::Unreadable { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Cassette::default()
            }
            other => other?,
        };
        let tape = Tape { path: path.to_owned(), cassette: Mutex::new(cassette) };
        Ok(Self { model, tape: Arc::new(tape) })
    }
}

#[async_trait]
impl ChatModel for Recorder {
    fn profile(&self) -> &ModelProfile {
        self.model.profile()
    }

    fn count_text(&self, text: &str) -> u64 {
        self.model.count_text(text)
    }

    fn count_request(&self, request: &ChatRequest) -> u64 {
        self.model.count_request(request)
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let caller = Arc::clone(&request.caller);
        let conversation = normalise(&request.messages);
        let answer = self.model.stream(request, cancel).await?;
        let call = Arc::new((caller, conversation));
        let tape = Arc::clone(&self.tape);
        Ok(Box::pin(answer.then(move |item| {
            let (tape, call) = (Arc::clone(&tape), Arc::clone(&call));
            async move {
                if let Ok(ChatChunk::Done(message)) = &item {
                    tape.add(&call.0, call.1.clone(), (**message).clone()).await;
                }
                item
            }
        })))
    }
}

impl Tape {
    async fn add(&self, caller: &str, conversation: Vec<Said>, answer: Message) {
        let mut cassette = self.cassette.lock().await;
        cassette.record(caller, conversation, answer);
        let mut aside = self.path.clone().into_os_string();
        aside.push(".new");
        let written = async {
            tokio::fs::write(&aside, cassette.to_json()).await?;
            tokio::fs::rename(&aside, &self.path).await
        };
        if let Err(error) = written.await {
            tracing::error!(path = %self.path.display(), %error, "cannot write the recording");
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("model", &self.model.profile().name)
            .field("path", &self.tape.path)
            .finish_non_exhaustive()
    }
}
