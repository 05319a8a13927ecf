use hart_kernel::{MessageList, ModelSettings};
use serde_json::{Map, json};

use super::*;

fn request(name: &str, schema: Value) -> ChatRequest {
    ChatRequest {
        caller: "lead".into(),
        system: Some("S".into()),
        messages: MessageList::default(),
        tools: Arc::from([]),
        settings: ModelSettings {
            output: OutputFormat::Json { name: name.into(), schema },
            ..ModelSettings::default()
        },
    }
}

#[test]
fn the_json_is_found_among_other_words() {
    let json = r#"{"a": [1, {"b": "}"}]}"#;
    for text in [
        json.to_owned(),
        format!("  {json}\n"),
        format!("```json\n{json}\n```"),
        format!("Here it is [1]:\n\n{json}\n\nAnything else?"),
        format!("<think>maybe {{\"a\": 0, \"longer\": \"than the answer itself\"}}</think>{json}"),
    ] {
        assert_eq!(json_in(&text), json, "{text}");
    }
    for text in ["", "no", "{", "{\"a\":", "\"just a text\"", "3"] {
        assert_eq!(json_in(text), text);
    }
    assert_eq!(json_in(&"[".repeat(10_000)).len(), 10_000, "hostile nesting ends");
}

#[test]
fn names_are_made_to_fit() {
    assert_eq!(identifier("Plan für heute"), "Plan_f_r_heute");
    assert_eq!(identifier(""), "answer");
    assert_eq!(identifier(&"x".repeat(100)).len(), 64);
}

#[test]
fn each_way_changes_the_request_as_it_must() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut asked = request("Plan", schema.clone());
    assert_eq!(prepare(StructuredOutput::Schema, &mut asked), After::Nothing);
    assert_eq!(asked.system.as_deref(), Some("S"));

    let mut asked = request("Plan", schema.clone());
    assert_eq!(prepare(StructuredOutput::Object, &mut asked), After::Extract);
    let system = asked.system.clone().unwrap();
    assert!(system.starts_with("S\n\n") && system.ends_with(&schema.to_string()), "{system}");
    assert_ne!(asked.settings.output, OutputFormat::Text);

    let mut asked = request("Plan", schema.clone());
    assert_eq!(prepare(StructuredOutput::Prompt, &mut asked), After::Extract);
    assert_eq!(asked.settings.output, OutputFormat::Text);

    let mut asked = request("Plan", schema.clone());
    assert_eq!(prepare(StructuredOutput::Tool, &mut asked), After::Call("Plan".into()));
    assert_eq!(asked.tools[0].input_schema, schema);
    assert_eq!(asked.settings.tool_choice, ToolChoice::Named("Plan".into()));

    let mut asked = request("Plan", json!({"type": "array"}));
    asked.tools = [Arc::new(ToolSpec {
        name: "ls".into(),
        description: String::new(),
        input_schema: json!({}),
        effect: hart_kernel::Effect::Pure,
    })]
    .into();
    prepare(StructuredOutput::Tool, &mut asked);
    assert_eq!(asked.settings.tool_choice, ToolChoice::Required, "the other tools stay within reach");
    assert_eq!(asked.tools[1].input_schema["properties"]["value"], json!({"type": "array"}));

    let mut text = request("Plan", schema);
    text.settings.output = OutputFormat::Text;
    assert_eq!(prepare(StructuredOutput::Tool, &mut text), After::Nothing);
    assert!(text.tools.is_empty());
}

#[test]
fn strict_is_asked_for_only_where_it_is_taken() {
    let object = |more: Value| {
        let mut schema = json!({
            "type": "object", "properties": {"a": {"type": "string"}},
            "required": ["a"], "additionalProperties": false,
        });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    assert!(is_strict(&object(json!({}))));
    assert!(is_strict(&object(json!({"properties": {"a": {"type": ["string", "null"]}}}))));
    let nested = object(json!({"properties": {"a": {"type": "array", "items": object(json!({}))}}}));
    assert!(is_strict(&nested));
    for loose in [
        object(json!({"required": []})),
        object(json!({"additionalProperties": true})),
        object(json!({"properties": {"a": {"type": "object"}}})),
        object(json!({"properties": {"a": {}}})),
        object(json!({"properties": {"a": {"oneOf": []}}})),
        object(json!({"allOf": [object(json!({}))]})),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"anyOf": [object(json!({}))]}),
        json!(true),
        json!(null),
    ] {
        assert!(!is_strict(&loose), "{loose}");
    }
}

#[test]
fn a_schema_is_closed_and_its_bounds_are_told() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many"},
            "list": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "object", "properties": {}}},
        },
        "$defs": {"x": {"anyOf": [{"type": "object", "properties": {}}, {"type": "null"}]}},
    });
    let want = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "How many (minimum: 1, maximum: 9)"},
            "list": {
                "type": "array", "minItems": 1,
                "items": {"type": "object", "properties": {}, "additionalProperties": false},
                "description": "(maxItems: 3)",
            },
        },
        "$defs": {"x": {"anyOf": [{"type": "object", "properties": {}, "additionalProperties": false}, {"type": "null"}]}},
        "additionalProperties": false,
    });
    assert_eq!(closed(&schema).unwrap(), want);
    for impossible in [
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"child": {"$ref": "#"}}}),
        json!({"type": "array", "items": {"allOf": []}}),
        json!(true),
        json!({}),
    ] {
        assert_eq!(closed(&impossible), None, "{impossible}");
    }
}

#[test]
fn the_call_becomes_the_text_and_thoughts_stay() {
    let mut message = Message::ai(vec![Block::reasoning("hm"), Block::text("Sure:")]);
    let Body::Ai(ai) = &mut message.body else { panic!("an answer") };
    let args = Map::from_iter([("value".to_owned(), json!([1, 2]))]);
    ai.tool_calls.push(hart_types::ToolCall::new("c1", "Plan", args));
    message.response_metadata.insert("stop_reason".into(), "tool_use".into());
    let chunks = called(Ok(ChatChunk::Done(Box::new(message.clone()))), "Plan", true);
    let [Ok(ChatChunk::Text(text)), Ok(ChatChunk::Done(done))] = chunks.as_slice() else {
        panic!("{chunks:?}")
    };
    assert_eq!((text.as_str(), done.text().as_str()), ("[1,2]", "[1,2]"));
    assert!(done.tool_calls().is_empty());
    assert_eq!(done.response_metadata["stop_reason"], "end_turn");
    assert_eq!(done.content.to_blocks()[0], Block::reasoning("hm"));

    let chunks = called(Ok(ChatChunk::Done(Box::new(message))), "Other", true);
    assert!(matches!(
        chunks.as_slice(),
        [Ok(ChatChunk::Text(_)), Ok(ChatChunk::ToolCall(_)), Ok(ChatChunk::Done(_))]
    ));
}
