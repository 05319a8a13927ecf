//! What a client is built from: a file or none, parameters over it, and parts of the program's own.
//!
//! Invariant: `build` is the only moment at which a file, the environment or the current directory is read.

use std::path::PathBuf;
use std::sync::Arc;

use hart_agent::{Features, Subagent};
use hart_kernel::{ChatModel, Placed, Tool};
use hart_runtime::port::Store;
use hart_types::UserId;
use serde_json::{Map, Value};

use super::{Client, SetupError};
use crate::app::OWNER;
use crate::config::{AppConfig, LoadOptions};
use crate::extensions::Extensions;
use crate::{App, Env};

/// Made by [`Client::builder`].
#[derive(Debug)]
#[must_use = "call `build`"]
pub struct ClientBuilder {
    file: File,
    settings: Settings,
    env: Option<Env>,
    home: Option<PathBuf>,
    user: UserId,
    extensions: Extensions,
}

#[derive(Debug)]
enum File {
    /// Where `hart` looks for it.
    Usual,
    Named(PathBuf),
    None,
}

impl ClientBuilder {
    pub(super) fn new() -> Self {
        Self {
            file: File::Usual,
            settings: Settings(Value::Object(Map::new())),
            env: None,
            home: None,
            user: UserId::from(OWNER),
            extensions: Extensions::default(),
        }
    }

    /// Reads this file instead of the usual one; it must exist.
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = File::Named(path.into());
        self
    }

    /// Reads nothing that is not passed: no file, and no environment but that of [`ClientBuilder::env`]. It needs a
    /// [`ClientBuilder::home`], which relative paths in the settings are relative to.
    pub fn no_file(mut self) -> Self {
        self.file = File::None;
        self
    }

    /// A map of sections, laid over the file, which lies over the defaults: maps merge, scalars and lists replace,
    /// `null` clears, `models` merge by `name`. May be said more than once.
    pub fn config(mut self, settings: Value) -> Self {
        self.settings.lay(settings);
        self
    }

    /// Changes what the agent is made of, beginning with what the configuration says. Called for every run.
    pub fn features(mut self, change: impl Fn(&mut Features) + Send + Sync + 'static) -> Self {
        self.extensions.features.push(Arc::new(change));
        self
    }

    /// Adds a middleware where it, or [`PlaceExt`](hart_kernel::PlaceExt), says; one that has a built-in's name takes
    /// its place. It is the lead agent's alone.
    pub fn extra_middleware(mut self, middleware: impl Into<Placed>) -> Self {
        self.extensions.middleware.push(middleware.into());
        self
    }

    /// The same for the lead agent and all its subagents.
    pub fn extra_middleware_everywhere(mut self, middleware: impl Into<Placed>) -> Self {
        self.extensions.everywhere.push(middleware.into());
        self
    }

    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.extensions.tools.push(tool);
        self
    }

    /// An agent that others can hand work to, beside those of the configuration and of files.
    pub fn subagent(mut self, subagent: Subagent) -> Self {
        self.extensions.subagents.push(subagent);
        self
    }

    /// The default model, before all that are configured or found.
    pub fn model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.extensions.model = Some(model);
        self
    }

    /// Instead of the environment of the process.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Where threads and their files are kept, instead of `$HART_HOME` or `.hart`.
    pub fn home(mut self, path: impl Into<PathBuf>) -> Self {
        self.home = Some(path.into());
        self
    }

    /// Where threads and runs are remembered instead of in `hart.db` below the home, such as
    /// `SqliteStore::in_memory()`. The agent's files stay there.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.extensions.store = Some(store);
        self
    }

    /// Whose threads they are; see also [`Client::for_user`].
    pub fn user(mut self, user: impl Into<UserId>) -> Self {
        self.user = user.into();
        self
    }

    /// Everything that is wrong with the choices is wrong here, not mid-run.
    pub fn build(self) -> Result<Client, SetupError> {
        let Self { file, settings: Settings(settings), env, home, user, extensions } = self;
        let (mut config, env) = match file {
            File::None => {
                let env = env.unwrap_or_else(|| Env::from_iter([("HART_NO_PROBE", "1")]));
                let cwd = home.clone().ok_or(SetupError::NoHome)?;
                (AppConfig::without_file(settings, cwd, &env)?, env)
            }
            file => {
                let env = env.unwrap_or_else(Env::from_process);
                let cwd = std::env::current_dir().map_err(SetupError::Directory)?;
                let path = if let File::Named(path) = file { Some(path) } else { None };
                let options = LoadOptions { path, cwd, env: &env, overrides: Some(settings) };
                (AppConfig::load(options)?, env)
            }
        };
        for warning in &config.warnings {
            tracing::warn!("{}", warning.message);
        }
        if let Some(home) = home {
            config.skills.moved(&config.home, &home);
            config.home = home;
        }
        Client::open(App::extended(config, env, extensions)?, user)
    }
}

/// Layers of settings as one, with their `null`s: what they clear may be in the file.
#[derive(Debug)]
struct Settings(Value);

impl Settings {
    fn lay(&mut self, over: Value) {
        lay_at(&mut self.0, over, "");
    }
}

fn lay_at(base: &mut Value, over: Value, key: &str) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(&key) {
                    Some(below) => lay_at(below, value, &key),
                    None => {
                        base.insert(key, value);
                    }
                }
            }
        }
        // Entries of one name follow each other, and are merged in that order.
        (Value::Array(base), Value::Array(over)) if key == "models" => base.extend(over),
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_said_twice_are_laid_one_over_the_other() {
        let mut settings = Settings(json!({"log_level": "info", "sandbox": {"cpus": 1, "use": "local"}}));
        settings.lay(json!({"log_level": null, "sandbox": {"cpus": 2}, "models": [{"name": "a"}]}));
        settings.lay(json!({"models": [{"name": "a", "model": "m"}]}));
        assert_eq!(
            settings.0,
            json!({"log_level": null, "sandbox": {"cpus": 2, "use": "local"},
                "models": [{"name": "a"}, {"name": "a", "model": "m"}]})
        );
    }
}
