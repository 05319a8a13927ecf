//! Whether a report is what its JSON schema asks for.
//!
//! Invariant: a word of the schema that is not known here asks for nothing; what is refused is named with its place.

use hart_types::json_type;
use serde_json::{Map, Value};

/// What does not fit, or nothing.
pub(super) fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    check(schema, schema, value, "report", DEEPEST)
}

/// Schemas may refer to themselves.
const DEEPEST: u32 = 64;

fn check(root: &Value, schema: &Value, value: &Value, at: &str, deeper: u32) -> Option<String> {
    let deeper = deeper.checked_sub(1)?;
    let schema = match schema {
        Value::Bool(false) => return Some(format!("`{at}` is not allowed")),
        Value::Object(schema) => schema,
        _ => return None,
    };
    let inside = |schema: &Value, value: &Value, at: &str| check(root, schema, value, at, deeper);
    if let Some(named) = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'))
        && let Some(problem) = root.pointer(named).and_then(|schema| inside(schema, value, at))
    {
        return Some(problem);
    }
    if let Some(problem) = of_value(schema, value, at) {
        return Some(problem);
    }
    let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    if let Some(problem) = all.filter_map(|schema| inside(schema, value, at)).next() {
        return Some(problem);
    }
    for key in ["anyOf", "oneOf"] {
        let Some(choices) = schema.get(key).and_then(Value::as_array) else { continue };
        if !choices.iter().any(|schema| inside(schema, value, at).is_none()) {
            return Some(format!("`{at}` fits none of the {} forms it may have", choices.len()));
        }
    }
    match value {
        Value::Object(map) => of_object(schema, map, at, &inside),
        Value::Array(items) => {
            let schema = schema.get("items")?;
            let places = items.iter().enumerate();
            places.filter_map(|(nth, item)| inside(schema, item, &format!("{at}[{nth}]"))).next()
        }
        _ => None,
    }
}

type Inside<'a> = dyn Fn(&Value, &Value, &str) -> Option<String> + 'a;

fn of_object(
    schema: &Map<String, Value>,
    map: &Map<String, Value>,
    at: &str,
    inside: &Inside<'_>,
) -> Option<String> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    if let Some(key) = required.filter_map(Value::as_str).find(|key| !map.contains_key(*key)) {
        return Some(format!("`{at}.{key}` is missing"));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, value) in map {
        let place = format!("{at}.{key}");
        let of_key = properties.and_then(|properties| properties.get(key));
        let schema = of_key.or_else(|| schema.get("additionalProperties"));
        if let Some(problem) = schema.and_then(|schema| inside(schema, value, &place)) {
            return Some(problem);
        }
    }
    None
}

/// What is asked of the value itself.
fn of_value(schema: &Map<String, Value>, value: &Value, at: &str) -> Option<String> {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(value, kind)) {
        return Some(format!("`{at}` is {}, not {}", json_type(value), kinds.join(" or ")));
    }
    let choices = schema.get("enum").and_then(Value::as_array);
    if choices.is_some_and(|choices| !choices.contains(value))
        || schema.get("const").is_some_and(|only| only != value)
    {
        return Some(format!("`{at}` is {value}, which is none of its values"));
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let (low, high, measured) = match value {
        Value::Number(number) => (bound("minimum"), bound("maximum"), number.as_f64()?),
        Value::String(text) => (bound("minLength"), bound("maxLength"), text.chars().count() as f64),
        Value::Array(items) => (bound("minItems"), bound("maxItems"), items.len() as f64),
        _ => return None,
    };
    let outside = low.is_some_and(|low| measured < low) || high.is_some_and(|high| measured > high);
    outside.then(|| format!("`{at}` is too small or too large: {measured}"))
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        kind => json_type(value) == kind,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_fits_or_the_place_is_named() {
        let schema = json!({
            "type": "object", "required": ["defects"], "additionalProperties": false,
            "properties": {
                "defects": {"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/defect"}},
                "note": {"type": ["string", "null"], "maxLength": 5},
                "who": {"anyOf": [{"type": "integer"}, {"const": "nobody"}]},
            },
            "$defs": {"defect": {
                "type": "object", "required": ["file", "line"],
                "properties": {"line": {"type": "integer", "minimum": 1}, "grave": {"enum": ["yes", "no"]}},
            }},
        });
        let defect = json!({"file": "a", "line": 3, "grave": "no"});
        for good in [
            json!({"defects": []}),
            json!({"defects": [defect], "note": null, "who": 7}),
            json!({"defects": [{"file": 1, "line": 2.0}], "who": "nobody"}),
        ] {
            assert_eq!(mismatch(&schema, &good), None, "{good}");
        }
        for (bad, says) in [
            (json!("text"), "`report` is string, not object"),
            (json!({}), "`report.defects` is missing"),
            (json!({"defects": {}}), "`report.defects` is object, not array"),
            (json!({"defects": [{"file": "a"}]}), "`report.defects[0].line` is missing"),
            (json!({"defects": [{"file": "a", "line": 0}]}), "`report.defects[0].line` is too small"),
            (json!({"defects": [{"file": "a", "line": 1.5}]}), "not integer"),
            (json!({"defects": [{"file": "a", "line": 1, "grave": "very"}]}), "none of its values"),
            (json!({"defects": [defect, defect, defect, defect]}), "too large: 4"),
            (json!({"defects": [], "note": "too long"}), "`report.note`"),
            (json!({"defects": [], "who": "me"}), "fits none of the 2 forms"),
            (json!({"defects": [], "extra": 1}), "`report.extra` is not allowed"),
        ] {
            let problem = mismatch(&schema, &bad).unwrap_or_default();
            assert!(problem.contains(says), "{bad}: {problem}");
        }
        let endless = json!({"$ref": "#"});
        assert_eq!(mismatch(&endless, &json!(1)), None);
    }
}
