//! What the super agent is made of beyond its model and its tools: each part off, on, or somebody's own.
//!
//! Invariant: a feature is one field here and one line in `chain.rs`.

use hart_kernel::Toggle;

use crate::middleware::Sandbox;

/// `true`, `false`, or a middleware to use instead of the built-in one:
///
/// ```
/// use hart_agent::Features;
/// use hart_agent::middleware::SandboxAudit;
///
/// let features = Features {
///     read_before_write: false.into(),
///     sandbox_audit: SandboxAudit::new().into(),
///     ..Features::default()
/// };
/// ```
#[derive(Clone, Debug)]
pub struct Features {
    /// Files and commands. There is no default: a sandbox is somewhere on a machine.
    pub sandbox: Option<Sandbox>,
    /// Puts long tool results into files.
    pub tool_output: Toggle,
    /// Looks at commands before they run.
    pub sandbox_audit: Toggle,
    /// Refuses to overwrite files that were not read.
    pub read_before_write: Toggle,
    /// Keeps a conversation within the model's window.
    pub summarization: Toggle,
    /// Clears old tool results from requests.
    pub context_editing: Toggle,
    /// Shows only the tools that fit.
    pub tool_selection: Toggle,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            sandbox: None,
            tool_output: Toggle::On,
            sandbox_audit: Toggle::On,
            read_before_write: Toggle::On,
            summarization: Toggle::On,
            context_editing: Toggle::Off,
            tool_selection: Toggle::Off,
        }
    }
}

impl Features {
    /// Only what keeps a conversation valid.
    pub fn none() -> Self {
        Self {
            sandbox: None,
            tool_output: Toggle::Off,
            sandbox_audit: Toggle::Off,
            read_before_write: Toggle::Off,
            summarization: Toggle::Off,
            context_editing: Toggle::Off,
            tool_selection: Toggle::Off,
        }
    }
}
