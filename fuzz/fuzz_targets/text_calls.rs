#![no_main]
//! Calls in text: the same in one piece and letter by letter, and only of tools that are offered.

use std::sync::Arc;

use hart_kernel::ToolSpec;
use hart_models::{CallsInText, TextOptions, scan_text};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let tools = ["ls", "get_weather", "write_file", "search"].map(|name| {
        let input_schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        Arc::new(ToolSpec { name: name.to_owned(), description: String::new(), input_schema, effect: hart_kernel::Effect::Pure })
    });
    let options = TextOptions { calls: CallsInText::UnlessNative, think: true, opened: false };
    let text = String::from_utf8_lossy(bytes);
    let letters = text.char_indices().filter_map(|(at, c)| text.get(at..at + c.len_utf8()));
    for cut in [false, true] {
        let whole = scan_text(&tools, [&*text], options, cut).1;
        let single = scan_text(&tools, letters.clone(), options, cut).1;
        assert_eq!(whole.content, single.content);
        let calls = |message: &hart_types::Message| -> Vec<(String, Value)> {
            let calls = message.tool_calls().iter();
            calls.map(|call| (call.name.clone(), Value::Object(call.args.clone()))).collect()
        };
        assert_eq!(calls(&whole), calls(&single));
        assert!(calls(&whole).iter().all(|(name, _)| tools.iter().any(|tool| tool.name == *name)));
    }
});
