//! The five tools for tasks on other servers.
//!
//! Invariant: a server that is gone is told of in words; the task stays in the list.

use std::sync::Arc;

use futures_util::future::join_all;
use hart_guard::{Seal, Untrusted};
use hart_kernel::{
    Effect, EffectKey, Reconciled, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Update, async_trait,
};
use hart_types::ThreadId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::remote::{AsyncTask, AsyncTasks, RemoteAgents, RemoteError, RemoteStatus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Start,
    Check,
    Update,
    Cancel,
    List,
}

pub(super) struct Asynchronous {
    verb: Verb,
    remote: Arc<dyn RemoteAgents>,
    spec: Arc<ToolSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Args {
    description: String,
    subagent_type: String,
    task_id: String,
    message: String,
    status_filter: Option<String>,
}

impl Asynchronous {
    pub(super) fn new(verb: Verb, remote: Arc<dyn RemoteAgents>) -> Self {
        let spec = Arc::new(spec(verb, remote.as_ref()));
        Self { verb, remote, spec }
    }

    async fn start(&self, cx: &ToolContext<'_>, args: Args) -> Result<ToolOutput, ToolError> {
        let agents = self.remote.agents();
        if !agents.iter().any(|(name, _)| *name == args.subagent_type) {
            let names: Vec<&str> = agents.iter().map(|(name, _)| name.as_str()).collect();
            let text = format!(
                "there is no remote agent `{}`; choose one of: {}",
                args.subagent_type,
                names.join(", ")
            );
            return Err(ToolError::Failed(text));
        }
        if args.description.trim().is_empty() {
            return Err(ToolError::Arguments("`description` is empty: say what is to be done".to_owned()));
        }
        let thread = thread_of(cx.effect);
        let run =
            self.remote.start(&args.subagent_type, &thread, &args.description).await.map_err(not_started)?;
        Ok(started(cx, args.subagent_type, thread, run))
    }

    async fn check(&self, cx: &ToolContext<'_>, task: AsyncTask) -> Result<ToolOutput, ToolError> {
        let standing =
            self.remote.check(&task.agent_name, &task.thread_id, &task.run_id).await.map_err(failed)?;
        let key = if standing.status == RemoteStatus::Error { "error" } else { "result" };
        let said = standing
            .said
            .as_deref()
            .map(|said| Seal::fresh().enclose(&task.agent_name, &Untrusted::new(said).sanitised()));
        let text = json!({"status": standing.status, "thread_id": task.thread_id, (key): said}).to_string();
        Ok(changed(text, AsyncTask { status: standing.status, last_checked_at: cx.run.clock.now(), ..task }))
    }

    async fn update(
        &self,
        cx: &ToolContext<'_>,
        task: AsyncTask,
        message: &str,
    ) -> Result<ToolOutput, ToolError> {
        if message.trim().is_empty() {
            return Err(ToolError::Arguments("`message` is empty".to_owned()));
        }
        let run_id = self.remote.update(&task.agent_name, &task.thread_id, message).await.map_err(failed)?;
        let text = format!("Told it to the task {}; it goes on with that.", task.task_id);
        let now = cx.run.clock.now();
        Ok(changed(text, AsyncTask { run_id, status: RemoteStatus::Running, last_updated_at: now, ..task }))
    }

    async fn cancel(&self, cx: &ToolContext<'_>, task: AsyncTask) -> Result<ToolOutput, ToolError> {
        self.remote.cancel(&task.agent_name, &task.thread_id, &task.run_id).await.map_err(failed)?;
        let text = format!("Cancelled the task {}.", task.task_id);
        let now = cx.run.clock.now();
        Ok(changed(text, AsyncTask { status: RemoteStatus::Cancelled, last_updated_at: now, ..task }))
    }

    /// Those that may have changed are asked after, all at once.
    async fn list(&self, cx: &ToolContext<'_>, filter: Option<&str>) -> ToolOutput {
        let tasks: Vec<AsyncTask> =
            cx.state.get::<AsyncTasks>().map(|tasks| tasks.values().cloned().collect()).unwrap_or_default();
        let now = cx.run.clock.now();
        let asked = join_all(tasks.into_iter().map(async |task: AsyncTask| {
            if task.status != RemoteStatus::Running {
                return (task, None);
            }
            match self.remote.check(&task.agent_name, &task.thread_id, &task.run_id).await {
                Ok(standing) => (AsyncTask { status: standing.status, last_checked_at: now, ..task }, None),
                Err(error) => (task, Some(error)),
            }
        }))
        .await;
        let (mut lines, mut update) = (Vec::new(), Update::none());
        for (task, error) in asked {
            let status = task.status.name();
            if filter.is_none_or(|filter| filter == "all" || filter == status) {
                let error = error.map(|error| format!(" (not reached: {error})")).unwrap_or_default();
                lines.push(format!("- {} ({}): {status}{error}", task.task_id, task.agent_name));
            }
            update = update.set::<AsyncTasks>(task);
        }
        let text = if lines.is_empty() { "There are no such tasks.".to_owned() } else { lines.join("\n") };
        ToolOutput { command: update.into(), ..text.into() }
    }
}

fn started(cx: &ToolContext<'_>, agent_name: String, thread_id: String, run_id: String) -> ToolOutput {
    let now = cx.run.clock.now();
    let text = format!(
        "Started. The task's id is {thread_id}. It runs by itself: do something else, or tell the user, and look after it \
         later with check_async_task."
    );
    let task = AsyncTask {
        task_id: thread_id.clone(),
        agent_name,
        thread_id,
        run_id,
        status: RemoteStatus::Running,
        created_at: now,
        last_checked_at: now,
        last_updated_at: now,
    };
    changed(text, task)
}

fn changed(text: String, task: AsyncTask) -> ToolOutput {
    ToolOutput { command: Update::none().set::<AsyncTasks>(task).into(), ..text.into() }
}

fn not_started(error: RemoteError) -> ToolError {
    ToolError::Failed(format!(
        "{error}; nothing is known to run there. Start it again later, or do it yourself"
    ))
}

fn failed(error: RemoteError) -> ToolError {
    ToolError::Failed(format!("{error}; the task is not lost: look after it later"))
}

fn task_of(cx: &ToolContext<'_>, id: &str) -> Result<AsyncTask, ToolError> {
    let tasks = cx.state.get::<AsyncTasks>();
    tasks.and_then(|tasks| tasks.get(id)).cloned().ok_or_else(|| {
        let known: Vec<&str> = tasks.iter().flat_map(|tasks| tasks.keys()).map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        ToolError::Failed(format!("there is no task `{}`; there is: {known}", id.escape_debug()))
    })
}

/// The same thread for the same call, so that one that was started is found again.
fn thread_of(effect: Option<&EffectKey>) -> String {
    let Some(key) = effect.map(EffectKey::as_str).filter(|key| key.len() >= 32) else {
        return ThreadId::generate().to_string();
    };
    let part = |from: usize, to: usize| key.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

#[async_trait]
impl Tool for Asynchronous {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    async fn call(&self, cx: &ToolContext<'_>, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let args: Args =
            serde_json::from_value(args.into()).map_err(|error| ToolError::Arguments(error.to_string()))?;
        match self.verb {
            Verb::Start => self.start(cx, args).await,
            Verb::Check => self.check(cx, task_of(cx, &args.task_id)?).await,
            Verb::Update => self.update(cx, task_of(cx, &args.task_id)?, &args.message).await,
            Verb::Cancel => self.cancel(cx, task_of(cx, &args.task_id)?).await,
            Verb::List => Ok(self.list(cx, args.status_filter.as_deref()).await),
        }
    }

    async fn reconcile(
        &self,
        cx: &ToolContext<'_>,
        args: &Map<String, Value>,
        _foreseen: Option<&Value>,
    ) -> Reconciled {
        let agent = args.get("subagent_type").and_then(Value::as_str).unwrap_or_default();
        if self.verb != Verb::Start {
            // Saying it twice is for the agent to decide.
            return Reconciled::Unknown;
        }
        let thread = thread_of(cx.effect);
        match self.remote.newest(agent, &thread).await {
            Ok(Some(run)) => Reconciled::Done(started(cx, agent.to_owned(), thread, run)),
            Ok(None) => Reconciled::NotDone,
            Err(_) => Reconciled::Unknown,
        }
    }
}

fn spec(verb: Verb, remote: &dyn RemoteAgents) -> ToolSpec {
    let text = |about: &str| json!({"type": "string", "description": about});
    let task_id = || text("The task's id, as start_async_task gave it.");
    let (name, description, properties, required, effect) = match verb {
        Verb::Start => {
            let agents = remote.agents();
            let names: Vec<&String> = agents.iter().map(|(name, _)| name).collect();
            let list: String = agents.iter().map(|(name, about)| format!("\n- {name}: {about}")).collect();
            let about = "Start a task with an agent on another server. It runs by itself and goes on when you are done; \
                         it sees nothing of this conversation, so the description must say everything. Who there is:";
            let who = json!({"type": "string", "enum": names});
            let properties = json!({"description": text("The whole task."), "subagent_type": who});
            ("start_async_task", format!("{about}{list}"), properties, json!(["description", "subagent_type"]), Effect::Once)
        }
        Verb::Check => (
            "check_async_task",
            "Ask how a task on another server stands, and for its result. Do not ask again and again in one turn.".to_owned(),
            json!({"task_id": task_id()}),
            json!(["task_id"]),
            Effect::Idempotent,
        ),
        Verb::Update => (
            "update_async_task",
            "Tell a task on another server something more; what it is doing is interrupted for it.".to_owned(),
            json!({"task_id": task_id(), "message": text("What to tell it.")}),
            json!(["task_id", "message"]),
            Effect::Once,
        ),
        Verb::Cancel => (
            "cancel_async_task",
            "Stop a task on another server.".to_owned(),
            json!({"task_id": task_id()}),
            json!(["task_id"]),
            Effect::Idempotent,
        ),
        Verb::List => (
            "list_async_tasks",
            "List the tasks on other servers and how they stand.".to_owned(),
            json!({"status_filter": text("running, success, error, cancelled or all; all without it.")}),
            json!([]),
            Effect::Idempotent,
        ),
    };
    let input_schema = json!({"type": "object", "properties": properties, "required": required});
    ToolSpec { name: name.to_owned(), description, input_schema, effect }
}
