//! The words of runs and threads: statuses, strategies, stream modes, spelled as LangGraph spells them.
//!
//! Invariant: each word has one spelling, and an unknown one is refused with the list of those that exist.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Declares an enum whose variants are words on the wire.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let known = Self::ALL.iter().copied().find(|word| word.as_str() == text);
                known.ok_or_else(|| format!("`{text}` is none of {}", [$($word),*].join(", ")))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )* };
}

words! {
    /// How far a run is.
    RunStatus {
        Pending = "pending",
        Running = "running",
        /// Also when it waits for an answer: then its *thread* is interrupted.
        Success = "success",
        Error = "error",
        Timeout = "timeout",
        /// Cancelled.
        Interrupted = "interrupted",
    }

    /// What a thread is doing.
    ThreadStatus {
        Idle = "idle",
        Busy = "busy",
        /// There is something left to do: a question is open, or a run was stopped on its way.
        Interrupted = "interrupted",
        Error = "error",
    }

    /// What happens to a run that comes while another one works on the thread.
    MultitaskStrategy {
        Reject = "reject",
        /// Stop the other one; what it did stays.
        Interrupt = "interrupt",
        /// Stop the other one and undo it.
        Rollback = "rollback",
        Enqueue = "enqueue",
    }

    /// What happens to a run whose reader goes away.
    OnDisconnect {
        Cancel = "cancel",
        Continue = "continue",
    }

    /// What becomes of what a cancelled run did.
    CancelAction {
        Interrupt = "interrupt",
        Rollback = "rollback",
    }

    /// What happens to a run whose thread is not there.
    IfNotExists {
        Create = "create",
        Reject = "reject",
    }

    /// What happens to a thread that is to be made and is there.
    IfExists {
        Raise = "raise",
        DoNothing = "do_nothing",
    }

    /// What becomes of a run's own thread when it is done.
    OnCompletion {
        Delete = "delete",
        Keep = "keep",
    }

    /// What is left of a thread that is pruned.
    PruneStrategy {
        /// Nothing.
        Delete = "delete",
        /// Its newest state, without the way there.
        KeepLatest = "keep_latest",
    }

    /// When a step is safe.
    Durability {
        /// Before the next one begins.
        Sync = "sync",
        /// While the next one runs.
        Async = "async",
        /// Only when the run ends.
        Exit = "exit",
    }

    /// What a reader wants to hear of a run.
    StreamMode {
        Values = "values",
        Updates = "updates",
        Messages = "messages",
        MessagesTuple = "messages-tuple",
        Custom = "custom",
        Tasks = "tasks",
        Checkpoints = "checkpoints",
        Debug = "debug",
        Events = "events",
    }
}

impl RunStatus {
    /// Whether anything can still happen.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

/// The place of an event in its stream: the time it happened at and its number, which alone decides the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId {
    pub ms: u64,
    pub seq: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl FromStr for EventId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        let id = text.split_once('-').and_then(|(ms, seq)| Some(Self { ms: number(ms)?, seq: number(seq)? }));
        id.ok_or_else(|| format!("`{text}` is not an event id such as 1794703711537-12"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_both_ways_and_strangers_are_refused() {
        for mode in StreamMode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(*mode));
        }
        assert_eq!(serde_json::to_string(&StreamMode::MessagesTuple).unwrap(), "\"messages-tuple\"");
        let error = serde_json::from_str::<Durability>("\"later\"").unwrap_err().to_string();
        assert!(error.contains("`later` is none of sync, async, exit"), "{error}");
    }

    #[test]
    fn event_ids_go_both_ways() {
        let id = EventId { ms: 1_794_703_711_537, seq: 12 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "-1", "-", "1", "1-", "-2", "1-x", "+1-2", "1-2-3", "99999999999999999999-1"] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
    }
}
