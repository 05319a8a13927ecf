//! The folders of agents, managed over HTTP.
//!
//! Invariant: nothing here reads or writes but `AgentFolders` does.

use std::sync::Arc;

use hart_gateway::{Agents, FileError};
use hart_kernel::async_trait;
use serde_json::{Map, Value, json};

use crate::agent_folders::{NotSaved, OwnAgent};
use crate::choice::{self, ChooseError};
use crate::workshop::Workshop;

#[async_trait]
impl Agents for Workshop {
    fn enabled(&self) -> bool {
        self.config.around.agents_api
    }

    async fn agents(&self) -> Vec<Value> {
        self.agents.all().iter().map(|agent| told(agent)).collect()
    }

    async fn agent(&self, name: &str) -> Option<Value> {
        self.agents.get(name).map(|agent| told(&agent))
    }

    async fn save(
        &self,
        name: &str,
        settings: Map<String, Value>,
        soul: Option<String>,
        new: bool,
    ) -> Result<Value, FileError> {
        // Its runs would be refused; whoever writes the name can mend it now.
        if let Some(model) = settings.get("model").and_then(Value::as_str).filter(|model| !model.is_empty())
            && let Err(error @ ChooseError::Unknown { .. }) = choice::choose(self, Some(model)).await
        {
            return Err(FileError::Refused(error.to_string()));
        }
        let (folders, name) = (Arc::clone(&self.agents), name.to_owned());
        blocking(move || folders.save(&name, settings, soul, new).map(|agent| told(&agent))).await
    }

    async fn delete(&self, name: &str) -> Result<(), FileError> {
        let (folders, name) = (Arc::clone(&self.agents), name.to_owned());
        blocking(move || folders.delete(&name)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NotSaved> + Send + 'static,
) -> Result<T, FileError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| FileError::Failed(error.to_string()))?;
    done.map_err(|error| match error {
        NotSaved::Missing => FileError::NotFound,
        NotSaved::Exists => FileError::Exists,
        NotSaved::Refused(why) => FileError::Refused(why),
        NotSaved::Io(error) => FileError::Failed(error.to_string()),
    })
}

fn told(agent: &OwnAgent) -> Value {
    let OwnAgent { name, soul, config } = agent;
    let options = config.options();
    let option = |key: &str| options.get(key).cloned().unwrap_or_default();
    json!({
        "name": name,
        "description": config.description.as_deref().unwrap_or_default(),
        "model": config.model,
        "tool_groups": config.tool_groups,
        "skills": config.skills,
        "model_settings": {
            "temperature": config.model_settings.temperature,
            "max_tokens": config.model_settings.max_tokens,
        },
        "thinking_enabled": option("thinking_enabled"),
        "reasoning_effort": option("reasoning_effort"),
        "soul": soul.as_deref().unwrap_or_default(),
    })
}
