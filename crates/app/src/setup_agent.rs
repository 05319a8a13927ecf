//! `setup_agent`: keeps the agent that a user has described in a conversation.
//!
//! Invariant: only a run that was begun to make an agent has it, and it writes no agent but the one that run names.

use std::sync::Arc;

use hart_kernel::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait};
use hart_knowledge::skills::Catalogue;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent_folders::{AgentFolders, NotSaved};

pub(crate) struct SetupAgent {
    folders: Arc<AgentFolders>,
    /// The agent's, as its folder is called.
    name: String,
    /// What it may name.
    skills: Arc<Catalogue>,
    spec: Arc<ToolSpec>,
}

/// What the model writes.
#[derive(Deserialize)]
struct Args {
    soul: String,
    #[serde(default)]
    description: String,
    skills: Option<Vec<String>>,
}

impl SetupAgent {
    pub(crate) fn new(folders: Arc<AgentFolders>, name: &str, skills: Arc<Catalogue>) -> Self {
        let spec = ToolSpec {
            name: "setup_agent".to_owned(),
            description: format!(
                "Save the new agent `{name}`. Call it when the user agrees with what you propose, or asks you to save; \
                 a second call replaces what was saved."
            ),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "soul": {
                        "type": "string",
                        "description": "The whole SOUL.md: who the agent is, what it is for, how it works and speaks, \
                                        what it never does.",
                    },
                    "description": {"type": "string", "description": "What it does, in one line."},
                    "skills": {
                        "type": "array", "items": {"type": "string"},
                        "description": "The skills it may use, by name. Leave it out for all; an empty list is none.",
                    },
                },
                "required": ["soul", "description"],
            }),
            // The same files with the same text.
            effect: Effect::Idempotent,
        };
        Self { folders, name: name.to_owned(), skills, spec: Arc::new(spec) }
    }

    /// What the agent that makes another one is told about itself.
    pub(crate) fn soul_of_the_maker(name: &str) -> String {
        format!(
            "In this conversation you help the user to make an agent of their own, which will be called `{name}`. Find \
             out what it is for, how it should work and speak, and what it must not do: one or two short questions at a \
             time, with proposals the user can simply agree to. Then show the text that will describe it, and save it \
             with `setup_agent` when the user agrees. When asked to save, save at once and choose sensibly what was \
             left open. You do not do the new agent's work here."
        )
    }

    fn check(&self, args: &Args) -> Result<(), ToolError> {
        if args.soul.trim().is_empty() {
            return Err(ToolError::Arguments("`soul` is empty: write who the agent is".to_owned()));
        }
        let unknown = args.skills.iter().flatten().find(|name| self.skills.get(name).is_none());
        match unknown {
            None => Ok(()),
            Some(unknown) => {
                let known: Vec<&str> = self.skills.enabled().map(|skill| skill.name()).collect();
                let text = format!("there is no skill `{unknown}`; there is: {}", known.join(", "));
                Err(ToolError::Arguments(text))
            }
        }
    }
}

#[async_trait]
impl Tool for SetupAgent {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    async fn call(&self, _cx: &ToolContext<'_>, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let args: Args =
            serde_json::from_value(args.into()).map_err(|error| ToolError::Arguments(error.to_string()))?;
        self.check(&args)?;
        let mut settings = Map::from_iter([("description".to_owned(), args.description.trim().into())]);
        if let Some(skills) = args.skills {
            settings.insert("skills".to_owned(), skills.into());
        }
        let (folders, name) = (Arc::clone(&self.folders), self.name.clone());
        let saved = tokio::task::spawn_blocking(move || {
            let new = folders.get(&name).is_none();
            folders.save(&name, settings, Some(args.soul), new)
        });
        let saved = saved.await.map_err(|error| ToolError::Fatal(error.into()))?;
        saved.map_err(|error| not_saved(&self.name, &error))?;
        Ok(format!("The agent `{}` is saved; the user can talk to it at once.", self.name).into())
    }
}

fn not_saved(name: &str, error: &NotSaved) -> ToolError {
    ToolError::Failed(match error {
        // The folder is there, and is none of an agent's.
        NotSaved::Exists => {
            format!("the folder of `{name}` cannot be used as it is; the user has to mend or remove it first")
        }
        error => format!("`{name}` was not saved: {error}"),
    })
}
