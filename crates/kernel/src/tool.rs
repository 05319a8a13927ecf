//! The tool port: an action the model may ask for.
//!
//! Invariant: a `ToolError` is read by the model. It says what went wrong and what to try instead.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use async_trait::async_trait;
use hart_types::{Content, ToolCallId};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{AgentEvent, Command, Effect, EffectKey, HookError, Interrupt, RunContext, State};

/// An action with a JSON schema. Implement [`TypedTool`] instead where the arguments are known at compile time.
#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Other names a model may call it by, because it knows them from elsewhere. They are not advertised, and a tool
    /// that really has such a name goes before.
    fn aliases(&self) -> &[&'static str] {
        &[]
    }

    async fn call(&self, cx: &ToolContext<'_>, args: Map<String, Value>) -> Result<ToolOutput, ToolError>;

    /// Whether every call asks a person ([`ToolContext::interrupt`]) before it does anything else. One that was cut off
    /// before anybody answered has then done nothing, and asks again.
    fn asks_first(&self) -> bool {
        false
    }

    /// What to note down before a call of [`Effect::Once`], for [`Tool::reconcile`].
    async fn foresee(&self, _cx: &ToolContext<'_>, _args: &Map<String, Value>) -> Option<Value> {
        None
    }

    /// Finds out what came of a call of [`Effect::Once`] that was begun and whose process is no more.
    async fn reconcile(
        &self,
        _cx: &ToolContext<'_>,
        _args: &Map<String, Value>,
        _foreseen: Option<&Value>,
    ) -> Reconciled {
        Reconciled::Unknown
    }

    /// The outcome of the call is safe: what was kept to find it out may go.
    async fn settled(&self, _cx: &ToolContext<'_>) {}
}

/// What is known of a call that was begun.
#[derive(Debug)]
pub enum Reconciled {
    /// It happened, and this is what it gave.
    Done(ToolOutput),
    /// It did not happen, or happening again changes nothing.
    NotDone,
    Unknown,
}

/// What the model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    /// What a second call would do. The model is not told.
    pub effect: Effect,
}

/// What a running tool can see.
#[derive(Clone, Copy)]
pub struct ToolContext<'a> {
    pub run: &'a RunContext,
    pub state: &'a State,
    pub call_id: &'a ToolCallId,
    /// Names the effect of this call, the same however often it is made; for services that keep such keys. None where
    /// nothing is kept of a run.
    pub effect: Option<&'a EffectKey>,
}

impl ToolContext<'_> {
    /// Says something while the work goes on, unless [`RunContext::mute_tools`] was called.
    pub async fn progress(&self, text: String) {
        if !self.run.tools_are_muted() {
            self.run.emit(AgentEvent::ToolProgress { call_id: self.call_id.clone(), text }).await;
        }
    }

    /// Asks a person; see [`RunContext::interrupt`].
    pub fn interrupt(&self, question: Interrupt) -> Result<Value, ToolError> {
        self.run.interrupt(question).map_err(|error| match error {
            HookError::Interrupt(question) => ToolError::Interrupt(question),
            other => ToolError::Fatal(other.into()),
        })
    }
}

impl std::fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext").field("call_id", self.call_id).finish_non_exhaustive()
    }
}

/// What a tool gives back: content for the model, an artifact for the client, a command for the loop.
#[derive(Debug, Default)]
pub struct ToolOutput {
    pub content: Content,
    pub artifact: Option<Value>,
    pub command: Command,
}

impl<T: Into<Content>> From<T> for ToolOutput {
    fn from(content: T) -> Self {
        Self { content: content.into(), ..Self::default() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("invalid arguments: {0}; call the tool again with arguments that match its schema")]
    Arguments(String),
    #[error("{0}")]
    Failed(String),
    /// The same call may succeed a little later: a network, a busy service.
    #[error("{0}; it may be different in a moment")]
    Transient(String),
    /// Not an error: a question is open, see [`ToolContext::interrupt`].
    #[error("waits for an answer")]
    Interrupt(Box<Interrupt>),
    /// The same with several questions at once.
    #[error("waits for answers")]
    Interrupts(Vec<Interrupt>),
    /// Not the model's business: ends the run.
    #[error(transparent)]
    Fatal(Box<dyn std::error::Error + Send + Sync>),
}

/// A tool whose arguments are a Rust type; field comments become the schema's descriptions.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a typed tool",
    note = "implement `TypedTool` (a name, a description, an `Args` type) and wrap it with `Typed::new`"
)]
pub trait TypedTool: Send + Sync + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    /// See [`Tool::aliases`].
    const ALIASES: &'static [&'static str] = &[];
    /// What a second call would do.
    const EFFECT: Effect = Effect::Once;
    /// See [`Tool::asks_first`].
    const ASKS_FIRST: bool = false;
    type Args: DeserializeOwned + JsonSchema + Send;

    async fn run(&self, cx: &ToolContext<'_>, args: Self::Args) -> Result<ToolOutput, ToolError>;

    /// See [`Tool::foresee`].
    async fn foresee(&self, _cx: &ToolContext<'_>, _args: Self::Args) -> Option<Value> {
        None
    }

    /// See [`Tool::reconcile`].
    async fn reconcile(
        &self,
        _cx: &ToolContext<'_>,
        _args: Self::Args,
        _foreseen: Option<&Value>,
    ) -> Reconciled {
        Reconciled::Unknown
    }

    /// See [`Tool::settled`].
    async fn settled(&self, _cx: &ToolContext<'_>) {}
}

/// Makes a [`TypedTool`] a [`Tool`].
#[derive(Debug)]
pub struct Typed<T> {
    tool: T,
    spec: Arc<ToolSpec>,
}

impl<T: TypedTool> Typed<T> {
    pub fn new(tool: T) -> Self {
        Self { tool, spec: spec_of::<T>() }
    }

    /// The same as a trait object, as lists of tools want it.
    pub fn shared(tool: T) -> Arc<dyn Tool> {
        Arc::new(Self::new(tool))
    }
}

/// A type says the same of itself every time; agents are built for every run, so it is asked once a process.
fn spec_of<T: TypedTool>() -> Arc<ToolSpec> {
    static TOLD: LazyLock<Mutex<HashMap<TypeId, Arc<ToolSpec>>>> = LazyLock::new(Mutex::default);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let spec = told.entry(TypeId::of::<T>()).or_insert_with(|| {
        Arc::new(ToolSpec {
            name: T::NAME.to_owned(),
            description: T::DESCRIPTION.to_owned(),
            input_schema: plain_schema::<T::Args>(),
            effect: T::EFFECT,
        })
    });
    Arc::clone(spec)
}

/// Inlined and without `$schema`, `title` and number formats: providers differ in what they accept beyond the basics.
fn plain_schema<A: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft07().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<A>();
    let mut schema = schema.to_value();
    strip(&mut schema);
    schema
}

fn strip(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for noise in ["title", "format"] {
                // A property may be called `title`; only the keyword (a string) goes.
                if map.get(noise).is_some_and(Value::is_string) {
                    map.shift_remove(noise);
                }
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

#[async_trait]
impl<T: TypedTool> Tool for Typed<T> {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn aliases(&self) -> &[&'static str] {
        T::ALIASES
    }

    fn asks_first(&self) -> bool {
        T::ASKS_FIRST
    }

    async fn call(&self, cx: &ToolContext<'_>, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let args =
            serde_json::from_value(Value::Object(args)).map_err(|e| ToolError::Arguments(e.to_string()))?;
        self.tool.run(cx, args).await
    }

    async fn foresee(&self, cx: &ToolContext<'_>, args: &Map<String, Value>) -> Option<Value> {
        let args = serde_json::from_value(Value::Object(args.clone())).ok()?;
        self.tool.foresee(cx, args).await
    }

    async fn reconcile(
        &self,
        cx: &ToolContext<'_>,
        args: &Map<String, Value>,
        foreseen: Option<&Value>,
    ) -> Reconciled {
        match serde_json::from_value(Value::Object(args.clone())) {
            Ok(args) => self.tool.reconcile(cx, args, foreseen).await,
            // Arguments that do not fit have done nothing, and do nothing again.
            Err(_) => Reconciled::NotDone,
        }
    }

    async fn settled(&self, cx: &ToolContext<'_>) {
        self.tool.settled(cx).await;
    }
}
