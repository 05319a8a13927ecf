//! A question to a person: asking pauses the run, the answer resumes it.
//!
//! Invariant: a paused thread says in its own log where it paused and what it asked, so any process can resume it.

use std::collections::BTreeMap;

use hart_types::{Interrupt, Resume, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{LoggedWrite, Node, ReduceError, Scope, State, StateKey};

/// The answers by id, if they fit what is asked.
fn match_up(resume: Resume, asked: &[Interrupt]) -> Result<Answers, ResumeError> {
    let ids = || asked.iter().map(|interrupt| interrupt.id.clone()).collect();
    match (resume, asked) {
        (_, []) => Err(ResumeError::NothingAsked),
        (Resume::One(value), [only]) => Ok(BTreeMap::from([(only.id.clone(), value)])),
        (Resume::One(_), several) => Err(ResumeError::Several { count: several.len(), asked: ids() }),
        (Resume::ById(answers), asked) => {
            let unknown = answers.keys().find(|id| asked.iter().all(|interrupt| interrupt.id != **id));
            match unknown {
                Some(id) => Err(ResumeError::Unknown { id: id.clone(), asked: ids() }),
                None => Ok(answers),
            }
        }
    }
}

pub(crate) type Answers = BTreeMap<String, Value>;

/// Why an answer fits nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    #[error("nothing in this thread waits for an answer; send a message instead")]
    NothingAsked,
    #[error("{count} questions are open; answer them by id: {}", asked.join(", "))]
    Several { count: usize, asked: Vec<String> },
    #[error("no open question has the id `{id}`; open are: {}", asked.join(", "))]
    Unknown { id: String, asked: Vec<String> },
}

/// Where a run stopped to ask, and what it has been told so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pause {
    pub(crate) node: Node,
    /// The middleware that asked, if a hook of its own did; the ones before it are not run again.
    pub(crate) middleware: Option<String>,
    pub(crate) interrupts: Vec<Interrupt>,
    /// A hook that asks twice needs its first answer again when it hears the second.
    pub(crate) answers: Answers,
    /// What was said beside an answer, or written meanwhile, and has its place behind the results of the calls that still
    /// wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) held: Vec<LoggedWrite>,
    /// The run that goes on from here already and only notes what it holds, its own words among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) noted_by: Option<RunId>,
}

impl Pause {
    /// Where nobody asks and calls are to be made, or to be judged first.
    pub(crate) fn before_calls(ahead: Option<&str>) -> Self {
        let node = if ahead == Some("after_model") { Node::AfterModel } else { Node::Tools };
        let (middleware, interrupts, answers) = Default::default();
        Self { node, middleware, interrupts, answers, held: Vec::new(), noted_by: None }
    }

    /// All that has been answered at this place, the newest answers included.
    pub(crate) fn answered(&self, resume: Resume) -> Result<Answers, ResumeError> {
        let mut answers = self.answers.clone();
        answers.extend(match_up(resume, &self.interrupts)?);
        Ok(answers)
    }
}

/// The thread's open pause. It is `null` again as soon as the thread goes on.
#[derive(Debug)]
pub(crate) struct Paused;

impl StateKey for Paused {
    type Value = Option<Pause>;
    type Update = Option<Pause>;
    const NAME: &'static str = "__paused__";
    const SCOPE: Scope = Scope::Private;

    fn reduce(_: Option<Self::Value>, update: Self::Update) -> Result<Self::Value, ReduceError> {
        Ok(update)
    }
}

impl State {
    /// What the thread waits to be told.
    pub fn interrupts(&self) -> &[Interrupt] {
        let pause = self.get::<Paused>().and_then(Option::as_ref);
        pause.map_or(&[][..], |pause| &pause.interrupts)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_goes_to_the_question_it_fits() {
        let (a, b) = (Interrupt::new("a", json!("?")), Interrupt::new("b", json!("?")));
        let by_id = |id: &str| Resume::from_json(json!({ id: true }));
        let one = Resume::from_json(json!({"decisions": []}));
        assert!(matches!(one, Resume::One(_)));
        assert!(matches!(by_id(&a.id), Resume::ById(_)));
        assert_eq!(match_up(one.clone(), &[]), Err(ResumeError::NothingAsked));
        assert!(match_up(one.clone(), std::slice::from_ref(&a)).unwrap().contains_key(&a.id));
        assert!(matches!(match_up(one, &[a.clone(), b.clone()]), Err(ResumeError::Several { count: 2, .. })));
        assert!(match_up(by_id(&b.id), &[a.clone(), b.clone()]).unwrap().contains_key(&b.id));
        assert!(matches!(match_up(by_id(&b.id), &[a]), Err(ResumeError::Unknown { .. })));
    }
}
