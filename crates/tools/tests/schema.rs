//! What models are told about the tools.

use std::sync::Arc;

use hart_kernel::ToolSpec;
use serde_json::{Value, json};

use crate::place::Closed;

/// `(tool, its arguments in order, those it requires)`.
const EXPECTED: [(&str, &[&str], &[&str]); 14] = [
    ("bash", &["description", "command", "background"], &["description", "command"]),
    ("background", &["description", "action", "id", "wait_seconds"], &["description", "action"]),
    ("ls", &["description", "path"], &["description", "path"]),
    (
        "glob",
        &["description", "pattern", "path", "include_dirs", "max_results"],
        &["description", "pattern", "path"],
    ),
    (
        "grep",
        &[
            "description",
            "pattern",
            "path",
            "glob",
            "literal",
            "case_sensitive",
            "output_mode",
            "context",
            "before",
            "after",
            "max_results",
        ],
        &["description", "pattern", "path"],
    ),
    ("read_file", &["description", "path", "start_line", "end_line"], &["description", "path"]),
    ("write_file", &["description", "path", "content", "append"], &["description", "path", "content"]),
    (
        "str_replace",
        &["description", "path", "old_str", "new_str", "replace_all"],
        &["description", "path", "old_str", "new_str"],
    ),
    ("delete", &["description", "path"], &["description", "path"]),
    ("present_files", &["filepaths"], &["filepaths"]),
    (
        "ask_clarification",
        &["question", "clarification_type", "context", "options", "fields"],
        &["question", "clarification_type"],
    ),
    ("write_todos", &["todos"], &["todos"]),
    ("view_image", &["description", "paths"], &["description", "paths"]),
    ("list_uploaded_files", &["description", "include_outline", "max_results"], &["description"]),
];

fn specs() -> Vec<ToolSpec> {
    let more = [
        hart_tools::ask_clarification(),
        hart_tools::write_todos(),
        hart_tools::view_image(Arc::new(Closed)),
        hart_tools::list_uploaded_files(Arc::new(Closed)),
    ];
    let tools = Closed::tools().into_iter().chain(more);
    tools.map(|tool| ToolSpec::clone(tool.spec())).collect()
}

fn schema(tool: &str) -> Value {
    specs().into_iter().find(|spec| spec.name == tool).unwrap().input_schema
}

#[test]
fn arguments_have_their_order_and_their_duties() {
    let specs = specs();
    assert_eq!(specs.len(), EXPECTED.len());
    for (spec, (name, arguments, required)) in specs.iter().zip(EXPECTED) {
        assert_eq!(spec.name, name);
        let properties: Vec<&str> =
            spec.input_schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(properties, arguments, "{name}");
        assert_eq!(spec.input_schema["required"], json!(required), "{name}");
        assert_eq!(spec.input_schema["type"], "object", "{name}");
    }
}

#[test]
fn everything_is_explained() {
    for spec in specs() {
        assert!(spec.description.len() > 100, "{}", spec.name);
        for (argument, schema) in spec.input_schema["properties"].as_object().unwrap() {
            let explained = schema["description"].as_str().is_some_and(|text| text.len() > 10);
            assert!(explained, "{}.{argument}: {schema}", spec.name);
            assert!(schema.get("$ref").is_none(), "{}.{argument} is inlined", spec.name);
        }
    }
}

#[test]
fn the_schema_of_glob_to_the_letter() {
    assert_eq!(
        schema("glob"),
        json!({
            "type": "object",
            "properties": {
                "description": {
                    "description": "Why you make this call, in a few words the user can read. ALWAYS give \
                     this argument, and give it FIRST.",
                    "type": "string",
                },
                "pattern": {
                    "description": "A name at any depth below `path`, such as `*.csv` or `*.{png,jpg}`; with a \
                     `/` in it a path below `path`, such as\n`src/**/test_*.py`, or `./*.csv` for this directory \
                     alone.",
                    "type": "string",
                },
                "path": {"description": "The absolute path of the directory to search in.", "type": "string"},
                "include_dirs": {
                    "description": "Whether directories are results too.", "type": "boolean",
                    "default": false,
                },
                "max_results": {
                    "description": "How many results at most.",
                    "type": "integer", "minimum": 1, "maximum": 1000, "default": 200,
                },
            },
            "required": ["description", "pattern", "path"],
        })
    );
}

#[test]
fn bounds_and_choices_are_in_the_schema() {
    assert_eq!(schema("grep")["properties"]["max_results"]["maximum"], 500);
    assert_eq!(schema("grep")["properties"]["max_results"]["default"], 100);
    let modes = json!(["content", "files_with_matches", "count"]);
    assert_eq!(schema("grep")["properties"]["output_mode"]["enum"], modes);
    assert_eq!(schema("grep")["properties"]["output_mode"]["default"], "content");
    assert_eq!(schema("present_files")["properties"]["filepaths"]["items"]["type"], "string");
    let kinds = schema("ask_clarification")["properties"]["clarification_type"]["enum"].clone();
    assert_eq!(
        kinds,
        json!([
            "missing_info",
            "ambiguous_requirement",
            "approach_choice",
            "risk_confirmation",
            "suggestion"
        ])
    );
}

#[test]
fn names_from_elsewhere_are_understood_and_not_advertised() {
    let tools = Closed::tools();
    let aliases: Vec<_> = tools
        .iter()
        .flat_map(|tool| tool.aliases().iter().map(|alias| (*alias, &*tool.spec().name)))
        .collect();
    assert_eq!(aliases, [("execute", "bash"), ("edit_file", "str_replace")]);
    let advertised =
        serde_json::to_string(&specs().iter().map(|s| &s.input_schema).collect::<Vec<_>>()).unwrap();
    for name in ["file_path", "old_string", "new_string", "offset", "edit_file", "max_count", "-C"] {
        assert!(!advertised.contains(name), "{name}");
    }
}
