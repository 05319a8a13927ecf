//! Agents that work for the agent: what they are, what they may use, what became of what they were given.
//!
//! Invariant: a subagent cannot delegate. It is built without the tool for it, not told to leave it alone.

mod assemble;
mod ledger;
mod outcome;
mod parts;
mod pool;
mod schema;
mod share;
mod story;
mod task;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{Agent, BuildError, ChatModel, Placed, Toggle, Tool};
use serde::Deserialize;
use serde_json::Value;

use crate::FilePermissions;
use crate::middleware::HumanInTheLoop;

pub use self::ledger::{Delegated, Delegations};
pub use self::outcome::Status;
pub use self::parts::Part;

pub(crate) use self::assemble::{Surroundings, assemble};
pub(crate) use self::ledger::{Recall, Reminded, Turn, TurnWrite, answer_in};
pub(crate) use self::outcome::Outcomes;
pub(crate) use self::pool::Pool;
pub(crate) use self::task::{TASK, Task};

/// How much is delegated, and how long it may take. The first five names are DeerFlow's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubagentsConfig {
    /// How many of one answer work at a time.
    pub max_concurrent: u32,
    /// How many there may be in a run.
    pub max_total_per_run: u32,
    /// After which a subagent is ended, unless it has a time of its own.
    pub timeout_seconds: f64,
    /// Model calls of a subagent, unless it has a number of its own.
    pub max_turns: Option<u32>,
    pub token_budget: TokenBudget,
    /// What happens to those of an answer beyond `max_concurrent`.
    pub on_excess: OnExcess,
    /// A subagent that says nothing for so long is ended.
    pub progress_timeout_seconds: f64,
    /// What all subagents of a run may use together; 0 is no limit but the run's own.
    pub max_tokens_per_run: u64,
}

/// What a subagent may use at most, of what its run has left.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TokenBudget {
    /// Whether `max_tokens` holds. What the run has left holds anyway.
    pub enabled: bool,
    pub max_tokens: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExcess {
    /// They wait for their turn.
    #[default]
    Queue,
    /// They are answered with an error.
    Refuse,
}

impl Default for SubagentsConfig {
    fn default() -> Self {
        Self {
            max_concurrent: 3,
            max_total_per_run: 6,
            timeout_seconds: 1800.0,
            max_turns: None,
            token_budget: TokenBudget::default(),
            on_excess: OnExcess::Queue,
            progress_timeout_seconds: 600.0,
            max_tokens_per_run: 1_000_000,
        }
    }
}

impl Default for TokenBudget {
    fn default() -> Self {
        Self { enabled: true, max_tokens: 1_000_000 }
    }
}

/// An agent that others can hand work to.
///
/// It has the lead agent's sandbox, guards and limits, a conversation of its own, and neither `task` nor
/// `ask_clarification`.
///
/// ```
/// use hart_agent::Subagent;
/// use std::time::Duration;
///
/// let reviewer = Subagent::builder("reviewer", "Reads a change and lists what is wrong with it.")
///     .prompt("You review code. List defects, worst first, each with its file and line.")
///     .tools(["ls", "glob", "grep", "read_file"])
///     .max_turns(20)
///     .timeout(Duration::from_secs(300))
///     .build()?;
/// assert_eq!(reviewer.name(), "reviewer");
/// # Ok::<(), hart_kernel::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Subagent {
    name: String,
    description: String,
    prompt: String,
    /// `None` is all that the lead agent has.
    allowed: Option<Vec<String>>,
    denied: Vec<String>,
    /// `None` is all that the lead agent has.
    skills: Option<Vec<String>>,
    /// `None` is the lead agent's.
    model: Option<Arc<dyn ChatModel>>,
    middleware: Vec<Placed>,
    parts: Vec<(Part, Toggle)>,
    own_tools: Vec<Arc<dyn Tool>>,
    permissions: Option<FilePermissions>,
    review: Option<HumanInTheLoop>,
    result: Option<Value>,
    max_turns: Option<u32>,
    /// Where nobody says a number.
    usual_turns: u32,
    timeout: Option<Duration>,
    max_tokens: Option<u64>,
    /// Names of tools that are not there are told and passed over.
    tolerant: bool,
    is_built_in: bool,
}

/// The names of the built-in ones.
pub(crate) const GENERAL: &str = "general-purpose";
pub(crate) const BASH: &str = "bash";

/// What no subagent gets: `task` because it does not delegate, the others because they speak to the user.
pub(crate) const NEVER: [&str; 5] =
    [TASK, "ask_clarification", "present_files", "write_todos", "list_uploaded_files"];

impl Subagent {
    /// `name` is what the model calls it by, `description` what it chooses it by.
    pub fn builder(name: impl Into<String>, description: impl Into<String>) -> SubagentBuilder {
        SubagentBuilder(Self {
            name: name.into(),
            description: description.into(),
            prompt: GENERAL_PROMPT.to_owned(),
            allowed: None,
            denied: Vec::new(),
            skills: None,
            model: None,
            middleware: Vec::new(),
            parts: Vec::new(),
            own_tools: Vec::new(),
            permissions: None,
            review: None,
            result: None,
            max_turns: None,
            usual_turns: 50,
            timeout: None,
            max_tokens: None,
            tolerant: false,
            is_built_in: false,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// The built-in one of this name, to be changed and given back.
    pub fn built_in(name: &str) -> Option<SubagentBuilder> {
        match name {
            GENERAL => Some(SubagentBuilder(Self::general_purpose())),
            BASH => Some(SubagentBuilder(Self::bash())),
            _ => None,
        }
    }

    fn general_purpose() -> Self {
        let description = "Research, searching and other work of many steps whose result is a report. It has the same \
                           tools as you.";
        Self { usual_turns: 150, is_built_in: true, ..Self::builder(GENERAL, description).0 }
    }

    fn bash() -> Self {
        let description =
            "A series of commands (builds, tests, git) whose long output you need only the essence of.";
        let tools = ["bash", "ls", "read_file", "write_file", "str_replace"];
        Self {
            prompt: BASH_PROMPT.to_owned(),
            allowed: Some(tools.map(str::to_owned).to_vec()),
            usual_turns: 60,
            is_built_in: true,
            ..Self::builder(BASH, description).0
        }
    }
}

const GENERAL_PROMPT: &str = include_str!("../prompts/subagent_general.md");
const BASH_PROMPT: &str = include_str!("../prompts/subagent_bash.md");

impl fmt::Debug for Subagent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subagent")
            .field("name", &self.name)
            .field("description", &self.description)
            .field("tools", &self.allowed)
            .field("model", &self.model.as_ref().map(|model| &model.profile().name))
            .finish_non_exhaustive()
    }
}

/// Made by [`Subagent::builder`].
#[derive(Debug)]
#[must_use = "call `build`"]
pub struct SubagentBuilder(Subagent);

impl SubagentBuilder {
    /// Who it is and how it works; without it, that of the built-in `general-purpose`.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.0.prompt = prompt.into();
        self
    }

    /// Of the lead agent's tools, only these.
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.0.allowed = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Not these, whatever else is allowed.
    pub fn without_tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.0.denied.extend(names.into_iter().map(Into::into));
        self
    }

    /// Of the lead agent's skills, only these; an empty list is none. It needs `read_file` to use any.
    pub fn skills<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.0.skills = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// A tool that the lead agent does not have.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.0.own_tools.push(tool);
        self
    }

    /// Instead of the lead agent's.
    pub fn model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.0.model = Some(model);
        self
    }

    /// Adds a middleware to its chain. What is added to the lead agent's stays there.
    pub fn with(mut self, middleware: impl Into<Placed>) -> Self {
        self.0.middleware.push(middleware.into());
        self
    }

    /// Whether it has this part of the chain, or which one instead. `true` is the lead agent's where it has one.
    pub fn part(mut self, part: Part, toggle: impl Into<Toggle>) -> Self {
        self.0.parts.push((part, toggle.into()));
        self
    }

    /// Instead of the lead agent's rules about paths.
    pub fn permissions(mut self, permissions: FilePermissions) -> Self {
        self.0.permissions = Some(permissions);
        self
    }

    /// Which of its calls a person is asked about, instead of the lead agent's.
    pub fn human_in_the_loop(mut self, review: HumanInTheLoop) -> Self {
        self.0.review = Some(review);
        self
    }

    /// Its report is JSON that fits this schema; what does not is a failure.
    pub fn result_schema(mut self, schema: Value) -> Self {
        self.0.result = Some(schema);
        self
    }

    /// How often its model may be asked.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.0.max_turns = Some(turns);
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout = Some(timeout);
        self
    }

    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.0.max_tokens = Some(tokens);
        self
    }

    /// Names of tools that the lead agent does not have are warned of, not refused: for files that were written for
    /// another agent.
    pub fn tolerant(mut self) -> Self {
        self.0.tolerant = true;
        self
    }

    pub fn build(self) -> Result<Subagent, BuildError> {
        let Subagent { name, description, max_turns, .. } = &self.0;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_word) {
            return Err(BuildError::Refused(format!(
                "a subagent cannot be called `{}`; write letters, digits, `-` and `_`, 64 at most",
                name.escape_debug()
            )));
        }
        if description.trim().is_empty() {
            return Err(BuildError::Refused(format!(
                "the subagent `{name}` has no description; say what it is for: that is what it is chosen by"
            )));
        }
        if *max_turns == Some(0) {
            return Err(BuildError::Refused(format!(
                "the subagent `{name}` may take no turn; write at least 1"
            )));
        }
        Ok(self.0)
    }
}

/// A subagent that is ready to work.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) agent: Agent,
    pub(crate) model: String,
    pub(crate) max_turns: u32,
    pub(crate) timeout: Duration,
    pub(crate) max_tokens: Option<u64>,
    /// What its report must fit.
    pub(crate) result: Option<Value>,
    /// Whether it can be told which are active.
    pub(crate) knows_skills: bool,
}
