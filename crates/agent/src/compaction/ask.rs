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
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Plain(Yes),
    Full {
        #[serde(default)]
        keep: Option<Size>,
    },
}

/// `true`; whoever does not want it leaves it out.
#[derive(Deserialize)]
#[serde(try_from = "bool")]
struct Yes;

impl TryFrom<bool> for Yes {
    type Error = &'static str;

    fn try_from(yes: bool) -> Result<Self, Self::Error> {
        yes.then_some(Self).ok_or("leave `compact` out instead of writing `false`")
    }
}

impl From<Form> for CompactAsk {
    fn from(form: Form) -> Self {
        match form {
            Form::Plain(Yes) => Self::default(),
            Form::Full { keep } => Self { keep },
        }
    }
}
