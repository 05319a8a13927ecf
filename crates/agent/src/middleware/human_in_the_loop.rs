//! Asks a person before certain tool calls run.
//!
//! Invariant: no call of an answer runs before every call of it that needs a decision has one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hart_kernel::{
    Command, HookError, HookResult, MessageList, MessageWrites, Middleware, ReduceError, RunContext, Schema,
    Scope, State, StateError, StateKey, Update, async_trait,
};
use hart_sandbox::{PermissionMode, Permissions, SandboxProvider};
use hart_tools::path_access;
use hart_types::{Body, Message, MessageId, ToolCall, ToolStatus};
use serde::{Deserialize, Serialize};

use crate::approval::{
    ActionRequest, Decision, EditedAction, InterruptOn, ToolReview, batched, decide, positional, single,
};
use crate::call_limits::dropped_behind;

/// Pauses the run when the model calls a tool that a person wants to decide about.
///
/// All calls of an answer that need a decision are asked about at once, before any tool of that answer runs; those
/// that need none wait too. The question is an interrupt with LangChain's value (`action_requests` and
/// `review_configs`), answered with `{"decisions": […]}` by position. With [`HumanInTheLoop::per_call`] each call is an
/// interrupt of its own (`tool_approval`, with a `response_schema`), answered by its id.
///
/// - `approve`: the call runs.
/// - `edit`: the model's message keeps the call as it was; the edited one runs, and its result begins with a note.
/// - `reject`: the model reads an error with the reason, and goes on.
/// - `respond`: the tool does not run; the person's message is its result.
///
/// An answer that does not fit fails the run with a message that says why, and the question stays open. Nobody is asked
/// about calls that will not run: those whose arguments could not be read, or that were cut off or refused in the
/// middle, those of a loop that was stopped, those beyond what an answer may have. Calls that share an id are given ids
/// of their own.
///
/// Rules about paths with the mode `interrupt` ask in the same way; see [`HumanInTheLoop::with_permissions`].
///
/// `HumanInTheLoop::default()` asks about the built-in tools that change something: `bash`, `write_file`,
/// `str_replace`, `delete`.
#[derive(Clone, Debug)]
pub struct HumanInTheLoop {
    interrupt_on: InterruptOn,
    per_call: bool,
    paths: Option<AskingPaths>,
}

/// Rules about paths, and where paths are looked up.
#[derive(Clone, Debug)]
struct AskingPaths {
    permissions: Permissions,
    sandboxes: Arc<dyn SandboxProvider>,
}

impl HumanInTheLoop {
    pub fn new(interrupt_on: InterruptOn) -> Self {
        Self { interrupt_on, per_call: false, paths: None }
    }

    /// One question per call instead of one per answer.
    #[must_use]
    pub fn per_call(mut self) -> Self {
        self.per_call = true;
        self
    }

    /// Asks about file tools where a rule has the mode `interrupt`: `ls`, `glob`, `grep` and `delete` when what they
    /// search or remove may contain such a path, the others when the path or what it links to is one.
    #[must_use]
    pub fn with_permissions(mut self, permissions: Permissions, sandboxes: Arc<dyn SandboxProvider>) -> Self {
        self.paths = permissions.asks().then_some(AskingPaths { permissions, sandboxes });
        self
    }

    /// What somebody asked for, with the rules about paths that ask too. `None` if nobody is ever asked.
    pub(crate) fn combined(
        wanted: Option<Self>,
        rules: Option<Permissions>,
        sandboxes: Option<Arc<dyn SandboxProvider>>,
    ) -> Option<Self> {
        match (rules.filter(Permissions::asks), sandboxes) {
            (Some(rules), Some(sandboxes)) => {
                let review = wanted.unwrap_or_else(|| Self::new(InterruptOn::default()));
                Some(review.with_permissions(rules, sandboxes))
            }
            _ => wanted,
        }
    }

    /// The tools it is told to ask about.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.interrupt_on.names()
    }

    async fn request(&self, cx: &RunContext, call: &ToolCall) -> Result<Option<ActionRequest>, HookError> {
        let request = |review: &ToolReview| ActionRequest {
            call: call.clone(),
            description: review.describes(call),
            allowed: review.allowed().to_vec(),
        };
        if let Some(review) = self.interrupt_on.review(call, |name| cx.tool_name(name).to_owned()) {
            return Ok(Some(request(review)));
        }
        let Some(paths) = &self.paths else { return Ok(None) };
        let why = paths.reason(cx, call).await?;
        Ok(why.map(|why| request(&ToolReview::new().description(why))))
    }

    fn ask(
        &self,
        cx: &RunContext,
        turn: &Turn,
        requests: &[ActionRequest],
    ) -> Result<Vec<Decision>, HookError> {
        let failed = |error: crate::approval::ApprovalError| HookError::Other(error.into());
        if self.per_call {
            let question =
                |request: &ActionRequest| single(&turn.subject(std::slice::from_ref(request)), request);
            let answers = cx.interrupt_all(requests.iter().map(question).collect())?;
            let decisions = answers.iter().zip(requests).map(|(answer, request)| decide(answer, request));
            return decisions.collect::<Result<_, _>>().map_err(failed);
        }
        let answer = cx.interrupt(batched(&turn.subject(requests), requests))?;
        positional(&answer, requests).map_err(failed)
    }
}

impl Default for HumanInTheLoop {
    fn default() -> Self {
        let tools = ["bash", "write_file", "str_replace", "delete"];
        Self::new(tools.into_iter().fold(InterruptOn::default(), |on, name| on.tool(name, ToolReview::new())))
    }
}

#[async_trait]
impl Middleware for HumanInTheLoop {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<EditedCalls>()?;
        Ok(())
    }

    async fn after_model(&self, cx: &RunContext, state: &State) -> HookResult {
        let Some(turn) = Turn::open(state.messages()) else { return Ok(Command::none()) };
        let mut requests = Vec::new();
        // What stands for calls that are too many does not run either.
        for call in turn.calls.iter().filter(|call| dropped_behind(call).is_none()) {
            requests.extend(self.request(cx, call).await?);
        }
        if requests.is_empty() {
            return Ok(Command::none());
        }
        let decisions = self.ask(cx, &turn, &requests)?;
        Ok(turn.obey(requests, decisions).into())
    }
}

impl AskingPaths {
    /// Why a call must be asked about, if a rule says so.
    async fn reason(&self, cx: &RunContext, call: &ToolCall) -> Result<Option<String>, HookError> {
        for access in path_access(cx.tool_name(&call.name), &call.args) {
            let verb = access.operation.participle();
            let Some(text) = access.path else {
                if access.whole_tree {
                    return Ok(Some(format!("Files may be {verb} about which a rule asks.")));
                }
                continue;
            };
            let sandbox = self.sandboxes.acquire(&cx.thread_id, &cx.user_id).await;
            let sandbox = sandbox.map_err(|error| HookError::Other(error.into()))?;
            // What is no path, or leads nowhere, the tool itself refuses.
            let Ok(path) = sandbox.path(text) else { continue };
            let target = sandbox.resolve(&path).await.unwrap_or_else(|_| path.clone());
            let asks = |path| self.permissions.decide(access.operation, path) == PermissionMode::Interrupt;
            let below = |path| access.whole_tree && self.permissions.asks_below(access.operation, path);
            if asks(&path) || asks(&target) || below(&path) || below(&target) {
                return Ok(Some(format!("`{target}` would be {verb}, about which a rule asks.")));
            }
        }
        Ok(None)
    }
}

/// The calls of the last answer that nobody has answered yet.
struct Turn {
    message: Arc<Message>,
    calls: Vec<ToolCall>,
    /// Some calls shared an id; the message must say the new ones.
    renamed: bool,
}

impl Turn {
    fn open(messages: &MessageList) -> Option<Self> {
        let mut answered = BTreeSet::new();
        for message in messages.iter().rev() {
            match &message.body {
                Body::Tool(result) => {
                    answered.insert(result.tool_call_id.as_str().to_owned());
                }
                Body::Ai(ai) => {
                    let open =
                        |call: &&ToolCall| call.id.as_ref().is_some_and(|id| !answered.contains(id.as_str()));
                    let calls: Vec<ToolCall> = ai.tool_calls.iter().filter(open).cloned().collect();
                    let (calls, renamed) = with_ids_of_their_own(calls);
                    return Some(Self { message: Arc::clone(message), calls, renamed })
                        .filter(|turn| !turn.calls.is_empty());
                }
                Body::Human => return None,
                _ => {}
            }
        }
        None
    }

    /// What a question is about: other calls make it another question, so that an answer never goes to a wrong one.
    fn subject(&self, requests: &[ActionRequest]) -> String {
        let message = self.message.id.as_ref().map_or("", MessageId::as_str);
        let mut subject = format!("approval:{message}");
        for id in requests.iter().filter_map(|request| request.call.id.as_ref()) {
            subject.push(':');
            subject.push_str(id.as_str());
        }
        subject
    }

    fn obey(&self, requests: Vec<ActionRequest>, decisions: Vec<Decision>) -> Update {
        let mut results = Vec::new();
        let mut edits = BTreeMap::new();
        for (request, decision) in requests.into_iter().zip(decisions) {
            let ActionRequest { call, .. } = request;
            let Some(id) = &call.id else { continue };
            tracing::info!(tool = %call.name, call = %id, decision = %decision.kind(), "a person decided about a call");
            match decision {
                Decision::Approve => {}
                Decision::Edit { edited_action } => {
                    let edit = EditedCall { message: self.message.id.clone(), action: edited_action };
                    edits.insert(id.to_string(), Some(edit));
                }
                Decision::Reject { message } => {
                    results.push(Message::tool(
                        id,
                        &call.name,
                        ToolStatus::Error,
                        rejection(&call.name, message.as_deref()),
                    ));
                }
                Decision::Respond { message } => {
                    results.push(Message::tool(id, &call.name, ToolStatus::Success, message));
                }
            }
        }
        let mut update = Update::none();
        if self.renamed {
            update = update.messages(self.renamed_message());
        }
        if !edits.is_empty() {
            update = update.set::<EditedCalls>(edits);
        }
        if !results.is_empty() {
            update = update.messages(MessageWrites::append(results));
        }
        update
    }

    fn renamed_message(&self) -> Message {
        let mut message = Message::clone(&self.message);
        if let Body::Ai(ai) = &mut message.body {
            let (calls, _) = with_ids_of_their_own(std::mem::take(&mut ai.tool_calls));
            ai.tool_calls = calls;
        }
        message
    }
}

/// A result answers every call of its id; where two calls share one, deciding about them apart needs two ids.
fn with_ids_of_their_own(mut calls: Vec<ToolCall>) -> (Vec<ToolCall>, bool) {
    let mut taken = BTreeSet::new();
    let mut renamed = false;
    for call in &mut calls {
        let Some(id) = &mut call.id else { continue };
        if !taken.insert(id.to_string()) {
            let fresh = (2..).map(|n| format!("{id}-{n}")).find(|fresh| !taken.contains(fresh));
            let fresh = fresh.unwrap_or_default();
            taken.insert(fresh.clone());
            *id = fresh.into();
            renamed = true;
        }
    }
    (calls, renamed)
}

fn rejection(tool: &str, reason: Option<&str>) -> String {
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(" The reason given: {reason}")).unwrap_or_default();
    format!(
        "Error: a person rejected this call of `{tool}`, so it was not run.{reason}\nDo not repeat it unchanged; find \
         another way, or ask what is wanted."
    )
}

/// Calls that a person changed, by id, until they have run.
#[derive(Debug)]
pub(crate) struct EditedCalls;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EditedCall {
    /// Some servers use an id again in the next answer; the edit is for this one.
    pub(crate) message: Option<MessageId>,
    #[serde(flatten)]
    pub(crate) action: EditedAction,
}

impl StateKey for EditedCalls {
    type Value = BTreeMap<String, EditedCall>;
    /// `None` forgets one.
    type Update = BTreeMap<String, Option<EditedCall>>;
    const NAME: &'static str = "hitl_edited_tool_calls";
    const SCOPE: Scope = Scope::Private;

    fn reduce(current: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        let mut all = current.unwrap_or_default();
        for (id, edit) in update {
            match edit {
                Some(edit) => all.insert(id, edit),
                None => all.remove(&id),
            };
        }
        Ok(all)
    }
}
