//! `$VAR` into the variable's value.
//!
//! Invariant: only a string that *starts* with `$` names a variable; there is no interpolation inside of text.

use serde_json::Value;

use super::node::{Data, Mark, Node, Path};
use super::problem::Findings;
use crate::Env;

/// Replaces every `$VAR` in the tree; what is missing is reported and left as it stands.
pub(crate) fn resolve(node: &mut Node, path: &Path, env: &Env, findings: &mut Findings) {
    match &mut node.data {
        Data::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                resolve(item, &path.index(index), env, findings);
            }
        }
        Data::Map(entries) => {
            for entry in entries {
                resolve(&mut entry.value, &path.key(&entry.key), env, findings);
            }
        }
        Data::Scalar(Value::String(text)) => {
            let Some(name) = text.strip_prefix('$') else { return };
            let Some(value) = env.get(name) else {
                report(name, &node.mark, path, env, findings);
                return;
            };
            if value.is_empty() {
                let place = findings.place(&node.mark);
                findings.warn(place, format!("{path}: environment variable {name} is set to nothing"));
            }
            findings.secrets.push((value.to_owned(), format!("${name}")));
            node.mark.var = Some(name.to_owned());
            *text = value.to_owned();
        }
        Data::Scalar(_) => {}
    }
}

fn report(name: &str, mark: &Mark, path: &Path, env: &Env, findings: &mut Findings) {
    let braced = name.strip_prefix('{').and_then(|rest| rest.split(['}', ':']).next());
    let shown = name.escape_debug();
    let (message, help) = match braced {
        Some(inner) if is_name(inner) => (
            format!("{path}: `${shown}` is not how a variable is written"),
            format!("write `${inner}`, without braces and default value"),
        ),
        _ if !is_name(name) => (
            // What follows the `$` is no name; it may well be a password, and is not repeated.
            format!("{path}: a value that starts with `$` must name an environment variable"),
            "put the value into a variable and write `$` and its name here".to_owned(),
        ),
        _ => {
            let near = super::nearest::nearest(name, env.names().filter(|known| known.len() > 3));
            let hint = near.map(|near| format!(" (did you mean ${near}?)")).unwrap_or_default();
            (
                format!("{path}: environment variable {name} is not set"),
                format!("export it or remove the field{hint}"),
            )
        }
    };
    findings.problem(mark, message, help);
}

fn is_name(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(word) && text.starts_with(|c: char| !c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolved(value: Value) -> (Value, Findings) {
        let env =
            Env::from_iter([("KEY", "sk-1"), ("URL", "http://h"), ("EMPTY", ""), ("OPENAI_API_KEY", "k")]);
        let mut node = Node::from_json(value);
        let mut findings = Findings::default();
        resolve(&mut node, &Path::default(), &env, &mut findings);
        (node.to_json(), findings)
    }

    #[test]
    fn whole_strings_everywhere() {
        let (value, findings) =
            resolved(json!({"a": "$KEY", "b": [{"c": "$URL"}, "$KEY"], "d": "x$KEY", "e": 1}));
        assert_eq!(value, json!({"a": "sk-1", "b": [{"c": "http://h"}, "sk-1"], "d": "x$KEY", "e": 1}));
        assert!(findings.problems.is_empty());
    }

    #[test]
    fn a_missing_variable_names_itself_and_the_field() {
        let (value, findings) =
            resolved(json!({"models": [{"api_key": "$OPENAI_KEY", "x": "$NOPE_NOT_HERE"}]}));
        assert_eq!(value["models"][0]["api_key"], "$OPENAI_KEY");
        let messages: Vec<_> = findings.problems.iter().map(|p| p.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "models[0].api_key: environment variable OPENAI_KEY is not set",
                "models[0].x: environment variable NOPE_NOT_HERE is not set"
            ]
        );
        assert_eq!(findings.problems[1].help.as_deref(), Some("export it or remove the field"));
    }

    #[test]
    fn what_is_no_name_is_not_repeated() {
        let (_, findings) = resolved(json!({"a": "$", "b": "$pa$$word", "c": "${KEY:-x}"}));
        let all: Vec<_> = findings.problems.iter().map(ToString::to_string).collect();
        assert_eq!(all.len(), 3);
        assert!(!all[1].contains("pa$$word") && all[2].contains("write `$KEY`"), "{all:?}");
    }

    #[test]
    fn an_empty_variable_is_used_and_mentioned() {
        let (value, findings) = resolved(json!({"a": "$EMPTY"}));
        assert_eq!(value, json!({"a": ""}));
        assert_eq!(findings.warnings.len(), 1);
    }
}
