//! Reads one passage that may be calls, from its opening mark on.
//!
//! Invariant: it ends as calls or as the text it was; half a call is at most an invalid one.

use hart_kernel::ToolSpec;
use serde_json::{Map, Value};

use super::coerce::coerce;
use super::form::{Form, Lead, Payload};
use super::nesting::{Nesting, Reached};
use super::offered::{Found, Offered, has_required, name_in_fragment};
use super::params::{Params, Reading};
use super::python;
use crate::repair::{Closing, repair_with};

const BROKE_OFF: &str = "the answer ended in the middle of this call; call again, with less at once";

/// How the answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// As the model wished.
    Stop,
    /// Too early: by a limit, or because the connection broke.
    Cut,
}

#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    More,
    /// Not a call; up to this offset it need not be looked at again.
    Text(usize),
    /// These calls, up to this offset.
    Calls(Vec<Found>, usize),
}

#[derive(Debug)]
pub(super) struct Capture {
    form: Form,
    state: State,
    at: usize,
    /// Behind the last call or mark.
    end: usize,
    found: Vec<Found>,
}

#[derive(Debug)]
enum State {
    Lead,
    Value { name: Option<String>, python: bool, from: usize, nesting: Nesting },
    Params { name: String, from: usize, params: Params },
}

impl Capture {
    /// `at`: where the first call begins, behind the opening mark.
    pub(super) fn new(form: Form, at: usize) -> Self {
        Self { form, state: State::Lead, at, end: at, found: Vec::new() }
    }

    /// Reads on in `text`, which always begins with the opening mark. `is_example` tells whether an unmarked call is
    /// only shown.
    pub(super) fn feed(
        &mut self,
        text: &str,
        ending: Option<Ending>,
        offered: &Offered,
        is_example: impl Fn() -> bool,
    ) -> Verdict {
        loop {
            let step = match std::mem::replace(&mut self.state, State::Lead) {
                State::Lead => self.lead(text, ending, offered, &is_example),
                State::Value { name, python, from, nesting } => {
                    self.value((name, python, from, nesting), text, ending, offered)
                }
                State::Params { name, from, params } => {
                    self.params(name, from, params, text, ending, offered)
                }
            };
            if let Some(verdict) = step {
                return verdict;
            }
        }
    }

    fn lead(
        &mut self,
        text: &str,
        ending: Option<Ending>,
        offered: &Offered,
        is_example: &impl Fn() -> bool,
    ) -> Option<Verdict> {
        let rest = text.get(self.at..).unwrap_or_default();
        if let Form::Bare(fence) = self.form
            && !self.found.is_empty()
        {
            let after = rest.trim_start_matches([' ', '\t', '\r', '\n', ',', ';']);
            if after.is_empty() && ending.is_none() {
                return Some(Verdict::More);
            }
            if !after.starts_with(['{', '[']) {
                return self.bare_end(rest, fence, ending);
            }
        }
        match self.form.lead(rest, self.found.is_empty(), ending.is_some(), offered) {
            Lead::More => Some(Verdict::More),
            Lead::None if self.is_bare() => Some(Verdict::Text(self.at)),
            Lead::None => Some(self.close()),
            Lead::Mark(length, is_last) => {
                self.at += length;
                self.end = self.at;
                is_last.then(|| self.close())
            }
            Lead::Call(..) if self.is_bare() && self.found.is_empty() && is_example() => {
                Some(Verdict::Text(self.at))
            }
            Lead::Call(name, payload, at) => {
                let from = self.at + at;
                self.state = match payload {
                    Payload::Params(tags) => {
                        let name = name.unwrap_or_default();
                        State::Params { name, from, params: Params::new(tags, from) }
                    }
                    Payload::Json | Payload::Python => {
                        let python = payload == Payload::Python;
                        State::Value { name, python, from, nesting: Nesting::default() }
                    }
                };
                None
            }
        }
    }

    /// Behind an unmarked call only the end of the answer may follow.
    fn bare_end(&mut self, rest: &str, fence: Option<usize>, ending: Option<Ending>) -> Option<Verdict> {
        let mut after = rest.trim_start();
        let text = Some(Verdict::Text(self.at));
        if let Some(length) = fence
            && !after.is_empty()
        {
            let closed = after.trim_start_matches('`');
            let ticks = after.len() - closed.len();
            if ticks < length {
                let may_go_on = ticks > 0 && closed.is_empty() && ending.is_none();
                return if may_go_on { Some(Verdict::More) } else { text };
            }
            after = closed.trim_start();
        }
        match ending {
            _ if !after.is_empty() => text,
            None => Some(Verdict::More),
            // What would have followed is not known.
            Some(Ending::Cut) => text,
            Some(Ending::Stop) => {
                self.end = self.at + rest.len();
                Some(self.close())
            }
        }
    }

    fn close(&mut self) -> Verdict {
        if self.found.iter().any(|found| matches!(found, Found::Call { .. }) || !self.is_bare()) {
            Verdict::Calls(std::mem::take(&mut self.found), self.end)
        } else {
            Verdict::Text(self.end)
        }
    }

    fn is_bare(&self) -> bool {
        matches!(self.form, Form::Bare(_))
    }

    fn value(
        &mut self,
        (name, python, from, mut nesting): (Option<String>, bool, usize, Nesting),
        text: &str,
        ending: Option<Ending>,
        offered: &Offered,
    ) -> Option<Verdict> {
        let value = text.get(from..).unwrap_or_default();
        let (length, is_whole) = loop {
            match nesting.feed(value) {
                Reached::End(length) => break (length, true),
                Reached::Angle(at) => {
                    // A mark where a value is still open: its last bracket was forgotten.
                    let rest = value.get(at..).unwrap_or_default();
                    let marks = || self.form.marks().iter().map(|(mark, _)| *mark);
                    if marks().any(|mark| rest.starts_with(mark)) {
                        break (at, true);
                    }
                    if ending.is_none() && marks().any(|mark| mark.starts_with(rest)) {
                        nesting.step_back();
                        self.state = State::Value { name, python, from, nesting };
                        return Some(Verdict::More);
                    }
                }
                Reached::More if ending.is_none() => {
                    self.state = State::Value { name, python, from, nesting };
                    return Some(Verdict::More);
                }
                Reached::More => match self.first_mark(value) {
                    // A quote too many hid the end of the value.
                    Some(at) => break (at, true),
                    None => break (value.len(), false),
                },
            }
        };
        let cut = !is_whole && ending == Some(Ending::Cut);
        let written = value.get(..length).unwrap_or_default();
        let found = self.read(name.as_deref(), python, written, cut, offered);
        self.at = from + length;
        let Some(found) = found else { return Some(Verdict::Text(self.at)) };
        self.found.extend(found);
        self.end = self.at;
        None
    }

    fn first_mark(&self, value: &str) -> Option<usize> {
        let long = self.form.marks().iter().filter(|(mark, _)| mark.len() > 3);
        long.filter_map(|(mark, _)| value.find(mark)).min()
    }

    fn read(
        &self,
        name: Option<&str>,
        python: bool,
        written: &str,
        cut: bool,
        offered: &Offered,
    ) -> Option<Vec<Found>> {
        if let Some(name) = name {
            return offered.named(name, written, cut).map(|found| vec![found]);
        }
        let strict = self.is_bare();
        if python {
            return python::calls(written, offered, strict);
        }
        let closing = if cut { Closing::Never } else { Closing::Brackets };
        match repair_with(written, closing) {
            Ok(read) => offered.described(&read.value, strict, read.repaired),
            Err(_) if strict => None,
            Err(error) => {
                let name = name_in_fragment(offered, written)?.to_owned();
                let error = if cut { BROKE_OFF.to_owned() } else { error.to_string() };
                Some(vec![Found::Broken { name, args: written.to_owned(), error }])
            }
        }
    }

    fn params(
        &mut self,
        name: String,
        from: usize,
        mut params: Params,
        text: &str,
        ending: Option<Ending>,
        offered: &Offered,
    ) -> Option<Verdict> {
        let reading = params.feed(text, ending.is_some());
        let spec = match offered.find(&name) {
            Some(spec) => spec,
            None => return Some(Verdict::Text(from)),
        };
        let is_whole = match (reading, ending) {
            (Reading::More, None) => {
                self.state = State::Params { name, from, params };
                return Some(Verdict::More);
            }
            (Reading::Bad, _) if params.done.is_empty() => return Some(Verdict::Text(from)),
            (Reading::Bad, _) => {
                self.at = params.at();
                false
            }
            (Reading::End(end), _) => {
                self.at = end;
                true
            }
            (Reading::More, Some(ending)) => {
                self.at = text.len();
                // GLM's last tag ends the answer, and some servers keep such a tag to themselves.
                let nothing_open = params.is_between() && text.get(params.at()..).is_some_and(str::is_empty);
                params.ends_answer()
                    && ending == Ending::Stop
                    && nothing_open
                    && has_required(spec, &typed(spec, &params))
            }
        };
        self.found.push(if is_whole {
            Found::Call { name: spec.name.clone(), args: typed(spec, &params), repaired: false }
        } else {
            let args = text.get(from..self.at).unwrap_or_default().to_owned();
            Found::Broken { name: spec.name.clone(), args, error: BROKE_OFF.to_owned() }
        });
        self.end = self.at;
        // GLM's call ends with the mark of the whole form.
        let closed = text.get(..self.at).unwrap_or_default();
        let is_last = self.form.marks().iter().any(|(mark, is_last)| *is_last && closed.ends_with(mark));
        is_last.then(|| self.close())
    }
}

fn typed(spec: &ToolSpec, params: &Params) -> Map<String, Value> {
    let pairs = params.done.iter();
    pairs.map(|param| (param.key.clone(), coerce(spec, &param.key, &param.value, param.is_text))).collect()
}
