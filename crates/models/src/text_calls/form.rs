//! The ways in which models write calls: what opens them, what stands before the arguments, what closes them.
//!
//! Invariant: whether a text opens a call is decided by its first few hundred bytes.

use super::literal::{Match, first, matches};
use super::offered::Offered;
use super::params::{self, Tags};

/// A name with all that may stand around it.
const MAX_HEADER: usize = 320;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `<tool_call>`: JSON inside (Hermes, Qwen), or Qwen3-Coder's function, or GLM's pairs.
    ToolCall,
    /// `<function=name>` on its own.
    Function,
    /// `<invoke name="…">`, with or without a wrapper (MiniMax).
    Invoke,
    /// The same in DeepSeek's own markup.
    Dsml,
    Kimi,
    DeepSeek,
    Mistral,
    /// `<|python_tag|>` and other marks before JSON or Python.
    Marked(&'static str),
    /// gpt-oss; the header has told the name.
    Harmony(String),
    /// JSON or Python without any mark; inside a fence of so many backticks.
    Bare(Option<usize>),
}

/// What opens a call, and whether the text of the mark belongs to the first call.
const MARKS: &[(&str, Form, bool)] = &[
    ("<tool_call>", Form::ToolCall, false),
    ("<seed:tool_call>", Form::ToolCall, false),
    ("<function=", Form::Function, true),
    ("<minimax:tool_call>", Form::Invoke, false),
    ("<function_calls>", Form::Invoke, false),
    ("<invoke name=\"", Form::Invoke, true),
    ("<｜DSML｜function_calls>", Form::Dsml, false),
    ("<｜DSML｜tool_calls>", Form::Dsml, false),
    ("<｜DSML｜invoke name=\"", Form::Dsml, true),
    ("<|tool_calls_section_begin|>", Form::Kimi, false),
    ("<|tool_call_begin|>", Form::Kimi, true),
    ("<｜tool▁calls▁begin｜>", Form::DeepSeek, false),
    ("<｜tool_calls_begin｜>", Form::DeepSeek, false),
    ("<｜tool▁call▁begin｜>", Form::DeepSeek, true),
    ("[TOOL_CALLS]", Form::Mistral, false),
    ("<|python_tag|>", Form::Marked("<|eom_id|>"), false),
    ("<|tool_call_start|>", Form::Marked("<|tool_call_end|>"), false),
    ("<|tool_call|>", Form::Marked("<|/tool_call|>"), false),
    ("<tool_calls>", Form::Marked("</tool_calls>"), false),
];

/// The form that `text` opens, and where its first call begins.
pub(super) fn opened(text: &str, last: bool) -> (Match, Option<(Form, usize)>) {
    let mut maybe = Match::No;
    for (mark, form, belongs) in MARKS {
        match matches(text, mark, last) {
            Match::Yes => {
                let skip = if *belongs { 0 } else { mark.len() };
                return (Match::Yes, Some((form.clone(), skip)));
            }
            Match::Maybe => maybe = Match::Maybe,
            Match::No => {}
        }
    }
    (maybe, None)
}

/// What stands before the arguments of the next call.
#[derive(Debug)]
pub(super) enum Lead {
    More,
    /// A call, whose arguments begin at this offset.
    Call(Option<String>, Payload, usize),
    /// A mark between calls, up to this offset; `true`: the last one.
    Mark(usize, bool),
    /// No call.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Json,
    Python,
    Params(&'static Tags),
}

impl Form {
    /// What may stand behind a call; `true`: and ends the last one.
    pub(super) fn marks(&self) -> &'static [(&'static str, bool)] {
        match self {
            Self::ToolCall => &[("</function>", false), ("</tool_call>", true), ("</seed:tool_call>", true)],
            Self::Function => &[("</function>", false), ("</tool_call>", true)],
            Self::Invoke => {
                &[("</invoke>", false), ("</minimax:tool_call>", true), ("</function_calls>", true)]
            }
            Self::Dsml => &[
                ("</｜DSML｜invoke>", false),
                ("</｜DSML｜function_calls>", true),
                ("</｜DSML｜tool_calls>", true),
            ],
            Self::Kimi => &[("<|tool_call_end|>", false), ("<|tool_calls_section_end|>", true)],
            Self::DeepSeek => &[
                ("```", false),
                ("<｜tool▁call▁end｜>", false),
                ("<｜tool▁calls▁end｜>", true),
                ("<｜tool_calls_end｜>", true),
                ("<｜end▁of▁sentence｜>", true),
            ],
            Self::Mistral => &[("</s>", true)],
            Self::Marked("<|eom_id|>") => &[(";", false), ("<|eom_id|>", true), ("<|eot_id|>", true)],
            Self::Marked("<|tool_call_end|>") => &[("<|tool_call_end|>", true)],
            Self::Marked("<|/tool_call|>") => &[("<|/tool_call|>", true)],
            Self::Marked(_) => &[("</tool_calls>", true)],
            Self::Harmony(_) => &[("<|call|>", true), ("<|end|>", true), ("<|return|>", true)],
            Self::Bare(_) => &[(";", false), (",", false)],
        }
    }

    /// Reads on at `rest`; `is_first`: no call was found yet.
    pub(super) fn lead(&self, rest: &str, is_first: bool, last: bool, offered: &Offered) -> Lead {
        let body = rest.trim_start();
        let skipped = rest.len() - body.len();
        // Only so much is looked at, so that it does not matter how much is there.
        let seen = first(body, MAX_HEADER);
        let lead = if body.is_empty() { Lead::More } else { self.lead_at(seen, is_first, offered) };
        match lead {
            Lead::Call(name, payload, at) => Lead::Call(name, payload, at + skipped),
            Lead::Mark(at, is_last) => Lead::Mark(at + skipped, is_last),
            // The answer ends with half a mark behind a call: nobody needs to see that.
            Lead::More if last && !is_first && !matches!(self, Self::Bare(_)) => Lead::Mark(rest.len(), true),
            Lead::More if last || body.len() > MAX_HEADER => Lead::None,
            other => other,
        }
    }

    fn lead_at(&self, body: &str, is_first: bool, offered: &Offered) -> Lead {
        let mut maybe = false;
        for (mark, is_last) in self.marks() {
            match matches(body, mark, false) {
                Match::Yes => return Lead::Mark(mark.len(), *is_last),
                Match::Maybe => maybe = true,
                Match::No => {}
            }
        }
        if !is_first && body.starts_with(['}', ']']) && !matches!(self, Self::Bare(_) | Self::Mistral) {
            // One bracket too many is a common slip.
            return Lead::Mark(1, false);
        }
        let lead = match self {
            Self::ToolCall => match matches(body, "<function=", false) {
                Match::Yes => function(body, offered),
                Match::Maybe => Lead::More,
                Match::No if body.starts_with(['{', '[']) => Lead::Call(None, Payload::Json, 0),
                Match::No => pairs(body, offered),
            },
            Self::Function => after(body, "<function=", |_| function(body, offered)),
            Self::Invoke => {
                after(body, "<invoke name=\"", |tail| invoke(body, tail, &params::NAMED, offered))
            }
            Self::Dsml => {
                after(body, "<｜DSML｜invoke name=\"", |tail| invoke(body, tail, &params::DSML, offered))
            }
            Self::Kimi => after(body, "<|tool_call_begin|>", |tail| kimi(body, tail, offered)),
            Self::DeepSeek => {
                after(body, "<｜tool▁call▁begin｜>", |tail| deepseek(body, tail, offered))
            }
            Self::Mistral if is_first => mistral(body, offered),
            Self::Harmony(name) if is_first && body.starts_with('{') => {
                Lead::Call(Some(name.clone()), Payload::Json, 0)
            }
            Self::Mistral | Self::Harmony(_) => Lead::None,
            Self::Marked(_) => marked(body, offered),
            Self::Bare(_) => plausible(body, offered),
        };
        if maybe && matches!(lead, Lead::None) { Lead::More } else { lead }
    }
}

fn after<'a>(body: &'a str, opening: &str, read: impl FnOnce(&'a str) -> Lead) -> Lead {
    match matches(body, opening, false) {
        Match::Yes => read(body.get(opening.len()..).unwrap_or_default()),
        Match::Maybe => Lead::More,
        Match::No => Lead::None,
    }
}

/// Splits at `end` if it comes soon; `None`: it may still come.
fn header<'a>(text: &'a str, end: &str) -> Result<(&'a str, &'a str), Lead> {
    match text.split_once(end) {
        Some((head, tail)) if head.len() <= MAX_HEADER => Ok((head, tail)),
        None if text.len() <= MAX_HEADER => Err(Lead::More),
        _ => Err(Lead::None),
    }
}

/// A call of the tool `name`, whose arguments are JSON if they begin so, and otherwise parameters.
fn call(name: &str, whole: &str, tail: &str, tags: &'static Tags, offered: &Offered) -> Lead {
    if offered.find(name).is_none() {
        return Lead::None;
    }
    let at = whole.len() - tail.len();
    let payload = match tail.trim_start().bytes().next() {
        None => return Lead::More,
        Some(b'{') => Payload::Json,
        Some(_) => Payload::Params(tags),
    };
    Lead::Call(Some(name.trim().to_owned()), payload, at)
}

fn function(body: &str, offered: &Offered) -> Lead {
    let tail = body.strip_prefix("<function=").unwrap_or(body);
    match header(tail, ">") {
        Ok((name, tail)) => call(name, body, tail, &params::EQUALS, offered),
        Err(lead) => lead,
    }
}

fn invoke(body: &str, tail: &str, tags: &'static Tags, offered: &Offered) -> Lead {
    match header(tail, "\">") {
        Ok((name, tail)) => call(name, body, tail, tags, offered),
        Err(lead) => lead,
    }
}

/// GLM: the name, then keys and values.
fn pairs(body: &str, offered: &Offered) -> Lead {
    match body.find(['\n', '<', '{']) {
        Some(length) if length <= MAX_HEADER => {
            let name = body.get(..length).unwrap_or_default();
            call(name, body, body.get(length..).unwrap_or_default(), &params::PAIRS, offered)
        }
        None if offered.could_become(body) => Lead::More,
        _ => Lead::None,
    }
}

fn kimi(body: &str, tail: &str, offered: &Offered) -> Lead {
    let (id, tail) = match header(tail, "<|tool_call_argument_begin|>") {
        Ok(split) => split,
        Err(lead) => return lead,
    };
    // `functions.name:0`: the number counts the calls.
    let id = id.trim();
    let name = match id.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => id,
    };
    json(name, body, tail, offered)
}

fn json(name: &str, body: &str, tail: &str, offered: &Offered) -> Lead {
    if offered.find(name).is_none() {
        return Lead::None;
    }
    match tail.trim_start().bytes().next() {
        None => Lead::More,
        Some(b'{') => Lead::Call(Some(name.to_owned()), Payload::Json, body.len() - tail.len()),
        Some(_) => Lead::None,
    }
}

/// `function<sep>name`, a line break and a fence, or `name<sep>` and the arguments.
fn deepseek(body: &str, tail: &str, offered: &Offered) -> Lead {
    let split = header(tail, "<｜tool▁sep｜>").and_then(|(kind, tail)| {
        let (between, _) = header(tail, "{")?;
        Ok((kind, between, tail.get(between.len()..).unwrap_or_default()))
    });
    let (kind, between, tail) = match split {
        Ok(split) => split,
        Err(lead) => return lead,
    };
    let between = between.trim();
    let between = between.strip_suffix("json").unwrap_or(between).trim_end_matches('`').trim();
    json(if between.is_empty() { kind.trim() } else { between }, body, tail, offered)
}

/// A list of calls, or a name and its arguments.
fn mistral(body: &str, offered: &Offered) -> Lead {
    if body.starts_with(['[', '{']) {
        return Lead::Call(None, Payload::Json, 0);
    }
    let Some(length) = body.find(['[', '{']) else {
        return if offered.could_become(body.trim_end()) { Lead::More } else { Lead::None };
    };
    let (name, tail) = (body.get(..length).unwrap_or_default(), body.get(length..).unwrap_or_default());
    match header(tail, "{") {
        Ok((marks, _)) if marks.trim().is_empty() || marks.trim_end().ends_with("[ARGS]") => {
            json(name.trim(), body, tail.get(marks.len()..).unwrap_or_default(), offered)
        }
        Ok(_) => Lead::None,
        Err(_) if offered.find(name).is_none() => Lead::None,
        Err(lead) => lead,
    }
}

/// JSON or Python behind a mark.
fn marked(body: &str, offered: &Offered) -> Lead {
    if body.starts_with('{') {
        return Lead::Call(None, Payload::Json, 0);
    }
    let inner = body.strip_prefix('[').unwrap_or(body).trim_start();
    if body.starts_with('[') && (inner.is_empty() || inner.starts_with(['{', '['])) {
        return if inner.is_empty() { Lead::More } else { Lead::Call(None, Payload::Json, 0) };
    }
    python(inner, offered)
}

fn python(inner: &str, offered: &Offered) -> Lead {
    match inner.split_once('(') {
        Some((name, _)) => {
            let name = name.trim_end();
            let known = offered.find(name).is_some()
                || name.strip_suffix(".call").is_some_and(|name| offered.find(name).is_some());
            if known { Lead::Call(None, Payload::Python, 0) } else { Lead::None }
        }
        None => {
            let name = inner.trim_end();
            let called = [".call", ".cal", ".ca", ".c", "."].iter().find_map(|end| name.strip_suffix(end));
            let is_known = called.is_some_and(|name| offered.find(name).is_some());
            if is_known || offered.could_become(name) { Lead::More } else { Lead::None }
        }
    }
}

/// Whether JSON or Python without a mark may be a call: its first key tells.
pub(super) fn plausible(body: &str, offered: &Offered) -> Lead {
    let Some(inner) = body.strip_prefix(['[', '{']) else { return Lead::None };
    let mut inner = inner.trim_start();
    if body.starts_with('[') {
        match inner.strip_prefix('{') {
            Some(object) => inner = object.trim_start(),
            None if inner.is_empty() => return Lead::More,
            None => return python(inner, offered),
        }
    }
    match first_key(inner, offered) {
        Match::Yes => Lead::Call(None, Payload::Json, 0),
        Match::Maybe => Lead::More,
        Match::No => Lead::None,
    }
}

/// Whether an object that goes on with `inner` may describe a call.
fn first_key(inner: &str, offered: &Offered) -> Match {
    if inner.is_empty() {
        return Match::Maybe;
    }
    let Some(quote @ ('"' | '\'')) = inner.chars().next() else { return Match::No };
    let tail = inner.get(1..).unwrap_or_default();
    let Some((key, tail)) = tail.split_once(quote) else {
        let known =
            ["name", "tool_name", "tool", "function", "type", "id", "arguments", "parameters", "tool_calls"];
        return if known.iter().any(|key| key.starts_with(tail)) { Match::Maybe } else { Match::No };
    };
    let value = match tail.trim_start().strip_prefix(':') {
        Some(value) => value.trim_start(),
        None if tail.trim_start().is_empty() => return Match::Maybe,
        None => return Match::No,
    };
    if value.is_empty() {
        return Match::Maybe;
    }
    match key {
        "function" if value.starts_with('{') => {
            first_key(value.get(1..).unwrap_or_default().trim_start(), offered)
        }
        "name" | "tool_name" | "tool" | "function" | "type" => {
            let Some(text) = value.strip_prefix(['"', '\'']) else { return Match::No };
            let fits = |text: &str, whole: bool| match (key, whole) {
                ("type", true) => matches!(text, "function" | "tool_call" | "tool_use"),
                ("type", false) => ["function", "tool_call", "tool_use"].iter().any(|w| w.starts_with(text)),
                (_, true) => offered.find(text).is_some(),
                (_, false) => offered.could_become(text),
            };
            match text.split_once(['"', '\'']) {
                Some((text, _)) if fits(text, true) => Match::Yes,
                None if fits(text, false) => Match::Maybe,
                _ => Match::No,
            }
        }
        "id" | "arguments" | "parameters" | "tool_calls" => Match::Yes,
        _ => Match::No,
    }
}
