//! What of its chain a subagent can have or do without, whatever the lead agent has.
//!
//! Invariant: no guard is among them. What holds for the lead agent's calls holds for those of whoever it sends.

use hart_kernel::Toggle;

use crate::Features;

/// A middleware that can be on or off for one subagent. Its name is that of its field in [`Features`], and of its section
/// in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    CallLimits,
    ContextEditing,
    DynamicContext,
    FinishReason,
    LoopDetection,
    ReadBeforeWrite,
    Summarization,
    ToolError,
    ToolOutput,
    ToolRetry,
    ToolSelection,
    UnsupportedContent,
}

impl Part {
    pub const ALL: [Self; 12] = [
        Self::CallLimits,
        Self::ContextEditing,
        Self::DynamicContext,
        Self::FinishReason,
        Self::LoopDetection,
        Self::ReadBeforeWrite,
        Self::Summarization,
        Self::ToolError,
        Self::ToolOutput,
        Self::ToolRetry,
        Self::ToolSelection,
        Self::UnsupportedContent,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::CallLimits => "call_limits",
            Self::ContextEditing => "context_editing",
            Self::DynamicContext => "dynamic_context",
            Self::FinishReason => "finish_reason",
            Self::LoopDetection => "loop_detection",
            Self::ReadBeforeWrite => "read_before_write",
            Self::Summarization => "summarization",
            Self::ToolError => "tool_error",
            Self::ToolOutput => "tool_output",
            Self::ToolRetry => "tool_retry",
            Self::ToolSelection => "tool_selection",
            Self::UnsupportedContent => "unsupported_content",
        }
    }

    fn toggle(self, features: &mut Features) -> &mut Toggle {
        match self {
            Self::CallLimits => &mut features.call_limits,
            Self::ContextEditing => &mut features.context_editing,
            Self::DynamicContext => &mut features.dynamic_context,
            Self::FinishReason => &mut features.finish_reason,
            Self::LoopDetection => &mut features.loop_detection,
            Self::ReadBeforeWrite => &mut features.read_before_write,
            Self::Summarization => &mut features.summarization,
            Self::ToolError => &mut features.tool_error,
            Self::ToolOutput => &mut features.tool_output,
            Self::ToolRetry => &mut features.tool_retry,
            Self::ToolSelection => &mut features.tool_selection,
            Self::UnsupportedContent => &mut features.unsupported_content,
        }
    }
}

/// A subagent's features: the lead agent's, but for what it has of its own. The date and a choice of tools it has only
/// where that is said.
pub(super) fn features(of_lead: &Features, own: &[(Part, Toggle)]) -> Features {
    let mut features = of_lead.clone();
    for part in [Part::DynamicContext, Part::ToolSelection] {
        *part.toggle(&mut features) = Toggle::Off;
    }
    let mut set_as = of_lead.clone();
    for (part, toggle) in own {
        let (part, own) = (part.toggle(&mut features), part.toggle(&mut set_as));
        *part = match toggle {
            // As it is set there, where it is.
            Toggle::On if !own.is_off() => own.clone(),
            toggle => toggle.clone(),
        };
    }
    features
}
