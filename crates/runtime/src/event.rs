//! What a run's log holds: everything a reader may want to hear, in no reader's words yet.
//!
//! Invariant: the size of an event does not grow with the thread. A state is not in the log, only the step it is of.

use std::sync::Arc;

use hart_kernel::{Interrupt, StepSource};
use hart_types::{CheckpointId, RunStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Failure;

/// One event, and whose it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Logged {
    /// The tool calls it happened inside of, outermost first; empty for the run's own agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespace: Vec<String>,
    pub event: LogEvent,
}

impl Logged {
    /// About how many bytes it takes in memory.
    pub(crate) fn size(&self) -> usize {
        let told = match &self.event {
            LogEvent::TaskStarted { input: json, .. }
            | LogEvent::TaskFinished { result: json, .. }
            | LogEvent::Chunk { message: json, .. }
            | LogEvent::Message { message: json, .. }
            | LogEvent::Updates { update: json, .. }
            | LogEvent::ChildValues { values: json, .. } => json.get().len(),
            LogEvent::Custom { data } => data.to_string().len(),
            LogEvent::Failed(failure) => failure.message.len(),
            LogEvent::Paused { interrupts } => {
                interrupts.iter().map(|asked| asked.value.to_string().len()).sum()
            }
            LogEvent::Started { .. }
            | LogEvent::Entered { .. }
            | LogEvent::Began { .. }
            | LogEvent::Values { .. }
            | LogEvent::Ended { .. } => 0,
        };
        size_of::<Self>() + told
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogEvent {
    Started {
        attempt: u32,
    },
    /// An agent begins its work inside the call that the namespace names.
    Entered {
        agent: String,
    },
    /// A node begins: the model is asked, or a tool is called.
    TaskStarted {
        task: Task,
        input: Box<RawValue>,
    },
    TaskFinished {
        task: Task,
        result: Box<RawValue>,
        error: Option<Failure>,
        /// It has not come to its end: it asks this.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupts: Vec<Interrupt>,
    },
    /// A fragment of the message being written.
    Chunk {
        task: Task,
        message: Box<RawValue>,
    },
    /// A message that was not streamed in fragments.
    Message {
        task: Task,
        message: Box<RawValue>,
    },
    Updates {
        node: String,
        update: Box<RawValue>,
    },
    /// A run begins from here: the state before its input.
    Began {
        step: StepRef,
    },
    /// The state after a step; whoever wants it reads it from the steps.
    Values {
        step: StepRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interrupts: Option<Vec<Interrupt>>,
    },
    /// The state of an agent inside a call: what is new in it, since its steps are not the thread's.
    ChildValues {
        /// So many messages, from the first, are those of its state before this one.
        #[serde(default)]
        kept: usize,
        /// All but those.
        values: Box<RawValue>,
    },
    Paused {
        interrupts: Vec<Interrupt>,
    },
    Custom {
        data: Value,
    },
    Failed(Failure),
    /// The last one.
    Ended {
        status: RunStatus,
    },
}

/// The execution of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: String,
    /// `model` or `tools`.
    pub node: String,
    pub step: i64,
    /// Which of the calls made together it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// Whom it asks, if it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<AskedModel>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedModel {
    pub provider: Arc<str>,
    /// As the provider calls it.
    pub name: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRef {
    pub checkpoint: CheckpointId,
    /// The one that clients see before it.
    pub parent: Option<CheckpointId>,
    pub source: StepSource,
    pub step: i64,
    pub next: Option<String>,
    /// Where it comes no further: the step whose tasks are under way, by whose name clients know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<CheckpointId>,
    /// What had been asked there when the run began to go on with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Interrupt>,
}

impl StepRef {
    /// The name by which clients know it.
    pub fn name(&self) -> &CheckpointId {
        self.stands_for.as_ref().unwrap_or(&self.checkpoint)
    }
}

impl Task {
    /// The namespace its own children, and its checkpoints, go by.
    pub fn namespace(&self) -> String {
        format!("{}:{}", self.node, self.id)
    }
}

/// JSON as it goes out, made once.
pub(crate) fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// An object with nothing in it.
pub(crate) fn empty() -> Box<RawValue> {
    raw(&Map::<String, Value>::new())
}
