//! What the super agent is made of beyond its model and its tools: each part off, on, or somebody's own.
//!
//! Invariant: a feature is one field here and one line in `chain.rs`.

use hart_kernel::Toggle;
use hart_sandbox::Permissions;

use crate::middleware::{Clarification, HumanInTheLoop, RemoteSubagents, Sandbox, Skills};

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
    /// Tells clients where the thread's files are. Needs a sandbox.
    pub thread_data: Toggle,
    /// Announces the files of a message. Needs a sandbox.
    pub uploads: Toggle,
    /// Tells the model the date.
    pub dynamic_context: Toggle,
    /// Know-how in folders. There is no default: skills are somewhere on a machine.
    pub skills: Option<Skills>,
    /// Plan mode; see [`crate::SuperAgentBuilder::plan_mode`].
    pub todo: Toggle,
    /// Holds the agent to the goal of its thread, if it has one.
    pub goals: Toggle,
    /// Names the thread.
    pub title: Toggle,
    /// Shows images to models that can see. Needs a sandbox.
    pub view_image: Toggle,
    /// Asks again in words when a model refuses images or files.
    pub unsupported_content: Toggle,
    /// Says what a thread shows of a model that failed for good.
    pub model_error: Toggle,
    /// Turns failures of tools into results.
    pub tool_error: Toggle,
    /// Calls tools again whose failures may pass.
    pub tool_retry: Toggle,
    /// Adds up tokens and costs.
    pub token_usage: Toggle,
    /// Holds the run at its limits, if it has any. Subagents always have the built-in one, which ends them at the limits
    /// they are sent with and has none of its own.
    pub budget: Toggle,
    /// Bounds the calls of an answer, and of a run where it is told to.
    pub call_limits: Toggle,
    /// Hands work to others; see [`crate::SuperAgentBuilder::delegates`].
    pub subagents: Toggle,
    /// Works with agents on other servers. There is no default: they are somewhere.
    pub remote_subagents: Option<RemoteSubagents>,
    /// Corrects and ends repetition.
    pub loop_detection: Toggle,
    /// Mends answers that were cut off, refused or empty.
    pub finish_reason: Toggle,
    /// Keeps a conversation within the model's window.
    pub summarization: Toggle,
    /// Clears old tool results from requests.
    pub context_editing: Toggle,
    /// Shows only the tools that fit.
    pub tool_selection: Toggle,
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
            tool_output: Toggle::On,
            sandbox_audit: Toggle::On,
            read_before_write: Toggle::On,
            thread_data: Toggle::On,
            uploads: Toggle::On,
            dynamic_context: Toggle::On,
            goals: Toggle::On,
            title: Toggle::On,
            view_image: Toggle::On,
            unsupported_content: Toggle::On,
            model_error: Toggle::On,
            tool_error: Toggle::On,
            token_usage: Toggle::On,
            budget: Toggle::On,
            call_limits: Toggle::On,
            loop_detection: Toggle::On,
            finish_reason: Toggle::On,
            summarization: Toggle::On,
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
            thread_data: Toggle::Off,
            uploads: Toggle::Off,
            dynamic_context: Toggle::Off,
            skills: None,
            todo: Toggle::Off,
            goals: Toggle::Off,
            title: Toggle::Off,
            view_image: Toggle::Off,
            unsupported_content: Toggle::Off,
            model_error: Toggle::Off,
            tool_error: Toggle::Off,
            tool_retry: Toggle::Off,
            token_usage: Toggle::Off,
            budget: Toggle::Off,
            call_limits: Toggle::Off,
            subagents: Toggle::Off,
            remote_subagents: None,
            loop_detection: Toggle::Off,
            finish_reason: Toggle::Off,
            summarization: Toggle::Off,
            context_editing: Toggle::Off,
            tool_selection: Toggle::Off,
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
