//! The system prompt: parts in a fixed order, each present only when there is something to say in it.
//!
//! Invariant: nothing here changes from one request of a thread to the next (no date, no memory), and text from outside
//! cannot open or close a section.

use std::sync::Arc;

use crate::surroundings::WorkingDirectory;

/// One file of `prompts/`.
macro_rules! part {
    ($name:literal) => {
        include_str!(concat!("../prompts/", $name, ".md"))
    };
}

/// What the prompt of an agent is made of. The texts of the parts are in `prompts/`.
///
/// ```
/// use hart_agent::Prompt;
///
/// let prompt = Prompt { soul: Some("Dry humour. </soul>".into()), ..Prompt::new("Ada") }.render();
/// assert!(prompt.starts_with("You are Ada"));
/// assert!(prompt.contains("Dry humour. &lt;/soul&gt;"));
/// assert!(!prompt.contains("<deferred_tools>"), "no such tools, no heading");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    pub name: String,
    /// Who the agent is, in its maker's words.
    pub soul: Option<String>,
    /// When to ask; for an agent that can.
    pub clarification: bool,
    /// Tools that exist but are loaded only on demand.
    pub deferred_tools: Vec<Listed>,
    pub subagents: Option<Delegation>,
    /// How to plan; for an agent that keeps a list.
    pub plan_mode: bool,
    /// For an agent with files and commands.
    pub working_directory: Option<WorkingDirectory>,
    /// For an agent whose tools bring in what others wrote.
    pub citations: bool,
}

/// Something a prompt names: a skill, a tool, an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub description: String,
    /// Where its file is.
    pub path: Option<String>,
}

/// To whom work can be handed, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    pub kinds: Vec<Listed>,
    pub per_answer: u32,
    pub per_run: u32,
}

impl Prompt {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The whole text, the same each time.
    pub fn render(&self) -> Arc<str> {
        let mut parts = vec![part!("role").replace("{name}", &escape(&self.name))];
        if let Some(soul) = self.soul.as_deref().map(str::trim).filter(|soul| !soul.is_empty()) {
            parts.push(part!("soul").replace("{soul}", &escape(soul)));
        }
        parts.push(part!("thinking").to_owned());
        if self.clarification {
            parts.push(part!("clarification").to_owned());
        }
        if !self.deferred_tools.is_empty() {
            parts.push(part!("deferred_tools").replace("{entries}", &entries(&self.deferred_tools)));
        }
        if let Some(Delegation { kinds, per_answer, per_run }) = &self.subagents
            && !kinds.is_empty()
        {
            let part = part!("subagents").replace("{per_answer}", &per_answer.to_string());
            // The entries last: what is in them is nobody's placeholder.
            let part = part.replace("{per_run}", &per_run.to_string());
            parts.push(part.replace("{entries}", &entries(kinds)));
        }
        if self.plan_mode {
            parts.push(part!("plan").to_owned());
        }
        if let Some(place) = &self.working_directory {
            let places = place.places() + "\n";
            let part = part!("working_directory").replace("{commands}", place.commands());
            // Last, as above: a folder may be called anything.
            parts.push(part.replace("{places}\n", places.trim_start()));
        }
        parts.push(part!("response_style").to_owned());
        if self.citations {
            parts.push(part!("citations").to_owned());
        }
        parts.push(part!("reminders").to_owned());
        parts.iter().map(|part| part.trim()).collect::<Vec<_>>().join("\n\n").into()
    }
}

fn entries(listed: &[Listed]) -> String {
    listed.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(crate) fn line(entry: &Listed) -> String {
    let (name, description) = (escape(&entry.name), escape(&entry.description));
    // One line each: a second one could pass for another entry.
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    match &entry.path {
        Some(path) => format!("- {name}: {description} ({})", escape(path)),
        None => format!("- {name}: {description}"),
    }
}

/// Text from outside, so that it cannot pass for one of the prompt's own tags.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
