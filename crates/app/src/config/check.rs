//! The tree against the catalogue: which keys exist, which are used, what type their values have.
//!
//! Invariant: after both passes a tree without problems holds known, used keys only, each of its type.

use serde_json::{Number, Value};

use super::catalogue::{self, Key, Kind};
use super::nearest::{misspelt, nearest};
use super::node::{Data, Entry, Mark, Node, Path};
use super::problem::Findings;

/// Removes what is unknown (a problem), unused (named in `unused`) or null (the default applies).
pub(crate) fn shape(node: &mut Node, path: &Path, findings: &mut Findings, unused: &mut Vec<String>) {
    let parent = path.pattern();
    let Data::Map(entries) = &mut node.data else { return };
    entries.retain_mut(|entry| {
        let here = path.key(&entry.key);
        // A key that contains the separators would otherwise be taken for a path.
        let known = if entry.key.contains(['.', '[']) { None } else { catalogue::find(&here.pattern()) };
        match known {
            None => {
                unknown(&parent, &here, entry, findings);
                false
            }
            Some(key) if !key.used => {
                if !entry.value.is_null() {
                    unused.push(here.to_string());
                }
                false
            }
            Some(_) if entry.value.is_null() => false,
            Some(key) => {
                below(key, &mut entry.value, &here, findings, unused);
                true
            }
        }
    });
}

fn below(key: &Key, node: &mut Node, path: &Path, findings: &mut Findings, unused: &mut Vec<String>) {
    match (key.kind, &mut node.data) {
        (Kind::Section, _) => shape(node, path, findings, unused),
        (Kind::Sections, Data::List(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                shape(item, &path.index(index), findings, unused);
            }
        }
        _ => {}
    }
}

fn unknown(parent: &str, path: &Path, entry: &Entry, findings: &mut Findings) {
    let names = || catalogue::children(parent).map(|key| catalogue::split(&key.path).1);
    // DeerFlow hands any further key of a model to a constructor, so only what looks like a typo is refused.
    let open = parent.starts_with("models[]");
    let near = if open { misspelt(&entry.key, names()) } else { nearest(&entry.key, names()) };
    match near {
        Some(near) => findings.problem(
            &entry.key_mark,
            format!("{path}: unknown key; did you mean `{near}`?"),
            format!("write `{near}`, or remove the key"),
        ),
        None if open => {
            let place = findings.place(&entry.key_mark);
            findings.warn(place, format!("{path}: not a key this version uses"));
        }
        None => {
            let used = catalogue::children(parent).filter(|key| key.used);
            let known: Vec<_> = used.map(|key| catalogue::split(&key.path).1).collect();
            let place = if parent.is_empty() { "at the top of the file" } else { "here" };
            findings.problem(
                &entry.key_mark,
                format!("{path}: unknown key"),
                format!("remove it; keys {place}: {}", known.join(", ")),
            );
        }
    }
}

/// Compares every value with its kind. Text from a variable is read as the number or boolean it should be.
pub(crate) fn types(node: &mut Node, path: &Path, findings: &mut Findings) {
    let Data::Map(entries) = &mut node.data else { return };
    for entry in entries {
        let here = path.key(&entry.key);
        if let Some(key) = catalogue::find(&here.pattern()) {
            value_of(key.kind, &mut entry.value, &here, findings);
        }
    }
}

fn value_of(kind: Kind, node: &mut Node, path: &Path, findings: &mut Findings) {
    coerce(kind, node);
    match (kind, &mut node.data) {
        (Kind::Any, _)
        | (Kind::Map, Data::Map(_))
        | (Kind::Bool, Data::Scalar(Value::Bool(_)))
        | (Kind::Number, Data::Scalar(Value::Number(_)))
        | (Kind::Text, Data::Scalar(Value::String(_))) => {}
        (Kind::Section, Data::Map(_)) => types(node, path, findings),
        (Kind::Sections, Data::List(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                value_of(Kind::Section, item, &path.index(index), findings);
            }
        }
        (Kind::Texts, Data::List(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                value_of(Kind::Text, item, &path.index(index), findings);
            }
        }
        (Kind::TextMap, Data::Map(entries)) => {
            for entry in entries {
                value_of(Kind::Text, &mut entry.value, &path.key(&entry.key), findings);
            }
        }
        (Kind::Int { min, max }, Data::Scalar(Value::Number(number)))
            if number.as_i64().is_some_and(|n| (min..=max).contains(&n)) => {}
        // A century is an agent's forever, and fits into every clock.
        (Kind::Seconds, Data::Scalar(Value::Number(number)))
            if number.as_f64().is_some_and(|seconds| seconds > 0.0 && seconds < 4e9) => {}
        (Kind::Choice(choices), Data::Scalar(Value::String(text)))
            if choices.iter().any(|choice| choice.eq_ignore_ascii_case(text)) => {}
        _ => mismatch(kind, node, path, findings),
    }
}

fn mismatch(kind: Kind, node: &Node, path: &Path, findings: &mut Findings) {
    // A variable that is not set has been reported already, and stands for a value of any type.
    if node.mark.var.is_none() && node.as_str().is_some_and(|text| text.starts_with('$')) {
        findings.broken.insert(path.unit().to_string());
        return;
    }
    let found = match (&node.data, kind) {
        (Data::Scalar(Value::Number(number)), Kind::Int { .. } | Kind::Seconds) => number.to_string(),
        _ => node.kind_name().to_owned(),
    };
    let source = node.mark.var.as_ref().map(|var| format!(" in ${var}")).unwrap_or_default();
    let mut help = match (kind, &node.data) {
        (Kind::Text | Kind::TextMap, Data::Scalar(Value::Number(_) | Value::Bool(_))) => {
            "put the value in quotes".to_owned()
        }
        (Kind::Sections, Data::Map(_)) => "begin the first key of each element with `- `".to_owned(),
        (Kind::Section, Data::Scalar(Value::String(_))) if path.0.len() > 1 => {
            "write it as a map, for example `- name: …`".to_owned()
        }
        _ => format!("write {kind}"),
    };
    if let (Kind::Choice(choices), Some(text)) = (kind, node.as_str())
        && let Some(near) = nearest(text, choices.iter().copied())
    {
        help = format!("did you mean `{near}`?");
    }
    let mark = Mark { var: None, ..node.mark.clone() };
    findings.breakage(path, &mark, format!("expected {kind}, found {found}{source}"), help);
}

/// `1e5` and `012` are floats to YAML, and a variable is always text: both may be meant as something else.
fn coerce(kind: Kind, node: &mut Node) {
    let from_variable = node.mark.var.is_some();
    let Data::Scalar(scalar) = &mut node.data else { return };
    let better = match (kind, &*scalar) {
        (Kind::Int { .. }, Value::Number(number)) if number.is_f64() => number.as_f64().and_then(whole),
        (Kind::Int { .. }, Value::String(text)) if from_variable => {
            text.trim().parse::<i64>().ok().map(Value::from)
        }
        (Kind::Number | Kind::Seconds, Value::String(text)) if from_variable => {
            text.trim().parse().ok().and_then(Number::from_f64).map(Value::Number)
        }
        (Kind::Bool, Value::String(text)) if from_variable => match text.trim().to_ascii_lowercase().as_str()
        {
            "true" | "yes" | "on" | "1" => Some(Value::Bool(true)),
            "false" | "no" | "off" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    };
    if let Some(better) = better {
        *scalar = better;
    }
}

fn whole(number: f64) -> Option<Value> {
    // Up to 2^53 every integer is a float of its own; the text form is exact there.
    (number.fract() == 0.0 && number.abs() < 9e15)
        .then(|| format!("{number:.0}").parse::<i64>().ok().map(Value::from))
        .flatten()
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
