//! Where a thread went more than one way: an answer given again, a question asked in other words.
//!
//! Invariant: every way is told by where it ends now, so that it can be gone on with; the ways of one point are told in the
//! order in which they were begun.

use std::collections::HashMap;

use hart_kernel::{StepSource, Timestamp};
use hart_types::{CheckpointId, RunId};

use crate::port::StepInfo;
use crate::transcript::Said;

/// A point of a thread from which several ways lead.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// The first message behind it, on the way that the thread has gone.
    pub message: String,
    /// The place of that way among all of them.
    pub current: usize,
    pub ways: Vec<Way>,
}

/// One of the ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// Who began it.
    pub run: RunId,
    pub begun_at: Timestamp,
    /// Its newest step.
    pub end: CheckpointId,
}

/// The forks on the way to where a thread stands, in order. `steps` are all there are, oldest first; `said` is what was
/// said on the thread's way.
pub(crate) fn read(steps: &[StepInfo], said: &[Said]) -> Vec<Fork> {
    let places: HashMap<&CheckpointId, usize> =
        steps.iter().enumerate().map(|(place, step)| (&step.id, place)).collect();
    // A step stands on an earlier one; whoever says otherwise stands on nothing, so that every walk ends.
    let parent = |place: usize| {
        let id = steps.get(place)?.parent.as_ref()?;
        places.get(id).copied().filter(|above| *above < place)
    };
    let starts = |place: &usize| steps.get(*place).is_some_and(|step| step.source == StepSource::Start);
    let mut ends: Vec<usize> = (0..steps.len()).collect();
    let mut worked: Vec<bool> = steps.iter().map(|step| step.source != StepSource::Update).collect();
    // Children come after their parents: backwards, each is finished when its parent hears of it.
    for place in (0..steps.len()).rev() {
        let (end, work) = (ends.get(place).copied(), worked.get(place).copied());
        let Some(above) = parent(place) else { continue };
        if let (Some(end), Some(known)) = (end, ends.get_mut(above)) {
            *known = end.max(*known);
        }
        if let (Some(work), Some(known)) = (work, worked.get_mut(above)) {
            *known |= work;
        }
    }
    // A run begins with a step that says nothing, and a later one may begin there again: both go the same way up to it.
    let mut ways: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for place in (0..steps.len()).filter(|place| !starts(place) && worked.get(*place) == Some(&true)) {
        let mut from = parent(place);
        while let Some(start) = from.filter(starts) {
            from = parent(start);
        }
        ways.entry(from).or_default().push(place);
    }
    let mut firsts: HashMap<&CheckpointId, &Said> = HashMap::new();
    for said in said.iter().filter(|said| !said.is_hidden()) {
        firsts.entry(&said.step).or_insert(said);
    }
    let mut forks: Vec<(u64, Fork)> = ways
        .into_values()
        .filter(|ways| ways.len() > 1)
        .filter_map(|ways| {
            let here = |place: &usize| steps.get(*place).and_then(|step| firsts.get(&step.id));
            let (current, said) =
                ways.iter().enumerate().find_map(|(number, place)| Some((number, here(place)?)))?;
            let ways = ways.iter().filter_map(|place| {
                let (begun, end) = (steps.get(*place)?, steps.get(*ends.get(*place)?)?);
                Some(Way { run: begun.run.clone(), begun_at: begun.created_at, end: end.id.clone() })
            });
            Some((said.seq, Fork { message: said.id().to_owned(), current, ways: ways.collect() }))
        })
        .collect();
    forks.sort_by_key(|(seq, _)| *seq);
    forks.into_iter().map(|(_, fork)| fork).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(id: &str, parent: Option<&str>, source: StepSource) -> StepInfo {
        StepInfo {
            id: id.into(),
            parent: parent.map(Into::into),
            run: format!("run-{id}").as_str().into(),
            run_metadata: serde_json::Map::new(),
            source,
            number: 0,
            created_at: Timestamp::UNIX_EPOCH,
            next: None,
            deleted: false,
        }
    }

    fn said(seq: u64, step: &str) -> Said {
        Said {
            seq,
            run: "r".into(),
            at: Timestamp::UNIX_EPOCH,
            step: step.into(),
            before: None,
            message: json!({"type": "human", "id": format!("of-{step}"), "content": "x"}),
        }
    }

    #[test]
    fn ways_end_where_they_were_gone_on_with() {
        use StepSource::{End, Input, Model, Start, Update};
        let steps = [
            step("a0", None, Start),
            step("a1", Some("a0"), Input),
            step("a2", Some("a1"), End),
            // The next question, on the first way.
            step("n0", Some("a2"), Start),
            step("n1", Some("n0"), Input),
            // The first question again, and once more from there.
            step("b0", Some("a0"), Start),
            step("b1", Some("b0"), Input),
            step("b2", Some("b1"), Model),
            step("c0", Some("b0"), Start),
            step("c1", Some("c0"), Input),
            // The first way was gone on with last; a client's own writes are no ways.
            step("n2", Some("n1"), End),
            step("u", Some("n1"), Update),
        ];
        let forks = read(&steps, &[said(1, "c1")]);
        let [fork] = forks.as_slice() else { panic!("{forks:?}") };
        assert_eq!((fork.message.as_str(), fork.current), ("of-c1", 2));
        let ends: Vec<_> = fork.ways.iter().map(|way| way.end.as_str()).collect();
        assert_eq!(ends, ["u", "b2", "c1"]);
        assert_eq!(fork.ways.first().map(|way| way.run.as_str()), Some("run-a1"));
        let forks = read(&steps, &[said(1, "a1"), said(2, "n1")]);
        assert_eq!(forks.iter().map(|fork| fork.current).collect::<Vec<_>>(), [0]);
        assert!(read(&[], &[]).is_empty());
    }
}
