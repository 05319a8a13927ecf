//! What an operator may want to know of all runs together: counts, and traces.
//!
//! Invariant: it is told what runs say to their clients and nothing else, and it never slows a run.

mod metrics;
mod span;
mod traces;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hart_kernel::{AgentEvent, Clock, Timestamp};
use hart_types::{Body, Message, RunStatus, ToolStatus, UsageMetadata};
use serde_json::Value;
use uuid::Uuid;

pub use metrics::{BUCKETS, Metrics, Observed};
pub use span::{Attribute, Span, SpanKind};
pub use traces::{NotExported, TraceExporter};
pub(crate) use traces::{Traces, export};

use crate::{Failure, Run, Totals};

/// The provider's own name of the model.
const ANSWERED_BY: &str = "gen_ai.response.model";

/// Watches one run.
pub(crate) struct RunWatch {
    metrics: Arc<Metrics>,
    traces: Arc<Traces>,
    clock: Arc<dyn Clock>,
    trace: u128,
    agent: String,
    thread: String,
    run: String,
    started: Timestamp,
    open: Mutex<Open>,
}

/// What has begun and not ended, by the agent it belongs to.
#[derive(Default)]
struct Open {
    asked: HashMap<Vec<String>, Asked>,
    called: HashMap<String, Span>,
    /// What calls are called by whoever works inside of them.
    inside: HashMap<String, u64>,
}

/// A model that was asked.
struct Asked {
    span: Span,
    since: Instant,
    usage: UsageMetadata,
}

impl RunWatch {
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        traces: Arc<Traces>,
        clock: Arc<dyn Clock>,
        run: &Run,
        agent: &str,
    ) -> Self {
        metrics.run_started();
        Self {
            metrics,
            traces,
            started: clock.now(),
            clock,
            trace: Uuid::parse_str(run.id.as_str()).map_or(1, |id| id.as_u128()),
            agent: agent.to_owned(),
            thread: run.thread.to_string(),
            run: run.id.to_string(),
            open: Mutex::default(),
        }
    }

    /// `namespace` says which agent inside of which calls speaks; `inside` is what a call that begins is called by
    /// whoever works inside of it.
    pub(crate) fn hear(&self, namespace: &[String], event: &AgentEvent, inside: Option<String>) {
        match event {
            AgentEvent::ModelStarted { model, .. } => self.model_asked(namespace, model),
            AgentEvent::MessageChunk(chunk) => self.model_spoke(namespace, chunk),
            AgentEvent::Updates { node, .. } if &**node == "model" => {
                if let Some(asked) = self.open().asked.remove(namespace) {
                    self.model_done(asked, None);
                }
            }
            AgentEvent::ToolStarted(call) => {
                let id = call.id.as_ref().map(ToString::to_string).unwrap_or_default();
                let mut span = self.span(format!("execute_tool {}", call.name), self.parent(namespace));
                span.attributes.push(("gen_ai.operation.name", "execute_tool".into()));
                span.attributes.push(("gen_ai.tool.name", call.name.as_str().into()));
                span.attributes.push(("gen_ai.tool.call.id", id.as_str().into()));
                let mut open = self.open();
                open.inside.extend(inside.map(|inside| (inside, span.id)));
                open.called.insert(id, span);
            }
            AgentEvent::ToolFinished { result, .. } => self.tool_done(result),
            _ => {}
        }
    }

    /// The run is over, and so is whatever it was doing.
    pub(crate) fn ended(&self, status: RunStatus, totals: &Totals, error: Option<&Failure>) {
        self.metrics.run_ended(status, totals);
        let Open { asked, called, .. } = std::mem::take(&mut *self.open());
        let cut_off = error.map_or("cancelled", |failure| failure.error.as_str());
        for asked in asked.into_values() {
            self.model_done(asked, Some(cut_off));
        }
        for mut span in called.into_values() {
            span.error = Some(cut_off.to_owned());
            self.close(span);
        }
        let mut root = Span::new(self.trace, ROOT, format!("invoke_agent {}", self.agent), self.started);
        root.attributes.extend([
            ("gen_ai.operation.name", "invoke_agent".into()),
            ("gen_ai.agent.name", self.agent.as_str().into()),
            ("gen_ai.conversation.id", self.thread.as_str().into()),
            ("hart.run.id", self.run.as_str().into()),
            ("hart.run.status", status.as_str().into()),
            ("gen_ai.usage.input_tokens", totals.usage.input_tokens.into()),
            ("gen_ai.usage.output_tokens", totals.usage.output_tokens.into()),
        ]);
        root.error = error.map(|failure| failure.error.clone());
        self.close(root);
    }

    /// `model` is what the operator calls it.
    fn model_asked(&self, namespace: &[String], model: &str) {
        let mut span = self.span(format!("chat {model}"), self.parent(namespace));
        span.kind = SpanKind::Client;
        span.attributes.push(("gen_ai.operation.name", "chat".into()));
        span.attributes.push(("gen_ai.request.model", model.into()));
        let asked = Asked { span, since: Instant::now(), usage: UsageMetadata::default() };
        self.open().asked.insert(namespace.to_vec(), asked);
    }

    fn model_spoke(&self, namespace: &[String], chunk: &Message) {
        let mut open = self.open();
        let Some(asked) = open.asked.get_mut(namespace) else { return };
        if let Some(model) = chunk.response_metadata.get("model_name").and_then(Value::as_str)
            && !asked.span.attributes.iter().any(|(key, _)| *key == ANSWERED_BY)
        {
            asked.span.attributes.push((ANSWERED_BY, model.into()));
        }
        if let Body::AiChunk(chunk) = &chunk.body
            && let Some(usage) = &chunk.ai.usage
        {
            asked.usage.add(usage);
        }
    }

    fn model_done(&self, asked: Asked, error: Option<&str>) {
        let Asked { mut span, since, usage } = asked;
        self.metrics.model_answered(since.elapsed());
        span.attributes.push(("gen_ai.usage.input_tokens", usage.input_tokens.into()));
        span.attributes.push(("gen_ai.usage.output_tokens", usage.output_tokens.into()));
        span.error = error.map(str::to_owned);
        self.close(span);
    }

    fn tool_done(&self, message: &Message) {
        let Some(result) = message.as_tool_result() else { return };
        let called = self.open().called.remove(result.tool_call_id.as_str());
        if let Some(mut span) = called {
            if result.status == ToolStatus::Error {
                span.error = Some("tool_error".to_owned());
            }
            self.close(span);
        }
    }

    fn close(&self, mut span: Span) {
        span.end = self.clock.now();
        if let Some(error) = &span.error {
            span.attributes.push(("error.type", error.as_str().into()));
        }
        self.traces.record(span);
    }

    fn span(&self, name: String, parent: u64) -> Span {
        let mut span = Span::new(self.trace, random_id(), name, self.clock.now());
        span.parent = Some(parent);
        span
    }

    /// The call an agent works inside of, or the run itself.
    fn parent(&self, namespace: &[String]) -> u64 {
        let open = self.open();
        namespace.last().and_then(|call| open.inside.get(call)).copied().unwrap_or(ROOT)
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Spans of a trace are told apart by it; the run's own is the first.
const ROOT: u64 = 1;

fn random_id() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    (high ^ low).max(2)
}

impl std::fmt::Debug for RunWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunWatch").field("run", &self.run).finish_non_exhaustive()
    }
}
