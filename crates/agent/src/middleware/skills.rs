//! Tells the model which skills there are, activates the one a user names, and holds it to the tools that allows.
//!
//! Invariant: within a run the list stays; a skill's text enters the conversation behind the message that asked for it,
//! so that all before it stays as it was.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{
    Command, Goto, HookError, HookResult, MessageWrites, Middleware, ModelNext, ModelRequest, ModelResponse,
    ReduceError, RunContext, Schema, Scope, State, StateError, StateKey, Tool, ToolNext, ToolOutcome,
    ToolRequest, Update, async_trait,
};
use hart_knowledge::skills::{Catalogue, Evolution, MANIFEST, Skill, TroubleKind, activation, native_tool};
use hart_tools::CommandEnv;
use hart_types::{Body, Message, MessageId, Secrets, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::escape;
use crate::reminder::{background, is_from_user, reminder};
use crate::skill_listing::{Listing, SkillsConfig, listing, needs_tools};
use crate::skill_lists::{SkillList, SkillLists};
use crate::skill_secrets::{bound, hidden, missing, with_note};

/// Skills are disclosed in steps: the prompt has their names and descriptions, within
/// [`SkillsConfig::prompt_tokens`]; the model reads a `SKILL.md` with `read_file` when a task fits, and what that names
/// when it needs it. Where not all fit into the budget, those that fit the thread's first question are described, the
/// others named or counted, and the tools `skill_search` and `describe_skill` are there.
///
/// A message that begins with `/name` activates a skill for the turn: its `SKILL.md` is put behind the message. A name
/// that is not there but close to one is answered at once, without a model. While a skill is active that says
/// `allowed-tools`, other tools are neither shown nor run; a skill is active too when the model has read its
/// `SKILL.md`. Several active skills allow what any of them allows; one that says nothing adds nothing. Subagents are held
/// to what is active where they were sent from, too.
///
/// What it offers is one [`Catalogue`]: skills that change meanwhile count from the next agent on.
#[derive(Clone, Debug, Default)]
pub struct Skills {
    catalogue: Arc<Catalogue>,
    /// Where what is active is looked up; for a subagent more than it is offered.
    known: Arc<Catalogue>,
    config: SkillsConfig,
    evolution: Option<Arc<Evolution>>,
    /// What is the same for every run.
    list: Arc<SkillList>,
    /// What came with the run for skills that ask for it.
    secrets: Secrets,
    /// Whether it is a subagent's: nobody names a skill to it, and what is active is so for all of its work.
    is_lent: bool,
}

impl Skills {
    pub fn new(catalogue: Arc<Catalogue>, config: SkillsConfig) -> Self {
        Self { known: Arc::clone(&catalogue), catalogue, config, ..Self::default() }
    }

    /// Lets the model write skills, with `skill_manage`.
    #[must_use]
    pub fn evolving(mut self, evolution: Evolution) -> Self {
        self.evolution = Some(Arc::new(evolution));
        self
    }

    /// Gives skills that ask for them what came with the run: to the environment of their commands alone. While there are
    /// any, the live output of tools is not shown.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Takes over what was written for an earlier agent with the same skills and the same model.
    #[must_use]
    pub fn sharing(mut self, lists: &SkillLists, model: &str) -> Self {
        self.list = lists.of(&self.catalogue, &self.config, model);
        self
    }

    /// Whether a skill may be used here.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.catalogue.usable(name).is_some()
    }

    /// For a subagent: those of these names, or all; none where it cannot read them. It writes none, and is held to what
    /// its sender is held to.
    pub(crate) fn lent(&self, names: Option<&[String]>, reads: bool) -> Self {
        let catalogue = match names {
            _ if !reads => Arc::default(),
            Some(names) => Arc::new(self.catalogue.only(names)),
            None => Arc::clone(&self.catalogue),
        };
        let (known, secrets) = (Arc::clone(&self.known), self.secrets.clone());
        Self { known, secrets, is_lent: true, ..Self::new(catalogue, self.config.clone()) }
    }

    /// What is done about a message that begins with `/name`.
    async fn activate(&self, cx: &RunContext, name: &str, message: &Message) -> Result<Command, HookError> {
        let active = |names: Vec<String>| Update::none().set::<ActiveSkills>(Active::begun(message, names));
        if let Some(skill) = self.catalogue.usable(name) {
            let text = match body(skill).await {
                Ok(body) => shown(skill, &body),
                Err(error) => format!("The skill `{name}` cannot be read: {error}. Tell the user."),
            };
            let text = match missing(&self.secrets, skill, cx.attempt > 1) {
                Some(note) => format!("{text}\n\n{note}"),
                None => text,
            };
            let writes = MessageWrites::append([background(NAME, text)]);
            return Ok(active(vec![name.to_owned()]).messages(writes).into());
        }
        let off = self.catalogue.get(name).is_some();
        let near = self.catalogue.near(name);
        let held =
            self.catalogue.troubles().iter().find(|one| one.kind == TroubleKind::Held && one.name == name);
        let answer = match (off, near.as_slice()) {
            _ if held.is_some() => {
                let why = held.map(|held| held.message.as_str()).unwrap_or_default();
                format!(
                    "The skill `/{name}` is held back: {why}. To let it be used: `hart skills approve {name}`."
                )
            }
            (true, _) => {
                format!("The skill `/{name}` is switched off. To switch it on: `hart skills enable {name}`.")
            }
            (false, []) => {
                // Perhaps no skill was meant: the model may make something of it.
                let text = format!("There is no skill called `{name}`. If the user meant one, say so.");
                let writes = MessageWrites::append([reminder(NAME, &text)]);
                return Ok(active(Vec::new()).messages(writes).into());
            }
            (false, near) => {
                let near: Vec<String> = near.iter().map(|near| format!("`/{near}`")).collect();
                format!("There is no skill `/{name}`. Did you mean {}?", near.join(" or "))
            }
        };
        let answer = Message::ai(answer).with_id(MessageId::generate());
        Ok(Command::from(active(Vec::new()).messages(answer)).goto(Goto::End))
    }

    /// The tools that may be used now; `None` is all.
    fn allowed(&self, state: &State) -> Option<BTreeSet<&str>> {
        let active = state.get::<ActiveSkills>()?;
        let skills = active.names.iter().filter_map(|name| self.known.usable(name));
        let lists: Vec<&Vec<String>> =
            skills.filter_map(|skill| skill.manifest.allowed_tools.as_ref()).collect();
        // Whoever asks for nothing does not lift what another one asks for.
        if lists.is_empty() {
            return None;
        }
        let listed = lists.into_iter().flatten().map(|tool| native_tool(tool));
        Some(ALWAYS.into_iter().chain(listed).collect())
    }

    fn list(&self, cx: &RunContext, request: &ModelRequest) -> (Listing, bool) {
        if let Some(whole) = self.list.whole.get() {
            return (whole.clone(), false);
        }
        let told = cx.scratch.get_or_default::<Told>();
        let mut told = told.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = request.state.get::<SkillsListed>();
        let listing = told.get_or_insert_with(|| {
            let messages = request.state.messages();
            let question =
                messages.iter().find(|message| is_from_user(message)).map(|message| message.text());
            let count = |text: &str| request.model.count_text(text);
            listing(&self.catalogue, &self.config, &question.unwrap_or_default(), kept, &count)
        });
        if listing.chosen.is_none() {
            let _ = self.list.whole.set(listing.clone());
        }
        let is_new = listing.chosen.is_some() && listing.chosen.as_ref() != kept;
        (listing.clone(), is_new)
    }
}

const NAME: &str = "skill";
/// What reads, finds and asks is there whatever a skill says: without it none could be followed or ended.
const ALWAYS: [&str; 4] = ["read_file", "skill_search", "describe_skill", "ask_clarification"];

#[async_trait]
impl Middleware for Skills {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<ActiveSkills>()?.declare::<SkillsListed>()?;
        Ok(())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = Vec::new();
        if *self.list.has_tools.get_or_init(|| needs_tools(&self.catalogue, &self.config)) {
            tools.extend(hart_tools::skill_tools(&self.catalogue));
        }
        tools.extend(self.evolution.iter().map(|evolution| hart_tools::skill_manage(Arc::clone(evolution))));
        tools
    }

    async fn before_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        if !self.secrets.is_empty() {
            // A value may come in pieces, which nobody would recognise.
            cx.mute_tools();
        }
        if cx.is_resuming() || self.is_lent {
            return Ok(Command::none());
        }
        let Some(message) = newest_question(state) else { return Ok(Command::none()) };
        let known = state.get::<ActiveSkills>();
        if known.is_some_and(|known| known.message.is_some() && known.message == message.id) {
            // A run that goes on after a crash: this was done before it.
            return Ok(Command::none());
        }
        match activation(&message.text()) {
            Some((name, _)) => self.activate(cx, name, &message).await,
            // What was active in the turn before is so no longer.
            None if known.is_some_and(|known| !known.names.is_empty()) => {
                Ok(Update::none().set::<ActiveSkills>(Active::begun(&message, Vec::new())).into())
            }
            None => Ok(Command::none()),
        }
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let (Listing { text, chosen }, is_new) = self.list(cx, &request);
        if let Some(text) = text {
            request.chat.system = Some(match request.chat.system.take() {
                Some(system) => self.list.behind(system, text),
                None => text,
            });
        }
        if let Some(allowed) = self.allowed(&request.state) {
            let shown = request.chat.tools.iter().filter(|tool| allowed.contains(tool.name.as_str()));
            request.chat.tools = shown.map(Arc::clone).collect();
        }
        let mut response = next.run(request).await?;
        if let Some(chosen) = chosen.filter(|_| is_new) {
            response.update.extend(Update::none().set::<SkillsListed>(chosen));
        }
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let tool = cx.tool_name(&request.call.name).to_owned();
        if let Some(allowed) = self.allowed(&request.state)
            && !allowed.contains(tool.as_str())
        {
            return Ok(refused(&request, &allowed));
        }
        let read = self.skill_read(&tool, &request);
        if !self.secrets.is_empty() && tool == BASH {
            cx.scratch.get_or_default::<CommandEnv>().set(bound(&self.secrets, self.trusted(&request.state)));
        }
        let mut outcome = next.run(request).await?;
        if let Some(message) = hidden(&outcome.message, &self.secrets) {
            outcome.message = message;
        }
        let worked =
            matches!(&outcome.message.body, Body::Tool(result) if result.status == ToolStatus::Success);
        if let Some(name) = read.filter(|_| worked) {
            let skill = self.catalogue.usable(&name).filter(|skill| skill.manifest.secrets_autonomous);
            if let Some(note) = skill.and_then(|skill| missing(&self.secrets, skill, cx.attempt > 1)) {
                with_note(&mut outcome.message, &note);
            }
            let update =
                Update::none().set::<ActiveSkills>(Active { names: vec![name], ..Active::default() });
            outcome.command.update.extend(update);
        }
        Ok(outcome)
    }
}

impl Skills {
    /// The active skills whose commands get secrets: the one the user named, and those that may without being named.
    fn trusted<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a Skill> {
        let active = state.get::<ActiveSkills>();
        let names = active.map_or(&[][..], |active| active.names.as_slice());
        let named = active.and_then(|active| active.named.as_deref());
        let usable = names.iter().filter_map(|name| self.known.usable(name)).map(Arc::as_ref);
        usable.filter(move |skill| skill.manifest.secrets_autonomous || named == Some(skill.name()))
    }

    /// The skill whose `SKILL.md` a call reads, unless it is active already.
    fn skill_read(&self, tool: &str, request: &ToolRequest) -> Option<String> {
        let path = request.call.args.get("path").or_else(|| request.call.args.get("file_path"));
        let path = path.and_then(Value::as_str).filter(|path| tool == READ && path.ends_with(MANIFEST))?;
        let name = self.catalogue.at(path)?.name().to_owned();
        let active = request.state.get::<ActiveSkills>();
        (!active.is_some_and(|active| active.names.contains(&name))).then_some(name)
    }
}

const READ: &str = "read_file";
const BASH: &str = "bash";

fn refused(request: &ToolRequest, allowed: &BTreeSet<&str>) -> ToolOutcome {
    let call = &request.call;
    let allowed: Vec<&str> = allowed.iter().copied().collect();
    let text = format!(
        "Error: the active skill does not allow `{}`. Nothing was run. It allows {}; go on with these, or say what \
         you could not do.",
        call.name,
        allowed.join(", ")
    );
    let id = call.id.clone().unwrap_or_else(|| "".into());
    ToolOutcome { message: Message::tool(&id, &call.name, ToolStatus::Error, text), command: Command::none() }
}

/// Reads files, so not on a thread that others wait for.
async fn body(skill: &Arc<Skill>) -> Result<String, String> {
    let skill = Arc::clone(skill);
    let read = tokio::task::spawn_blocking(move || skill.body()).await;
    read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn shown(skill: &Skill, body: &str) -> String {
    let (name, folder) = (skill.name(), skill.shown_folder());
    // Its end must be the only one.
    let body = body.replace("</skill", "&lt;/skill");
    format!(
        "<skill name=\"{name}\" folder=\"{}\">\n{body}\n</skill>\nThe message above begins with `/{name}`: the user \
         wants this skill for this task. Follow it; relative paths in it are in its folder.",
        escape(folder)
    )
}

/// The user's words that nobody has answered yet.
pub(super) fn newest_question(state: &State) -> Option<Arc<Message>> {
    let unanswered = state
        .messages()
        .iter()
        .rev()
        .take_while(|message| matches!(message.body, Body::Human | Body::System));
    unanswered.into_iter().find(|message| is_from_user(message)).cloned()
}

/// The run's list.
#[derive(Default)]
struct Told(Mutex<Option<Listing>>);

/// The key of the skills that this turn follows.
#[derive(Debug)]
pub struct ActiveSkills;

/// With a message: those a turn begins with. Without: more of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Active {
    pub message: Option<MessageId>,
    pub names: Vec<String>,
    /// The one that the user asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<String>,
}

impl Active {
    /// What a subagent begins with.
    pub(crate) fn passed_on(&self) -> Self {
        Self { message: Some(MessageId::generate()), ..self.clone() }
    }

    fn begun(message: &Message, names: Vec<String>) -> Self {
        // A message without an id still begins a turn.
        let message = Some(message.id.clone().unwrap_or_else(MessageId::generate));
        Self { message, named: names.first().cloned(), names }
    }
}

impl StateKey for ActiveSkills {
    type Value = Active;
    type Update = Active;
    const NAME: &'static str = "active_skills";
    const SCOPE: Scope = Scope::Private;

    fn reduce(current: Option<Active>, update: Active) -> Result<Active, ReduceError> {
        if update.message.is_some() {
            return Ok(update);
        }
        let mut active = current.unwrap_or_default();
        active.names.extend(update.names);
        Ok(active)
    }
}

/// The skills that were described to this thread, where not all were.
#[derive(Debug)]
struct SkillsListed;

impl StateKey for SkillsListed {
    type Value = BTreeSet<String>;
    type Update = BTreeSet<String>;
    const NAME: &'static str = "skills_listed";
    const SCOPE: Scope = Scope::Private;

    fn reduce(_: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        Ok(update)
    }
}
