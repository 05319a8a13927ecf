//! What commands that work with models have in common: the opened app, the runtime, the running of one task.
//!
//! Invariant: a session is closed on every path, so that no sandbox outlives the command.

use std::io;
use std::num::NonZero;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use hart_app::config::{AppConfig, LoadOptions};
use hart_app::{App, CancellationToken, Env, ModelChoice, OpenError};
use hart_client::{Client, ClientError, HttpClient};
use hart_types::{RunId, ThreadId};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::args::{GlobalArgs, quoted};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::log;
use crate::terminal::{Terminal, Tone};

/// Among so many of the newest runs one is found by the beginning of its id.
const SEARCHED: usize = 1000;

pub(crate) struct Session {
    pub(crate) app: Arc<App>,
    pub(crate) terminal: Terminal,
    server: Option<HttpClient>,
    /// What to write to ask the same one again.
    there: String,
    runtime: Option<Runtime>,
}

/// Whom to ask.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Another hart")]
pub(crate) struct ServerArgs {
    /// Ask the hart that is served there, such as http://127.0.0.1:2026, instead of one in this process.
    #[arg(long, value_name = "URL", env = "HART_SERVER")]
    pub(crate) server: Option<String>,
    /// What that one wants to be shown; better kept in HART_TOKEN, where others do not see it.
    #[arg(long, value_name = "TOKEN", env = "HART_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

/// The runtime waits this long for what does not end by itself.
const PATIENCE: Duration = Duration::from_secs(2);

impl Session {
    /// One whose runs are in this process.
    pub(crate) fn open(global: &GlobalArgs, terminal: &Terminal) -> Result<Self, Failure> {
        Self::open_at(&ServerArgs::default(), global, terminal)
    }

    /// With a layer of the command's own above the configuration.
    pub(crate) fn open_with(
        global: &GlobalArgs,
        terminal: &Terminal,
        overrides: Option<Value>,
    ) -> Result<Self, Failure> {
        Self::prepare(&ServerArgs::default(), global, terminal, overrides)
    }

    pub(crate) fn open_at(
        at: &ServerArgs,
        global: &GlobalArgs,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        Self::prepare(at, global, terminal, None)
    }

    fn prepare(
        at: &ServerArgs,
        global: &GlobalArgs,
        terminal: &Terminal,
        overrides: Option<Value>,
    ) -> Result<Self, Failure> {
        let env = Env::from_process();
        let options = LoadOptions { overrides, ..load_options(global, &env)? };
        let config = AppConfig::load(options).map_err(OpenError::from)?;
        log::start(terminal, &env, global.verbose, config.log_level);
        let app = App::with_config(config, env)?;
        for warning in &app.config().warnings {
            tracing::warn!("{}", warning.message);
        }
        // One is not enough where something blocks; many cost memory in a process that mostly waits.
        let threads = std::thread::available_parallelism().map_or(2, NonZero::get).clamp(2, 8);
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let server = at.server.as_deref().map(|url| HttpClient::new(url, at.token.clone())).transpose()?;
        let there = at.server.as_deref().map(|url| format!(" --server {}", quoted(url))).unwrap_or_default();
        Ok(Self { app: Arc::new(app), terminal: terminal.clone(), server, there, runtime: Some(runtime) })
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let Some(runtime) = &self.runtime else {
            return Err(Failure::failed(anyhow::anyhow!("the session is over")));
        };
        Ok(runtime.block_on(work))
    }

    pub(crate) async fn choose_model(&self, name: Option<&str>) -> Result<ModelChoice, Failure> {
        Ok(self.app.choose_model(name).await?)
    }

    /// Ends the process when it is told to while an editor waits for a line; dropped when the editor returns.
    pub(crate) fn end_on_signal(&self) -> Result<JoinSet<()>, Failure> {
        let before = tcgetattr(io::stdin()).ok();
        self.block_on(async {
            let mut interrupts = Interrupts::listen()?;
            let mut watch = JoinSet::new();
            watch.spawn(async move {
                // Ctrl-C itself comes as a key while the editor reads.
                interrupts.next().await;
                if let Some(before) = before {
                    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
                }
                process::exit(i32::from(Exit::Interrupted.code()));
            });
            Ok(watch)
        })?
    }

    /// Whoever is asked: an agent in this process, or a server.
    pub(crate) fn client(&self) -> Arc<dyn Client> {
        match &self.server {
            Some(server) => Arc::new(server.clone()),
            None => Arc::new(hart_app::Client::of(Arc::clone(&self.app))),
        }
    }

    /// The option that names the server, with a space before it; nothing where there is none.
    pub(crate) fn there(&self) -> &str {
        &self.there
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.server.is_some()
    }

    /// Whether there is anything to look at. Looking makes no data directory.
    pub(crate) fn has_data(&self) -> bool {
        self.is_remote() || self.app.has_data()
    }

    /// Whether anything was said on a thread.
    pub(crate) async fn knows(&self, thread: &ThreadId) -> Result<bool, Failure> {
        if !self.has_data() {
            return Ok(false);
        }
        match self.client().thread(thread).await {
            Ok(state) => Ok(!state.values.is_empty()),
            Err(ClientError::NoThread(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The run of this id, or the one among the newest whose id begins so.
    pub(crate) fn run_named(&self, said: &str) -> Result<RunId, Failure> {
        let id = RunId::from(said);
        if !self.has_data() || said.is_empty() {
            return Err(ClientError::NoRun(id).into());
        }
        match self.block_on(self.client().run(&id))? {
            Ok(_) => return Ok(id),
            Err(ClientError::NoRun(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let newest = self.block_on(self.client().runs(None, SEARCHED))??;
        let mut fitting = newest.into_iter().map(|run| run.id).filter(|id| id.as_str().starts_with(said));
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(only),
            (Some(one), Some(other)) => {
                Err(Failure::usage(format!("several runs begin with `{said}`, such as {one} and {other}"))
                    .help("write more of the id; `hart runs` lists them"))
            }
            _ => Err(ClientError::NoRun(id).into()),
        }
    }

    /// Lets this model work, and no other.
    pub(crate) fn play(&mut self, model: &ModelChoice) {
        // Nothing has begun yet, so nobody else holds it.
        if let Some(app) = Arc::get_mut(&mut self.app) {
            app.set_model(model);
        }
    }

    /// Follows a run to its end. Ctrl-C cancels it; a second one ends the process at once.
    pub(crate) async fn attend<T: Send + 'static>(
        &self,
        cancel: CancellationToken,
        following: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        let mut interrupts = Interrupts::listen()?;
        // On a worker, so that a signal is heard even while a write to a full pipe blocks.
        let mut running = JoinSet::new();
        running.spawn(following);
        // A run ends within two seconds of its cancellation; one that does not is stuck in a write that nobody reads.
        let stuck = async {
            cancel.cancelled().await;
            tokio::time::sleep(PATIENCE + PATIENCE).await;
        };
        tokio::pin!(stuck);
        loop {
            tokio::select! {
                Some(ended) = running.join_next() => return ended.map_err(Failure::failed),
                () = &mut stuck => process::exit(i32::from(Exit::Interrupted.code())),
                () = interrupts.next() => {
                    // Nothing here may wait for the screen: the run may hold it, blocked on a full pipe.
                    if cancel.is_cancelled() {
                        process::exit(i32::from(Exit::Interrupted.code()));
                    }
                    // Said first: what is cancelled may have much to say itself.
                    let notice = self.terminal.err.paint(Tone::Warn, "cancelling… (once more to stop at once)");
                    self.terminal.note_if_free(&notice);
                    cancel.cancel();
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            let closing = async {
                self.app.close().await;
                if let Some(server) = &self.server {
                    server.close().await;
                }
            };
            runtime.block_on(async { tokio::time::timeout(PATIENCE, closing).await.ok() });
            runtime.shutdown_timeout(PATIENCE);
        }
    }
}

/// Where the configuration is looked for.
pub(crate) fn load_options<'a>(global: &GlobalArgs, env: &'a Env) -> Result<LoadOptions<'a>, Failure> {
    Ok(LoadOptions { path: global.config.clone(), cwd: working_directory()?, env, overrides: None })
}

pub(crate) fn working_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        let error = anyhow::Error::new(error).context("the current directory cannot be used");
        Failure::new(Exit::Usage, error).help("change to a directory that exists")
    })
}
