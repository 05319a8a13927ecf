//! What the super agent is made of beyond its model and its tools: each part off, on, or somebody's own.
//!
//! Invariant: a feature is one field here and one line in `chain.rs`.

use hart_kernel::Toggle;
use hart_sandbox::Permissions;

use crate::middleware::{Clarification, HumanInTheLoop, Sandbox};

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
    /// Neutralises what users write, in the request.
    pub input_sanitization: Toggle,
    /// Seals what tools bring in from outside.
    pub untrusted_content: Toggle,
    /// Keeps personal data from the model. There is no default: see [`crate::middleware::Pii`].
    pub pii: Toggle,
    /// Which paths the file tools may touch. It needs a sandbox to restrict.
    pub permissions: Option<FilePermissions>,
    /// Lets a provider decide about each call.
    pub guardrail: Toggle,
    /// Asks a person about some calls.
    pub human_in_the_loop: Option<HumanInTheLoop>,
    /// Whether the model can ask the user.
    pub clarification: Clarification,
}

/// Rules about paths, and whether they may stand beside tools they do not cover.
#[derive(Clone, Debug)]
pub struct FilePermissions {
    pub rules: Permissions,
    /// Commands see all of the sandbox, whatever the rules say. Unless this is set, an agent with rules and `bash` is
    /// not built.
    pub allow_bash: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            sandbox: None,
            tool_output: Toggle::On,
            sandbox_audit: Toggle::On,
            read_before_write: Toggle::On,
            input_sanitization: Toggle::On,
            untrusted_content: Toggle::On,
            ..Self::none()
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
            input_sanitization: Toggle::Off,
            untrusted_content: Toggle::Off,
            pii: Toggle::Off,
            permissions: None,
            guardrail: Toggle::Off,
            human_in_the_loop: None,
            clarification: Clarification::Ask,
        }
    }
}
