//! What each file of the corpus means.

use serde_json::{Value, json};

#[derive(Default)]
pub(super) struct Meant {
    text: &'static str,
    reasoning: &'static str,
    pub(super) calls: Vec<(&'static str, Value)>,
    invalid: Vec<&'static str>,
}

impl Meant {
    pub(super) fn summary(&self) -> Value {
        let calls: Vec<_> = self.calls.iter().map(|(name, args)| json!([name, args])).collect();
        json!({"text": self.text, "reasoning": self.reasoning, "calls": calls, "invalid": self.invalid})
    }
}

fn calls<const N: usize>(text: &'static str, calls: [(&'static str, Value); N]) -> Meant {
    Meant { text, calls: calls.into(), ..Meant::default() }
}

fn thought(reasoning: &'static str, text: &'static str) -> Meant {
    Meant { text, reasoning, ..Meant::default() }
}

pub(super) fn table() -> Vec<(&'static str, Meant)> {
    let paris = || ("get_weather", json!({"city": "Paris"}));
    let root = || ("ls", json!({"path": "/"}));
    let tmp = || ("ls", json!({"path": "/tmp"}));
    let called = |reasoning, call| Meant { reasoning, ..calls("", [call]) };
    vec![
        ("bare_json", calls("", [paris()])),
        ("bare_json_after_prose", calls("Let me look that up.\n\n", [paris()])),
        ("bare_json_parameters", calls("", [("get_weather", json!({"city": "Paris", "days": 3}))])),
        ("bare_json_list", calls("", [paris(), tmp()])),
        ("bare_json_lines", calls("", [paris(), tmp()])),
        ("bare_json_string_arguments", calls("", [("ls", json!({"path": "/a"}))])),
        ("bare_json_forgotten_brace", calls("", [paris()])),
        ("fenced_json", calls("", [paris()])),
        ("fenced_after_prose", calls("I will check the weather now.\n\n", [paris()])),
        ("fenced_tool_call", calls("", [paris()])),
        ("hermes", calls("", [paris()])),
        ("hermes_between_text", calls("Checking both.\n\nDone.", [paris(), root()])),
        ("hermes_no_end", calls("Sure.\n", [paris()])),
        ("hermes_forgotten_brace", calls("", [paris()])),
        ("hermes_extra_brace", calls("", [paris()])),
        ("hermes_python_literals", calls("", [("get_weather", json!({"city": "Paris", "metric": true}))])),
        (
            "hermes_markup_in_string",
            calls("", [("write_file", json!({"path": "a.html", "content": "<b>}</tool_call>{</b>"}))]),
        ),
        ("hermes_broken", Meant { text: " What now?", invalid: vec!["ls"], ..Meant::default() }),
        ("hermes_function_envelope", calls("", [root()])),
        (
            "qwen_coder",
            calls(
                "I'll write it.\n",
                [(
                    "write_file",
                    json!({"path": "src/a.rs", "content": "fn main() {\n    println!(\"<x>\");\n}\n"}),
                )],
            ),
        ),
        (
            "qwen_coder_types",
            calls(
                "",
                [(
                    "search",
                    json!({"queries": ["a", "b"], "opts": {"deep": true}, "limit": 5, "exact": false}),
                )],
            ),
        ),
        (
            "qwen_coder_about_itself",
            calls(
                "",
                [(
                    "write_file",
                    json!({"path": "doc.md", "content": "Close with </parameter> and then </function> at the end."}),
                )],
            ),
        ),
        ("llama_function_json", calls("", [paris()])),
        ("kimi", calls("Looking.", [paris(), root()])),
        ("deepseek_v3", calls("", [paris(), root()])),
        ("deepseek_v31", calls("One moment.", [paris()])),
        (
            "deepseek_dsml",
            calls(
                "Searching.\n\n",
                [("search", json!({"queries": ["搜索"], "limit": 10, "note": "10"})), root()],
            ),
        ),
        ("llama_python_tag", calls("", [paris()])),
        ("llama_python_tag_two", calls("", [paris(), root()])),
        ("llama_python_tag_call", calls("", [("get_weather", json!({"city": "Paris", "days": 2}))])),
        ("llama_typed", calls("", [paris()])),
        ("mistral_list", calls("", [paris(), root()])),
        ("mistral_args", calls("On it.", [paris(), root()])),
        ("mistral_call_id", calls("", [root()])),
        (
            "pythonic",
            calls(
                "",
                [
                    ("get_weather", json!({"city": "Paris", "days": 3, "metric": true})),
                    ("ls", json!({"path": "/it's"})),
                ],
            ),
        ),
        (
            "pythonic_nested",
            calls("", [("search", json!({"queries": ["a (b)", "c"], "opts": {"k": [1, null]}}))]),
        ),
        ("lfm", calls("Checking.The weather follows.", [paris()])),
        ("harmony", called("The user wants the weather.", paris())),
        ("harmony_final", thought("Easy.", "It is 4.")),
        ("harmony_preamble", calls("I will look.", [root()])),
        ("glm", calls("", [("get_weather", json!({"city": "Paris", "days": 3}))])),
        ("glm_inline", calls("Sure.", [("now", json!({})), ("ls", json!({"path": "/a\nb"}))])),
        ("minimax", calls("", [("search", json!({"queries": ["x"], "exact": true})), root()])),
        ("invoke_alone", calls("", [root()])),
        ("tool_calls_lines", calls("", [paris(), root()])),
        ("granite", calls("", [root()])),
        ("name_with_namespace", calls("", [paris()])),
        ("unknown_next_to_known", Meant { invalid: vec!["rm"], ..calls("", [root()]) }),
        ("think", thought("The user greets.", "Hello!")),
        ("think_empty", thought("", "Hello!")),
        ("think_then_call", called("I need `ls`. Maybe <tool_call>? Yes.", root())),
        ("thinking", thought("a < b", "Yes.")),
        ("think_open_end", thought("I never stop", "")),
        ("think_unopened", thought("The user greets.\n\nI greet back.", "Hello!")),
        ("think_aside", thought("hm, really?", "First this.\n\nThen that.")),
    ]
}
