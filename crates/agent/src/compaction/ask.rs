//! Asking for a compaction now.
//!
//! Invariant: an ask is answered once and is gone.

use hart_kernel::{ReduceError, Scope, StateKey};
use serde::{Deserialize, Serialize};

use super::config::Size;

/// The input key `compact`: `true`, or `{"keep": {"type": "messages", "value": 4}}`. A run that is given it compacts the
/// thread and ends, unless there is something of the user's to answer.
#[derive(Debug)]
pub struct Compact;

impl StateKey for Compact {
    type Value = Option<CompactAsk>;
    type Update = Option<CompactAsk>;
    const NAME: &'static str = "compact";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(_: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        Ok(update)
    }
}

/// What to compact to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Form")]
pub struct CompactAsk {
    /// How much of the end stays as it is; as configured, without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Size>,
    #[serde(skip)]
    no: bool,
}

impl CompactAsk {
    /// Somebody wrote `false`.
    pub(crate) fn is_withdrawn(self) -> bool {
        self.no
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Flag(bool),
    #[serde(rename_all = "snake_case")]
    Full {
        #[serde(default)]
        keep: Option<Size>,
    },
}

impl From<Form> for CompactAsk {
    fn from(form: Form) -> Self {
        match form {
            Form::Flag(yes) => Self { keep: None, no: !yes },
            Form::Full { keep } => Self { keep, no: false },
        }
    }
}
