//! How an attempt goes on where an earlier one of the same run was cut off.
//!
//! Invariant: what is in the log has happened and is not done again; what is not has not, and is.

use std::sync::Arc;

use hart_types::{Body, RunId};

use super::pausing::is_said;
use super::{Execution, Stop};
use crate::interrupt::{Pause, Paused};
use crate::tool_call::Pending;
use crate::{AgentEvent, Ended, Node, RunInput, Step, StepSource, Update};

/// The last step of an earlier attempt.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    source: StepSource,
    next: Option<String>,
    /// Model calls and tool batches of the run so far.
    pub(super) steps: u32,
}

impl Left {
    /// None when the run has left nothing.
    pub(crate) fn of(steps: &[Step], run: &RunId) -> Option<Self> {
        let last = steps.last().filter(|last| last.run_id == *run)?;
        let own = steps.iter().filter(|step| step.run_id == *run);
        let counted = own.filter(|step| matches!(step.source, StepSource::Model | StepSource::Tools)).count();
        Some(Self {
            source: last.source,
            next: last.next.clone(),
            steps: u32::try_from(counted).unwrap_or(u32::MAX),
        })
    }
}

impl Execution<'_> {
    /// Where to go on. The input is in the log already, but for an answer, which is there when it has done its work.
    pub(super) async fn recover(&mut self, left: Left, input: RunInput) -> Result<Option<Pause>, Stop> {
        self.tell_where_it_stands(left.next.as_deref().map(Arc::from)).await;
        if left.source == StepSource::Input && !matches!(input, RunInput::Words(_)) {
            self.goes_on_with.clone_from(&left.next);
        }
        if matches!(input, RunInput::End(_)) {
            return Err(Stop::Over(Ended::Finished));
        }
        let open = self.state.get::<Paused>().cloned().flatten();
        let over = matches!(left.source, StepSource::Pause | StepSource::End);
        match open {
            Some(pause) if over => {
                self.cx.set_paused();
                self.cx.emit(AgentEvent::Paused(pause.interrupts.into())).await;
                Err(Stop::Over(Ended::Paused))
            }
            Some(pause) => {
                self.held = self.agent.schema.restore(pause.held.clone());
                let is_noted = pause.noted_by.as_ref() == Some(&self.cx.run_id);
                let (answers, update) = match input {
                    RunInput::Answer { update, .. }
                        if is_noted || (pause.interrupts.is_empty() && self.cx.late_answers) =>
                    {
                        (pause.answers.clone(), update)
                    }
                    RunInput::Answer { resume, update } => {
                        (pause.answered(resume).map_err(crate::RunError::Resume)?, update)
                    }
                    RunInput::Write(update) => (pause.answers.clone(), update),
                    RunInput::Words(_) | RunInput::Continue | RunInput::End(_) => {
                        (pause.answers.clone(), Update::none())
                    }
                };
                // All else of it is in the log already.
                let mut update = update;
                let words = update.split_off_words(self.state.messages(), is_said);
                if !is_noted && Pending::exist(self.state.messages()) {
                    self.held.extend(words);
                }
                self.cx.set_answers(answers);
                Ok(Some(pause))
            }
            None if left.source == StepSource::End && self.has_answered() => Err(Stop::Over(Ended::Finished)),
            // Nobody has begun to answer: as if it had just been said.
            None if left.source == StepSource::Input => Ok(None),
            None => {
                let node = match left.next.as_deref() {
                    Some("tools") if Pending::exist(self.state.messages()) => Node::Tools,
                    // It had not been said yet whether these calls may be made.
                    Some("after_model") if Pending::exist(self.state.messages()) => Node::AfterModel,
                    None if self.has_answered() => Node::AfterAgent,
                    _ => Node::BeforeModel,
                };
                let pause = self.pause_at(node, None, Vec::new());
                self.cx.set_answers(pause.answers.clone());
                Ok(Some(pause))
            }
        }
    }

    /// Whether the agent had the last word, and a whole one.
    fn has_answered(&self) -> bool {
        self.state.messages().last().is_some_and(|message| match &message.body {
            Body::Ai(ai) => ai.tool_calls.is_empty() && !message.response_metadata.contains_key("incomplete"),
            Body::Tool(_) => !Pending::exist(self.state.messages()),
            _ => true,
        })
    }
}
