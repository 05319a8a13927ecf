//! The sections of the chain's parts: read, and refused at their place.

use hart_app::Env;
use hart_app::config::{AppConfig, ConfigError, Kind, LoadOptions, catalogue};

const SECTIONS: [&str; 21] = [
    "summarization",
    "context_editing",
    "tool_selection",
    "dynamic_context",
    "title",
    "uploads",
    "view_image",
    "token_usage",
    "token_budget",
    "budget",
    "loop_detection",
    "call_limits",
    "finish_reason",
    "safety_finish_reason",
    "model_error",
    "tool_error",
    "tool_retry",
    "input_sanitization",
    "untrusted_content",
    "unsupported_content",
    "pii",
];

fn load(yaml: &str) -> Result<AppConfig, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.yaml"), yaml).unwrap();
    let env = Env::from_iter([("HART_NO_PROBE", "1")]);
    AppConfig::load(LoadOptions { path: None, cwd: dir.path().to_owned(), env: &env, overrides: None })
}

#[test]
fn what_the_catalogue_tells_as_defaults_are_the_defaults() {
    let mut yaml = String::new();
    for section in SECTIONS {
        yaml.push_str(&format!("{section}:\n"));
        for key in catalogue().iter().filter(|key| key.used && !key.default.is_empty()) {
            let below = key.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
            let Some(name) = below else { continue };
            let in_words = matches!(key.kind, Kind::Any) || name == "model_name" || key.default == "all";
            // A limit that is written is another thing than none.
            if in_words || name.contains('.') || key.kind == Kind::Section {
                continue;
            }
            let value =
                if key.kind == Kind::Text { format!("'{}'", key.default) } else { key.default.into() };
            yaml.push_str(&format!("  {name}: {value}\n"));
        }
    }
    assert!(yaml.matches("enabled: ").count() == SECTIONS.len(), "{yaml}");
    let on: String = SECTIONS.iter().map(|name| format!("{name}: {{enabled: true}}\n")).collect();
    for (written, fresh) in [(yaml.clone(), ""), (yaml.replace("enabled: false", "enabled: true"), &on)] {
        let parts = |text: &str| format!("{:#?}", load(text).unwrap().middleware);
        assert_eq!(parts(&written), parts(fresh), "{written}");
    }
}

#[test]
fn each_section_is_read() {
    let text = "
models: [{name: small, use: ollama, model: m}]
summarization: {model_name: small, trigger: {type: tokens, value: 32000}, keep: {type: messages, value: 10},
  trim_tokens_to_summarize: 15564, summary_prompt: 'Sum up {messages}', truncate_args_over: 99}
context_editing: {enabled: true, trigger: 5000, keep: 1, clear_tool_inputs: true, exclude_tools: [ls]}
tool_selection: {enabled: true, max_tools: 4, always_include: [bash]}
dynamic_context: {date: false, lines: [The office is in Oslo.]}
title: {model_name: small, max_words: 3, max_chars: 30, prompt_template: 'Name {user_msg}'}
view_image: {max_images: 2}
token_budget: {enabled: true, max_tokens: 9000, warn_threshold: 0.5}
budget: {max_cost: 1.5, max_model_calls: 7, max_tool_calls: 8, max_seconds: 90, on_limit: end}
loop_detection: {warn_threshold: 2, hard_limit: 4, tool_freq_overrides: {bash: {warn: 150, hard_limit: 300}}}
call_limits: {max_calls_per_answer: 3, model: {run_limit: 9}, tools: {'*': {thread_limit: 5, exit_behavior: end}}}
finish_reason: {max_continuations: 1}
safety_finish_reason: {enabled: false}
model_error: {fallback_message: true}
tool_error: {strict: true}
tool_retry: {enabled: true, tools: [web_search], max_retries: 5, initial_delay: 0, jitter: false}
untrusted_content: {tools: [read_mail]}
pii: {rules: [{type: email, strategy: mask}, {type: badge, detector: 'B-[0-9]+', apply_to_tool_results: true}]}
";
    let config = load(text).unwrap();
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let parts = &config.middleware;
    let shown = format!("{parts:?}");
    for piece in [
        "model_name: Some(\"small\"), trigger: Triggers([Clause { tokens: Some(32000), messages: None, fraction: None }]), \
         keep: Some(Messages(10)), trim_tokens_to_summarize: Some(15564), summary_prompt: Some(\"Sum up {messages}\"), \
         truncate_args_over: 99",
        "trigger: 5000, keep: 1, clear_at_least: 0, clear_tool_inputs: true, exclude_tools: [\"ls\"]",
        "max_tools: 4, always_include: [\"bash\"]",
        "date: false, lines: [\"The office is in Oslo.\"]",
        "max_words: 3, max_chars: 30, model_name: Some(\"small\"), prompt_template: Some(\"Name {user_msg}\")",
        "max_images: 2, max_total_bytes: 29360128",
        "enabled: true, max_tokens: Some(9000), max_input_tokens: None, max_output_tokens: None, warn_threshold: 0.5, \
         hard_stop_threshold: 1.0, max_cost: Some(1.5), max_model_calls: Some(7), max_tool_calls: Some(8), \
         max_seconds: Some(90.0), on_limit: End",
        "warn_threshold: 2, hard_limit: 4",
        "{\"bash\": ToolFrequency { warn: 150, hard_limit: 300 }}",
        "max_calls_per_answer: 3",
        "run_limit: Some(9), exit_behavior: Continue",
        "{\"*\": CallLimit { thread_limit: Some(5), run_limit: None, exit_behavior: End }}",
        "max_continuations: 1, max_empty_retries: 1, safety: false",
        "fallback_message: true",
        "strict: true",
        "tools: [\"web_search\"], max_retries: 5, backoff_factor: 2.0, initial_delay: 0.0, max_delay: 60.0, jitter: false",
        "tools: [\"read_mail\"]",
        "Mask",
        "badge",
    ] {
        assert!(shown.contains(piece), "{piece}\n{shown}");
    }
    let explained = config.explain_all().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    for line in [
        "token_budget.max_tokens = 9000\n",
        "loop_detection.warn_threshold = 2\n",
        "title.model_name = \"small\"\n",
        "tool_selection.max_tools = 4\n",
        "finish_reason.max_empty_retries = 1\n  from: default\n",
        "pii.rules[1].detector = \"B-[0-9]+\"\n",
    ] {
        assert!(explained.contains(line), "{line}\n{explained}");
    }
}

#[test]
fn each_section_can_be_switched_off() {
    let off: String = SECTIONS.iter().map(|name| format!("{name}: {{enabled: false}}\n")).collect();
    let shown = format!("{:?}", load(&off).unwrap().middleware);
    assert_eq!((shown.matches(": None").count(), shown.matches(": false").count()), (16, 4), "{shown}");
    assert!(!shown.contains("Some"), "{shown}");
}

#[test]
fn files_of_deerflow_load_with_a_word_on_what_is_not_used() {
    let config = load(
        "
token_usage: {enabled: true}
token_budget: {enabled: true, max_tokens: 200000, warn_threshold: 0.8, hard_stop_threshold: 1.0, max_input_tokens: null}
summarization: {enabled: true, model_name: null, trigger: [{type: tokens, value: 15564}, {type: fraction, value: 0.8}],
  keep: {type: messages, value: 10}, trim_tokens_to_summarize: 15564, summary_prompt: null,
  preserve_recent_skill_count: 5, skill_file_read_tool_names: [read_file]}
title: {enabled: true, max_words: 6, max_chars: 60, model_name: null}
loop_detection: {enabled: true, max_tracked_threads: 100, tool_freq_overrides: {bash: {warn: 150, hard_limit: 300}}}
safety_finish_reason: {enabled: true, detectors: [{use: 'deerflow.x:Y'}]}
uploads: {max_files: 10, pdf_converter: auto}
tool_progress: {enabled: false}
",
    )
    .unwrap();
    let warnings: Vec<&str> = config.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        warnings,
        [
            "sections not used by this version: tool_progress",
            "keys not used by this version: summarization.preserve_recent_skill_count, \
             summarization.skill_file_read_tool_names, loop_detection.max_tracked_threads, \
             safety_finish_reason.detectors, uploads.pdf_converter",
        ]
    );
}

#[test]
fn mistakes_are_told_where_they_stand() {
    let models = "models: [{name: small, use: ollama, model: m}, {name: large, use: ollama, model: m}]\n";
    let mut wrong = Vec::new();
    for (section, problem, place, help) in [
        (
            "loop_detection:\n  warn_treshold: 2\n",
            "loop_detection.warn_treshold: unknown key; did you mean `warn_threshold`?",
            "3:3",
            "write `warn_threshold`",
        ),
        (
            "loop_detection:\n  warn_threshold: 6\n",
            "hard_limit is below warn_threshold",
            "3:3",
            "write at least 6",
        ),
        (
            "loop_detection:\n  tool_freq_overrides:\n    bash: {wran: 3}\n",
            "unknown key; did you mean `warn`?",
            "4:12",
            "write `warn`",
        ),
        (
            "title:\n  max_words: six\n",
            "title.max_words: expected an integer, at least 1, found a string",
            "3:14",
            "write an integer",
        ),
        (
            "title:\n  model_name: smal\n",
            "title.model_name: there is no model `smal`; did you mean `small`?",
            "3:15",
            "small, large",
        ),
        (
            "summarization: {model_name: gpt}\n",
            "summarization.model_name: there is no model `gpt`",
            "2:29",
            "small, large",
        ),
        (
            "summarization:\n  keep: {type: pages, value: 3}\n",
            "`pages` is no type of size",
            "3:9",
            "hart config explain summarization.keep",
        ),
        (
            "summarization:\n  trigger: [{type: fraction, value: 2}]\n",
            "a fraction is above 0 and at most 1, not 2",
            "3:12",
            "hart config explain summarization.trigger",
        ),
        (
            "token_budget: {hard_stop_threshold: 0.5}\n",
            "hard_stop_threshold is below warn_threshold",
            "2:37",
            "hart config explain token_budget",
        ),
        ("budget:\n  max_cost: 0\n", "budget.max_cost: 0 buys nothing", "3:13", "above zero"),
        (
            "budget: {on_limit: paus}\n",
            "budget.on_limit: expected one of pause, end",
            "2:20",
            "did you mean `pause`?",
        ),
        ("budget: {max_tokens: 5}\n", "budget.max_tokens: unknown key", "2:10", "remove"),
        ("call_limits:\n  tools: {ls: 3}\n", "call_limits.tools: ", "3:15", "hart config explain"),
        (
            "tool_retry: {enabled: maybe}\n",
            "tool_retry.enabled: expected a boolean",
            "2:23",
            "write a boolean",
        ),
        ("pii: {rules: [{type: email}, {type: badge}]}\n", "pii.rules[1]: ", "2:30", "regular expression"),
        ("pii: {rules: [{type: x, detector: '('}]}\n", "pii.rules[0]: ", "2:15", "regular expression"),
        (
            "pii: {rules: [{type: email, strategy: hide}]}\n",
            "pii.rules[0].strategy: expected one of",
            "2:39",
            "block",
        ),
        ("context_editing: [1]\n", "context_editing: expected a map, found a list", "2:18", "write a map"),
        (
            "contxt_editing: {}\n",
            "contxt_editing: unknown key; did you mean `context_editing`?",
            "2:1",
            "write",
        ),
        ("finish_reason: {safety: false}\n", "finish_reason.safety: unknown key", "2:17", "remove"),
    ] {
        let error = load(&format!("{models}{section}")).unwrap_err();
        let [one] = error.problems() else { panic!("{section}{error}") };
        let right = one.message.contains(problem)
            && one.place.to_string() == format!("config.yaml:{place}")
            && one.help.as_ref().is_some_and(|said| said.contains(help));
        if !right {
            wrong.push(format!("{section}{one}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
