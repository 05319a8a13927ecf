//! An agent: a model, tools, a chain of middleware and a schema, checked and frozen.
//!
//! Invariant: `build` is the only way to make one, and a built agent never changes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hart_types::{CheckpointId, ThreadId};
use serde_json::{Map, Value};

use crate::interrupt::Paused;
use crate::run::{Execution, Left};
use crate::state::check_messages;
use crate::{
    BuildError, ChatModel, Checkpointer, Messages, Middleware, ModelSettings, RunContext, RunError, RunInput,
    RunReport, Schema, Snapshot, State, StateError, StateKey, Step, Tool, ToolSpec, Update,
};

/// A copy shares its parts.
#[derive(Clone)]
pub struct Agent {
    pub(crate) name: Arc<str>,
    pub(crate) signature: Arc<str>,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) system: Option<Arc<str>>,
    pub(crate) settings: ModelSettings,
    pub(crate) chain: Arc<[Arc<dyn Middleware>]>,
    pub(crate) tools: Arc<BTreeMap<String, Arc<dyn Tool>>>,
    /// Unadvertised names, each with the name of its tool.
    pub(crate) aliases: Aliases,
    pub(crate) specs: Arc<[Arc<ToolSpec>]>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) checkpointer: Option<Arc<dyn Checkpointer>>,
    pub(crate) recursion_limit: u32,
    pub(crate) hook_timeout: Duration,
}

impl Agent {
    pub fn builder(model: Arc<dyn ChatModel>) -> AgentBuilder {
        AgentBuilder {
            name: "agent".into(),
            signature: None,
            model,
            system: None,
            settings: ModelSettings::default(),
            chain: Vec::new(),
            tools: Vec::new(),
            checkpointer: None,
            recursion_limit: 1000,
            hook_timeout: Duration::from_secs(600),
            declared: Vec::new(),
        }
    }

    /// Runs to the end, a jump to the end, a question, an error or a cancellation. The report always holds the state
    /// reached. The input is an [`Update`] to the thread, or a [`crate::Resume`] that answers what it asked.
    pub async fn run(&self, input: impl Into<RunInput>, cx: &RunContext) -> RunReport {
        match self.enter(cx).await {
            Ok((opened, left)) => {
                cx.set_aliases(&self.aliases);
                cx.set_log(self.checkpointer.as_ref());
                Execution::new(self, cx, opened, left).run(input.into()).await
            }
            Err(error) => RunReport { outcome: Err(error), values: self.snapshot(State::default()) },
        }
    }

    /// The same with its steps elsewhere.
    pub(crate) fn keeping_steps_in(&self, log: Option<Arc<dyn Checkpointer>>) -> Self {
        Self { checkpointer: log, ..self.clone() }
    }

    /// Reads a client's JSON as input for [`Agent::run`].
    pub fn input(&self, values: Map<String, Value>) -> Result<Update, StateError> {
        if let Some(said) = values.get(Messages::NAME) {
            check_messages(said).map_err(|source| StateError::Shape { name: Messages::NAME, source })?;
        }
        self.schema.parse(values)
    }

    /// The thread's state as its log tells it.
    pub async fn load(&self, thread: &ThreadId) -> Result<State, RunError> {
        Ok(self.open(thread, None).await?.state)
    }

    /// The state to start from, and what an earlier attempt of the run left there.
    async fn enter(&self, cx: &RunContext) -> Result<(Opened, Option<Left>), RunError> {
        if cx.attempt > 1
            && let Some(checkpointer) = &self.checkpointer
        {
            let steps = checkpointer.load(&cx.thread_id, None).await.map_err(RunError::Checkpoint)?;
            if let Some(left) = Left::of(&steps, &cx.run_id) {
                return Ok((self.opened(steps), Some(left)));
            }
        }
        Ok((self.open(&cx.thread_id, cx.from.as_ref()).await?, None))
    }

    /// The thread at a step, or at the newest.
    pub(crate) async fn open(
        &self,
        thread: &ThreadId,
        at: Option<&CheckpointId>,
    ) -> Result<Opened, RunError> {
        let Some(checkpointer) = &self.checkpointer else { return Ok(Opened::default()) };
        Ok(self.opened(checkpointer.load(thread, at).await.map_err(RunError::Checkpoint)?))
    }

    fn opened(&self, mut steps: Vec<Step>) -> Opened {
        let (mut head, mut parent, mut next) = (None, None, None);
        if let Some(last) = steps.last_mut() {
            (head, parent, next) = (Some(last.id.clone()), last.parent.clone(), last.next.take());
        }
        Opened { state: self.fold(steps), head, parent, next }
    }

    /// The state that steps lead to.
    pub fn fold(&self, steps: impl IntoIterator<Item = Step>) -> State {
        self.fold_onto(State::default(), steps)
    }

    /// As [`Agent::fold`], from a state that earlier steps came to.
    pub fn fold_onto(&self, mut state: State, steps: impl IntoIterator<Item = Step>) -> State {
        for step in steps {
            self.schema.replay(&mut state, step.writes);
        }
        state
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the model is told about the tools, by name.
    pub fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.specs
    }

    /// Whether a tool goes by this name without being called so.
    pub fn is_alias(&self, name: &str) -> bool {
        self.aliases.contains_key(name)
    }

    /// The middlewares, outermost first.
    pub fn chain(&self) -> impl Iterator<Item = &'static str> {
        self.chain.iter().map(|middleware| middleware.name())
    }

    /// A state as clients may see it: what was said while calls wait is there, though its place is not decided yet.
    pub fn snapshot(&self, mut state: State) -> Snapshot {
        if let Some(Some(pause)) = state.get::<Paused>()
            && !pause.held.is_empty()
        {
            let held = pause.held.clone();
            self.schema.replay(&mut state, held);
        }
        Snapshot { state, schema: Arc::clone(&self.schema) }
    }
}

/// A thread as a step of its log left it.
#[derive(Default)]
pub(crate) struct Opened {
    pub(crate) state: State,
    pub(crate) head: Option<CheckpointId>,
    /// The step before it.
    pub(crate) parent: Option<CheckpointId>,
    /// What was ahead there.
    pub(crate) next: Option<String>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.name)
            .field("model", &self.model.profile().name)
            .field("tools", &self.tools.keys().collect::<Vec<_>>())
            .field("chain", &self.chain().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Full takeover: exactly this chain, in this order.
#[must_use = "call `build`"]
pub struct AgentBuilder {
    name: Arc<str>,
    signature: Option<Arc<str>>,
    model: Arc<dyn ChatModel>,
    system: Option<Arc<str>>,
    settings: ModelSettings,
    chain: Vec<Arc<dyn Middleware>>,
    tools: Vec<Arc<dyn Tool>>,
    checkpointer: Option<Arc<dyn Checkpointer>>,
    recursion_limit: u32,
    hook_timeout: Duration,
    declared: Vec<Declare>,
}

type Declare = fn(&mut Schema) -> Result<(), StateError>;

impl AgentBuilder {
    /// Who the model's calls come from; recordings are keyed by it.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The `name` of its answers, where it is not its own.
    pub fn signature(mut self, name: impl Into<Arc<str>>) -> Self {
        self.signature = Some(name.into());
        self
    }

    pub fn system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.system = Some(prompt.into());
        self
    }

    pub fn settings(mut self, settings: ModelSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The chain, outermost first.
    pub fn middleware(mut self, chain: Vec<Arc<dyn Middleware>>) -> Self {
        self.chain = chain;
        self
    }

    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    pub fn checkpointer(mut self, checkpointer: Arc<dyn Checkpointer>) -> Self {
        self.checkpointer = Some(checkpointer);
        self
    }

    /// How many model calls and tool batches a run may take.
    pub fn recursion_limit(mut self, limit: u32) -> Self {
        self.recursion_limit = limit;
        self
    }

    /// How long a hook of its own may take; wrappers take as long as what they wrap.
    pub fn hook_timeout(mut self, limit: Duration) -> Self {
        self.hook_timeout = limit;
        self
    }

    /// Declares a state key that no middleware owns.
    pub fn state<K: StateKey>(mut self) -> Self {
        self.declared.push(|schema| schema.declare::<K>().map(|_| ()));
        self
    }

    pub fn build(self) -> Result<Agent, BuildError> {
        let mut schema = Schema::default();
        schema.declare::<Messages>()?.declare::<Paused>()?;
        for declare in self.declared {
            declare(&mut schema)?;
        }
        for middleware in &self.chain {
            middleware.declare(&mut schema)?;
        }
        let (tools, specs, aliases) = merge_tools(self.tools, &self.chain)?;
        Ok(Agent {
            signature: self.signature.unwrap_or_else(|| Arc::clone(&self.name)),
            name: self.name,
            model: self.model,
            system: self.system,
            settings: self.settings,
            chain: self.chain.into(),
            tools: Arc::new(tools),
            aliases: Arc::new(aliases),
            specs,
            schema: Arc::new(schema),
            checkpointer: self.checkpointer,
            recursion_limit: self.recursion_limit,
            hook_timeout: self.hook_timeout,
        })
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

pub(crate) type Aliases = Arc<BTreeMap<&'static str, String>>;

type Tools = BTreeMap<String, Arc<dyn Tool>>;
type ToolTable = (Tools, Arc<[Arc<ToolSpec>]>, BTreeMap<&'static str, String>);

/// The caller's tools first, then each middleware's; the model sees them in this order.
fn merge_tools(own: Vec<Arc<dyn Tool>>, chain: &[Arc<dyn Middleware>]) -> Result<ToolTable, BuildError> {
    let own = own.into_iter().map(|tool| ("the caller", tool));
    let contributed = chain.iter().flat_map(|m| m.tools().into_iter().map(|tool| (m.name(), tool)));
    let mut table: BTreeMap<String, (&str, Arc<dyn Tool>)> = BTreeMap::new();
    let mut specs = Vec::new();
    for (origin, tool) in own.chain(contributed) {
        let spec = Arc::clone(tool.spec());
        if let Some((first, _)) = table.get(&spec.name) {
            let (first, second) = ((*first).to_owned(), origin.to_owned());
            return Err(BuildError::DuplicateTool { name: spec.name.clone(), first, second });
        }
        table.insert(spec.name.clone(), (origin, tool));
        specs.push(spec);
    }
    let aliases = merge_aliases(&table)?;
    Ok((table.into_iter().map(|(name, (_, tool))| (name, tool)).collect(), specs.into(), aliases))
}

/// An alias gives way to a tool of that name; between two aliases there is no telling which one a model means.
fn merge_aliases(
    table: &BTreeMap<String, (&str, Arc<dyn Tool>)>,
) -> Result<BTreeMap<&'static str, String>, BuildError> {
    let mut aliases: BTreeMap<&'static str, String> = BTreeMap::new();
    for (name, (_, tool)) in table {
        for alias in tool.aliases().iter().copied().filter(|alias| !table.contains_key(*alias)) {
            if let Some(other) = aliases.insert(alias, name.clone()) {
                let (first, second) = (format!("an alias of `{other}`"), format!("an alias of `{name}`"));
                return Err(BuildError::DuplicateTool { name: alias.to_owned(), first, second });
            }
        }
    }
    Ok(aliases)
}
