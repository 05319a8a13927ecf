//! Records the answers of a model, and plays them back without one.
//!
//! Invariant: an answer is found by who asked and what was said, never by ids, times or places that change from run
//! to run.
//!
//! # The cassette
//!
//! One JSON file. `version` is 1; `calls` is a list in the order of recording. A call has
//!
//! - `caller`: who asked;
//! - `after`: the position of an earlier call whose conversation this one continues, if there is one;
//! - `said`: what was said since that call's question (or from the start), as [`Said`] spells it: without ids,
//!   metadata and reasoning, and with changing parts of texts replaced by `<id>`, `<time>`, `<path>` and so on;
//! - `answer`: the model's message, whole.
//!
//! The system prompt and the tools are no part of it: a better prompt must not make a recording useless.

mod normal;
mod recorder;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hart_kernel::{ChatModel, ChatRequest, ChatStream, ModelError, ModelErrorKind, ModelProfile};
use hart_types::{Body, Message};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::playback;
use crate::tokens::{Family, TokenCounter};
pub use normal::{Said, SaidCall, normalise};
pub use recorder::Recorder;

/// Recorded calls; the module's documentation describes the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cassette {
    pub version: u32,
    pub calls: Vec<RecordedCall>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedCall {
    pub caller: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<usize>,
    pub said: Vec<Said>,
    pub answer: Message,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    #[error("cannot read the recording {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("this is not a recording: {0}")]
    Malformed(String),
    #[error("the recording has version {0}; this hart plays version 1")]
    Version(u32),
}

impl Default for Cassette {
    fn default() -> Self {
        Self { version: 1, calls: Vec::new() }
    }
}

impl Cassette {
    pub fn parse(json: &str) -> Result<Self, CassetteError> {
        let cassette: Self =
            serde_json::from_str(json).map_err(|e| CassetteError::Malformed(e.to_string()))?;
        if cassette.version != 1 {
            return Err(CassetteError::Version(cassette.version));
        }
        for (position, call) in cassette.calls.iter().enumerate() {
            if call.after.is_some_and(|after| after >= position) {
                let why = format!("call {position} continues a call that comes later");
                return Err(CassetteError::Malformed(why));
            }
        }
        Ok(cassette)
    }

    pub fn load(path: &Path) -> Result<Self, CassetteError> {
        let json = std::fs::read_to_string(path)
            .map_err(|source| CassetteError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&json)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    /// Appends a call, sharing what an earlier one already tells.
    pub fn record(&mut self, caller: &str, conversation: Vec<Said>, answer: Message) {
        let known = self.conversations();
        let prefixes = known.iter().enumerate().filter(|(position, earlier)| {
            self.calls.get(*position).is_some_and(|call| call.caller == caller)
                && conversation.starts_with(earlier)
        });
        let after = prefixes
            .max_by_key(|(_, earlier)| earlier.len())
            .map(|(position, earlier)| (position, earlier.len()));
        let (after, shared) = after.map_or((None, 0), |(position, shared)| (Some(position), shared));
        let said = conversation.into_iter().skip(shared).collect();
        self.calls.push(RecordedCall { caller: caller.to_owned(), after, said, answer });
    }

    /// The whole conversation of each call.
    fn conversations(&self) -> Vec<Vec<Said>> {
        let mut all: Vec<Vec<Said>> = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let mut whole = call.after.and_then(|after| all.get(after)).cloned().unwrap_or_default();
            whole.extend(call.said.iter().cloned());
            all.push(whole);
        }
        all
    }
}

/// A model that gives recorded answers.
#[derive(Debug)]
pub struct Replay {
    profile: ModelProfile,
    cassette: Cassette,
    conversations: Vec<Vec<Said>>,
    /// Calls by who asked and what was said.
    index: HashMap<(String, String), Vec<usize>>,
    /// How often each conversation was asked for.
    asked: Mutex<HashMap<(String, String), usize>>,
    pace: Option<Duration>,
    counter: TokenCounter,
}

impl Replay {
    pub fn new(cassette: Cassette) -> Self {
        let conversations = cassette.conversations();
        let mut index: HashMap<_, Vec<usize>> = HashMap::new();
        for (position, (call, conversation)) in cassette.calls.iter().zip(&conversations).enumerate() {
            index.entry((call.caller.clone(), key(conversation))).or_default().push(position);
        }
        let profile = ModelProfile {
            name: "replay".to_owned(),
            provider: "replay".to_owned(),
            served_as: "replay".to_owned(),
            vision: true,
            thinking: true,
            ..ModelProfile::default()
        };
        let counter = TokenCounter::new(Family::Other).estimating();
        Self { profile, cassette, conversations, index, asked: Mutex::default(), pace: None, counter }
    }

    #[must_use]
    pub fn with_profile(mut self, profile: ModelProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Waits this long before each fragment, so that a person can watch.
    #[must_use]
    pub fn with_pace(mut self, pace: Option<Duration>) -> Self {
        self.pace = pace;
        self
    }

    /// Equal conversations are answered in the order of recording; the last answer is repeated.
    fn answer(&self, request: &ChatRequest) -> Result<Message, ModelError> {
        let conversation = normalise(&request.messages);
        let key = (request.caller.to_string(), key(&conversation));
        let Some(calls) = self.index.get(&key) else {
            let difference = self.difference(&request.caller, &conversation);
            return Err(ModelError::new(ModelErrorKind::NotRecorded, &self.profile.name, difference));
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry(key).or_default();
        let call = calls.get(*count).or(calls.last()).and_then(|position| self.cassette.calls.get(*position));
        *count += 1;
        let mut answer = call.map(|call| call.answer.clone()).unwrap_or_else(|| Message::ai(""));
        rename_repeated_calls(&mut answer, request);
        Ok(answer)
    }

    /// Where the conversation parts from the recorded one that it follows longest.
    fn difference(&self, caller: &str, found: &[Said]) -> String {
        let common = |recorded: &[Said]| recorded.iter().zip(found).take_while(|(a, b)| a == b).count();
        let of_caller = self.conversations.iter().enumerate().filter(|(position, _)| {
            self.cassette.calls.get(*position).is_some_and(|call| call.caller == caller)
        });
        let nearest = of_caller.max_by_key(|(position, recorded)| {
            let distance = recorded.len().abs_diff(found.len());
            (common(recorded), usize::MAX - distance, usize::MAX - position)
        });
        let Some((call, recorded)) = nearest else {
            let mut callers: Vec<_> = self.cassette.calls.iter().map(|call| call.caller.as_str()).collect();
            callers.sort_unstable();
            callers.dedup();
            return format!("`{caller}` was never recorded, only: {}", callers.join(", "));
        };
        let at = common(recorded);
        let mut text = format!("`{caller}` parts from recorded call {call} at message {at}");
        let (expected, got) = (recorded.get(at), found.get(at));
        let role = got.or(expected).map_or("", |said| said.role.as_str());
        let (expected, got) = normal::excerpts(expected, got);
        // Writing to a string cannot fail.
        let _ = write!(text, " ({role})\n  recorded: {expected}\n  found:    {got}");
        text
    }
}

#[async_trait]
impl ChatModel for Replay {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn count_text(&self, text: &str) -> u64 {
        self.counter.count_text(text)
    }

    fn count_request(&self, request: &ChatRequest) -> u64 {
        self.counter.count_request(request)
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let answer = self.answer(&request)?;
        Ok(playback::stream(answer, self.pace, cancel))
    }
}

fn key(conversation: &[Said]) -> String {
    serde_json::to_string(conversation).unwrap_or_default()
}

/// An answer played twice in one thread must not use the id of a call that is already there.
fn rename_repeated_calls(answer: &mut Message, request: &ChatRequest) {
    let used = |id: &str| {
        let calls = request.messages.iter().flat_map(|message| message.tool_calls());
        calls.filter_map(|call| call.id.as_ref()).any(|have| have.as_str() == id)
    };
    let Body::Ai(ai) = &mut answer.body else { return };
    for id in ai.tool_calls.iter_mut().filter_map(|call| call.id.as_mut()) {
        let fresh = (2..).map(|n| format!("{id}-{n}")).find(|fresh| !used(fresh));
        if let (true, Some(fresh)) = (used(id.as_str()), fresh) {
            *id = fresh.into();
        }
    }
}
