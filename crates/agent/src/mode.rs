//! How hard the agent thinks: the four modes of DeerFlow's composer.
//!
//! Invariant: a mode is a name for settings; nothing asks which mode it runs in.

use std::fmt;
use std::str::FromStr;

use hart_kernel::{Effort, ModelSettings, Reasoning};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Answer at once.
    Flash,
    /// Think a little first.
    Thinking,
    /// Think properly and keep a plan.
    #[default]
    Pro,
    /// Think as long as it takes, keep a plan, delegate.
    Ultra,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::Flash, Self::Thinking, Self::Pro, Self::Ultra];

    pub fn settings(self) -> ModelSettings {
        let reasoning = match self {
            Self::Flash => Reasoning::Off,
            Self::Thinking => Reasoning::On(Effort::Low),
            Self::Pro => Reasoning::On(Effort::Medium),
            Self::Ultra => Reasoning::On(Effort::High),
        };
        ModelSettings { reasoning, ..ModelSettings::default() }
    }

    /// Whether the agent keeps a plan.
    pub fn plans(self) -> bool {
        matches!(self, Self::Pro | Self::Ultra)
    }

    /// Whether the agent may hand work to others.
    pub fn delegates(self) -> bool {
        self == Self::Ultra
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Flash => "flash",
            Self::Thinking => "thinking",
            Self::Pro => "pro",
            Self::Ultra => "ultra",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|mode| mode.name() == text);
        known.ok_or_else(|| format!("unknown mode `{text}`; the modes are flash, thinking, pro, ultra"))
    }
}
