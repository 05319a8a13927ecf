//! How a run stops to wait, and how one goes on where another stopped.
//!
//! Invariant: a thread that waits says so in its log until whatever asked has returned with the answer.

use std::sync::Arc;

use hart_types::{Body, Message};

use super::Execution;
use crate::interrupt::{Pause, Paused};
use crate::tool_call::Pending;
use crate::{
    AgentEvent, Ended, HookError, InputIds, Interrupt, Node, Reached, ResumeError, RunError, RunInput,
    StepSource, Update,
};

impl Execution<'_> {
    /// Takes the input in, and says where a run that goes on begins.
    pub(super) async fn accept(&mut self, input: RunInput) -> Result<Option<Pause>, RunError> {
        let open = self.state.get::<Paused>().cloned().flatten();
        let named = self.cx.input_ids.clone().filter(|ids| ids.follow(self.head.as_ref()));
        let InputIds { start, input: id } = named.unwrap_or_else(InputIds::generate);
        let is_new = self.head.is_none() && self.state.messages().is_empty();
        // Where the question is closed, what was said beside it comes first.
        let closing = |open: Option<Pause>, update| {
            let mut said = self.agent.schema.restore(open.map(|pause| pause.held).unwrap_or_default());
            said.extend(update);
            said
        };
        let ends = matches!(input, RunInput::End(_));
        if !matches!(input, RunInput::Words(_)) {
            self.goes_on_with.clone_from(&self.ahead);
        }
        let (mut update, goes_on) = match input {
            // Nothing that this agent's state has a place for.
            RunInput::Words(update) if update.is_empty() => return Err(RunError::EmptyInput),
            RunInput::Words(update) => {
                // Whoever speaks of something else does not answer.
                let said = closing(open, update);
                self.forget_pause()?;
                self.begin(start).await;
                (said, None)
            }
            RunInput::Answer { .. } if is_new => return Err(ResumeError::NothingAsked.into()),
            RunInput::Continue | RunInput::End(_) if is_new => return Err(RunError::EmptyInput),
            RunInput::End(update) => {
                let said = closing(open, update);
                self.forget_pause()?;
                (said, Some(self.pause_at(Node::AfterAgent, None, Vec::new())))
            }
            RunInput::Write(update) => (update, self.go_on(open).await?),
            RunInput::Answer { resume, update } => match open {
                Some(pause) if !pause.interrupts.is_empty() => {
                    self.cx.set_answers(pause.answered(resume)?);
                    self.held = self.agent.schema.restore(pause.held.clone());
                    (update, Some(pause))
                }
                open if self.cx.late_answers => (update, self.go_on(open).await?),
                _ => return Err(ResumeError::NothingAsked.into()),
            },
            RunInput::Continue => (Update::none(), self.go_on(open).await?),
        };
        let mut nth = 0;
        update.name_messages(|| {
            nth += 1;
            self.cx.input_message_id(&id, nth)
        });
        if goes_on.is_some() && !ends && Pending::exist(self.state.messages()) {
            self.held.extend(update.split_off_words(self.state.messages(), is_said));
        }
        self.take_in(update).await?;
        if !Pending::exist(self.state.messages()) {
            self.say_what_was_held().await?;
        }
        if self.unlogged.is_empty() && !(ends && self.ahead.is_some()) {
            self.tell_where_it_stands(self.ahead.as_deref().map(Arc::from)).await;
            return Ok(goes_on);
        }
        // The user's words are safe before anything acts on them.
        let next = goes_on.as_ref().map_or(Node::Model, |pause| pause.node);
        self.log_as(id, StepSource::Input, next.name()).await?;
        Ok(goes_on)
    }

    async fn take_in(&mut self, update: Update) -> Result<(), RunError> {
        self.apply("input", update).await.map_err(|error| match error {
            HookError::State(error) => RunError::Input(error),
            other => RunError::hook("the input", other),
        })
    }

    pub(super) async fn say_what_was_held(&mut self) -> Result<(), RunError> {
        if self.held.is_empty() {
            return Ok(());
        }
        if self.open_pause().is_some_and(|pause| pause.noted_by.as_ref() == Some(&self.cx.run_id)) {
            self.forget_pause()?;
        }
        let held = std::mem::take(&mut self.held);
        self.take_in(held).await
    }

    /// Calls still wait, and nobody asks any more: what was said beside them is in the log before they are made.
    pub(super) fn note_what_is_held(&mut self) -> Result<(), RunError> {
        let (held, noted_by) = (self.held.to_writes(), Some(self.cx.run_id.clone()));
        match self.open_pause() {
            _ if held.is_empty() => Ok(()),
            Some(pause) if pause.noted_by != noted_by || pause.held == held => Ok(()),
            _ => {
                let here = self.pause_at(Node::Tools, None, Vec::new());
                self.write_pause(Some(Pause { held, noted_by, ..here }))
            }
        }
    }

    /// At the end of a run: where it has failed and calls still wait, so does what was said beside them.
    pub(super) async fn leave_what_was_held(&mut self, has_failed: bool) -> Result<(), RunError> {
        match self.open_pause().cloned() {
            Some(pause) if has_failed && Pending::exist(self.state.messages()) => {
                let held = std::mem::take(&mut self.held).to_writes();
                if pause.held == held { Ok(()) } else { self.write_pause(Some(Pause { held, ..pause })) }
            }
            _ => self.say_what_was_held().await,
        }
    }

    fn open_pause(&self) -> Option<&Pause> {
        self.state.get::<Paused>()?.as_ref()
    }

    /// Where a run begins to which nobody says anything new.
    async fn go_on(&mut self, open: Option<Pause>) -> Result<Option<Pause>, RunError> {
        if open.is_none() {
            self.take_back_partial().await?;
        }
        Ok(self.stands_at(open))
    }

    /// An answer that was broken off is there for people; whoever goes on answers anew.
    async fn take_back_partial(&mut self) -> Result<(), RunError> {
        let last = self.state.messages().last();
        let partial = last.filter(|last| {
            matches!(last.body, Body::Ai(_)) && last.response_metadata.contains_key("incomplete")
        });
        let Some(id) = partial.and_then(|partial| partial.id.clone()) else { return Ok(()) };
        let update = Update::none().messages(Message::remove(id));
        self.apply("input", update).await.map_err(|source| RunError::hook("the input", source))
    }

    /// Where the thread stands when nobody says anything new.
    fn stands_at(&mut self, open: Option<Pause>) -> Option<Pause> {
        let messages = self.state.messages();
        // What hart adds to somebody's words stands behind them and says nothing of who speaks next.
        let last =
            messages.iter().rev().map(|message| &message.body).find(|body| !matches!(body, Body::System));
        let node = match (self.ahead.as_deref(), last) {
            _ if open.is_some() => None,
            // At rest, whoever spoke last.
            (None, _) => Some(Node::AfterAgent),
            // It had not been said yet whether these calls may be made.
            (Some("after_model"), _) if Pending::exist(messages) => Some(Node::AfterModel),
            _ if Pending::exist(messages) => Some(Node::Tools),
            // Nobody has begun to answer it: as if it had just been said.
            (Some(_), Some(Body::Human)) => return None,
            (Some(_), _) => Some(Node::BeforeModel),
        };
        let pause = open.or_else(|| node.map(|node| self.pause_at(node, None, Vec::new())))?;
        self.cx.set_answers(pause.answers.clone());
        self.held = self.agent.schema.restore(pause.held.clone());
        Some(pause)
    }

    pub(super) async fn tell_where_it_stands(&self, next: Option<Arc<str>>) {
        let Some(checkpoint) = self.head.clone() else { return };
        let values = self.agent.snapshot(self.state.clone());
        let parent = self.parent.clone();
        let reached = Reached { checkpoint, parent, source: StepSource::Input, next, values };
        self.cx.emit(AgentEvent::Values(reached)).await;
    }

    /// Only when the answer has done its work: until then the question stays open for another try.
    pub(super) fn forget_pause(&mut self) -> Result<(), RunError> {
        match self.state.get::<Paused>() {
            Some(Some(_)) => self.write_pause(None),
            _ => Ok(()),
        }
    }

    pub(super) async fn pause(&mut self, mut pause: Pause) -> Result<Ended, RunError> {
        // What is asked about an answer is asked where the answer is, and likewise in front of one.
        match pause.node {
            Node::AfterModel => self.stage(StepSource::Model, pause.node.name()).await,
            Node::BeforeAgent | Node::BeforeModel | Node::Model => {
                self.stage(StepSource::Input, pause.node.name()).await;
            }
            Node::Tools | Node::AfterAgent | Node::End => {}
        }
        pause.held = std::mem::take(&mut self.held).to_writes();
        let interrupts: Arc<[Interrupt]> = pause.interrupts.clone().into();
        self.write_pause(Some(pause))?;
        self.cx.set_paused();
        self.cx.emit(AgentEvent::Paused(interrupts)).await;
        self.commit(StepSource::Pause, self.waits_at()).await?;
        Ok(Ended::Paused)
    }

    pub(super) fn pause_at(&self, node: Node, middleware: Option<&str>, interrupts: Vec<Interrupt>) -> Pause {
        let middleware = middleware.map(str::to_owned);
        let (answers, held) = (self.cx.answers(), Vec::new());
        Pause { node, middleware, interrupts, answers, held, noted_by: None }
    }

    /// The node an open pause comes back to.
    pub(super) fn waits_at(&self) -> Option<&'static str> {
        self.state.get::<Paused>()?.as_ref()?.node.name()
    }

    /// The work ahead of a run that was broken off.
    pub(super) fn stopped_at(&self) -> Option<&'static str> {
        match self.at {
            // Calls that were broken off have results that say so.
            Node::Tools if !Pending::exist(self.state.messages()) => Node::Model.name(),
            node => node.name(),
        }
    }

    fn write_pause(&mut self, pause: Option<Pause>) -> Result<(), RunError> {
        let update = Update::none().set::<Paused>(pause);
        let writes = update.to_writes();
        self.state.apply(update).map_err(RunError::Input)?;
        self.unlogged.extend(writes);
        Ok(())
    }
}

/// Nobody would come back to calls behind such a message.
pub(super) fn is_said(body: &Body) -> bool {
    matches!(body, Body::Human | Body::Ai(_))
}
