//! Reads the arguments a model wrote for a tool call.
//!
//! Invariant: any text either is a JSON object or gets an error that says what is wrong and where.

use serde_json::{Map, Value};

use crate::repair::{Closing, repair_with};

/// The arguments as an object. A call without arguments often comes as an empty string.
pub fn parse_tool_arguments(text: &str) -> Result<Map<String, Value>, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(trimmed) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(format!("the arguments must be a JSON object, found {}", kind(&other))),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

/// The arguments of a call, and whether they had to be mended. When the answer was `cut` off, nothing that is
/// missing is made up: half a file must not be written.
pub(crate) fn read_tool_arguments(text: &str, cut: bool) -> Result<(Map<String, Value>, bool), String> {
    let error = match parse_tool_arguments(text) {
        Ok(args) => return Ok((args, false)),
        Err(error) => error,
    };
    let closing = if cut { Closing::Never } else { Closing::Brackets };
    match repair_with(text, closing).map(|read| read.value) {
        Ok(Value::Object(args)) => Ok((args, true)),
        _ if cut => Err(format!("{error}; the answer was cut off here, so try again with less at once")),
        _ => Err(error),
    }
}

/// Whether the provider says that it stopped for want of tokens.
pub(crate) fn is_cut(reason: &str) -> bool {
    ["length", "max_tokens", "model_length", "max_output_tokens"]
        .iter()
        .any(|word| reason.eq_ignore_ascii_case(word))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_taken_and_nothing_is_an_empty_object() {
        assert_eq!(parse_tool_arguments("").unwrap(), Map::new());
        assert_eq!(parse_tool_arguments(" \n\t ").unwrap(), Map::new());
        assert_eq!(parse_tool_arguments(" {\"a\": 1}\n").unwrap()["a"], 1);
    }

    #[test]
    fn an_error_says_what_and_where() {
        let error = |text: &str| parse_tool_arguments(text).unwrap_err();
        assert_eq!(error("[1]"), "the arguments must be a JSON object, found an array");
        assert_eq!(error("null"), "the arguments must be a JSON object, found null");
        let cut = error("{\"path\": \"a");
        assert!(cut.contains("EOF while parsing a string at line 1 column 11"), "{cut}");
        assert!(error("{\"a\": 1} {\"b\": 2}").contains("trailing characters at line 1 column 10"));
    }

    #[test]
    fn mended_arguments_are_marked_and_cut_ones_stay_broken() {
        let read = |text: &str, cut| read_tool_arguments(text, cut);
        let args = parse_tool_arguments("{\"a\": 1}").unwrap();
        assert_eq!(read("{\"a\": 1}", true), Ok((args.clone(), false)));
        assert_eq!(read("{'a': 1,}", true), Ok((args.clone(), true)));
        assert_eq!(read("\"{\\\"a\\\": 1}\"", true), Ok((args.clone(), true)));
        assert_eq!(read("{\"a\": 1,", false), Ok((args, true)));
        assert!(read("{\"a\": 1,", true).unwrap_err().contains("cut off"));
        assert!(read("{\"content\": \"half of a fi", false).is_err());
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        assert!(parse_tool_arguments(&deep).unwrap_err().contains("recursion limit"));
    }
}
