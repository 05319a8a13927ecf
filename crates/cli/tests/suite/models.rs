//! `hart models show` and `probe`, against endpoints that behave and endpoints that do not.

use hart_testkit::{Dialect, RecordedRequest, Turn};
use serde_json::{Value, json};

use super::bench::{ALL, Bench, offline};

fn config(bench: &Bench, dialect: Dialect, more: &str) {
    let (provider, base) = match dialect {
        Dialect::OpenAi => ("openai-compatible", bench.server.openai_base()),
        Dialect::Anthropic => ("anthropic", bench.server.anthropic_base()),
        Dialect::Gemini => ("gemini", bench.server.gemini_base()),
        Dialect::Ollama => ("ollama", bench.server.ollama_base()),
        Dialect::Responses => ("openai-compatible\n    use_responses_api: true", bench.server.openai_base()),
    };
    let text = format!(
        "models:\n  - name: mine\n    use: {provider}\n    model: m-1\n    base_url: {base}\n    api_key: sk-very-secret\n{more}"
    );
    bench.write("config.yaml", &text);
}

#[test]
fn show_tells_each_value_and_who_said_so() {
    let dir = tempfile::tempdir().unwrap();
    let text = "models:\n  - name: mine\n    use: langchain_anthropic:ChatAnthropic\n    model: claude-sonnet-5-5\n    \
                api_key: $MY_KEY\n    context_window: 32000\n    temperature: 0.5\n    max_retries: 5\n    \
                capabilities: {vision: false}\n";
    std::fs::write(dir.path().join("config.yaml"), text).unwrap();
    let hart = || offline(dir.path()).env("MY_KEY", "sk-very-secret");
    let ran = hart().args(["models", "show", "mine"]).run().success();
    let row = |key: &str| {
        let found = ran.stdout.lines().find(|line| line.starts_with(&format!("{key} ")));
        found
            .unwrap_or_else(|| panic!("no {key} in\n{}", ran.stdout))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(
        row("context_window").starts_with("context_window 32000 ")
            && row("context_window").ends_with("config.yaml:6")
    );
    assert!(
        row("max_output").contains("128000 catalogue (anthropic: claude-sonnet-5?5*)"),
        "{}",
        row("max_output")
    );
    assert!(row("tool_choice").starts_with("tool_choice auto, none catalogue"), "{}", row("tool_choice"));
    assert!(
        row("vision").starts_with("vision no ") && row("vision").ends_with("config.yaml:9"),
        "{}",
        row("vision")
    );
    assert!(row("parallel_calls").ends_with("provider anthropic"));
    assert_eq!(row("api_key"), "api_key set, not shown environment variable MY_KEY");
    assert_eq!(row("base_url"), "base_url https://api.anthropic.com provider anthropic");
    assert_eq!(row("dialect"), "dialect anthropic provider anthropic");
    assert!(row("stream_chunk_timeout").contains("240.0 default"));
    assert!(row("max_retries").contains("5") && row("max_retries").ends_with("config.yaml:8"));
    assert!(
        row("temperature").ends_with("config.yaml:7; not sent: the model does not take it"),
        "{}",
        row("temperature")
    );
    assert!(
        row("price").contains("in 2.0, out 10.0, cached 0.2 USD")
            || row("price").contains("in 2, out 10, cached 0.2 USD"),
        "{}",
        row("price")
    );
    assert!(row("probed").contains("never"));
    let json = hart().args(["models", "show", "--json"]).run().success();
    let sheet: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&sheet["name"], &sheet["capabilities"]["context_window"]["value"]),
        (&json!("mine"), &json!(32000))
    );
    assert_eq!(sheet["settings"]["temperature"]["value"], json!(0.5), "the setting is not the capability");
    assert_eq!(sheet["capabilities"]["temperature"]["value"], json!(false));
    assert!(!format!("{}{}", ran.stdout, json.stdout).contains("very-secret"));
}

#[test]
fn show_tells_the_limits_the_way_out_and_who_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let text = "network: {proxy: 'http://ada:hunter2@out:1'}\nllm_call: {max_concurrent_calls: 7}\nmodels:\n  \
                - {name: plain, use: openai, model: gpt-5.6, api_key: k}\n  \
                - name: mine\n    use: anthropic\n    model: claude-sonnet-5-5\n    api_key: k\n    \
                requests_per_minute: 50\n    tokens_per_minute: 9000\n    max_concurrent_calls: 3\n    \
                proxy: http://ada:hunter2@own:2\n    enable_prompt_caching: false\n    fallbacks: [plain]\n";
    std::fs::write(dir.path().join("config.yaml"), text).unwrap();
    let show = |name: &str, env: &[(&str, &str)]| {
        let mut hart = offline(dir.path());
        for (key, value) in env {
            hart = hart.env(key, value);
        }
        let ran = hart.args(["models", "show", name]).run().success();
        assert!(!ran.stdout.contains("hunter2"), "{}", ran.stdout);
        ran.stdout
    };
    let row = |sheet: &str, key: &str| {
        let found = sheet.lines().find(|line| line.starts_with(&format!("{key} ")));
        let found = found.unwrap_or_else(|| panic!("no {key} in\n{sheet}"));
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mine = show("mine", &[]);
    for (key, value, line) in [
        ("requests_per_minute", "50", 9),
        ("tokens_per_minute", "9000", 10),
        ("max_concurrent_calls", "3", 11),
        ("proxy", "http://********@own:2/", 12),
        ("prompt_caching", "no", 13),
        ("fallbacks", "plain", 14),
    ] {
        let row = row(&mine, key);
        assert!(row.starts_with(&format!("{key} {value} ")), "{row}");
        assert!(row.ends_with(&format!("config.yaml:{line}")), "{row}");
    }
    let plain = show("plain", &[]);
    assert_eq!(row(&plain, "requests_per_minute"), "requests_per_minute none default");
    assert_eq!(row(&plain, "tokens_per_minute"), "tokens_per_minute none default");
    assert!(row(&plain, "max_concurrent_calls").starts_with("max_concurrent_calls 7 "), "{plain}");
    assert!(row(&plain, "max_concurrent_calls").contains("config.yaml:2"), "{plain}");
    assert!(row(&plain, "proxy").starts_with("proxy http://********@out:1/ "), "{plain}");
    assert!(row(&plain, "proxy").ends_with("config.yaml:1"), "{plain}");
    assert_eq!(row(&plain, "prompt_caching"), "prompt_caching left to the server provider openai");
    assert_eq!(row(&plain, "fallbacks"), "fallbacks none default");

    std::fs::write(
        dir.path().join("config.yaml"),
        "models: [{name: plain, use: anthropic, model: m, api_key: k}]",
    )
    .unwrap();
    assert_eq!(row(&show("plain", &[]), "proxy"), "proxy none default");
    assert_eq!(row(&show("plain", &[]), "prompt_caching"), "prompt_caching yes default");
    let from_env = show("plain", &[("HTTPS_PROXY", "http://ada:hunter2@env:3")]);
    assert_eq!(row(&from_env, "proxy"), "proxy http://********@env:3/ environment variable HTTPS_PROXY");
}

#[test]
fn show_of_a_model_by_key_and_of_none() {
    let bench = Bench::new(Dialect::OpenAi);
    let ran = bench.hart().args(["models", "show"]).run().success();
    assert!(ran.stdout.contains("environment variable OPENAI_API_KEY"), "{}", ran.stdout);
    assert!(bench.server.requests().is_empty(), "showing calls nobody");
    let dir = tempfile::tempdir().unwrap();
    let none = offline(dir.path()).args(["models", "show"]).run();
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr.contains("no model is connected") && none.stderr.contains("hart doctor"),
        "{}",
        none.stderr
    );
    let unknown = offline(dir.path()).args(["models", "probe", "nope"]).run();
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("there is no model `nope`"), "{}", unknown.stderr);
}

#[test]
fn list_is_what_models_alone_does() {
    let bench = Bench::new(Dialect::OpenAi);
    let plain = bench.hart().arg("models").run().success();
    assert_eq!(bench.hart().args(["models", "list"]).run().success().stdout, plain.stdout);
    let json = bench.hart().args(["models", "list", "--json"]).run().success();
    assert!(serde_json::from_str::<Value>(&json.stdout).unwrap().is_array());
    for command in ["show", "probe"] {
        let help = bench.hart().args(["models", command, "--help"]).run().success();
        assert!(help.stdout.contains("Examples:"), "{command}: {}", help.stdout);
    }
}

/// Whether a parameter is in a request, or in the part of it where the dialect keeps such things.
fn asked_for(body: &Value, names: &[&str]) -> bool {
    let parts = ["options", "generationConfig", "output_config", "text"];
    let places = std::iter::once(body).chain(parts.iter().map(|part| &body[*part]));
    places.into_iter().any(|place| names.iter().any(|name| place.get(name).is_some()))
}

/// Talks, calls tools, sees; refuses schemas and temperatures.
fn half_good(asked: &RecordedRequest) -> Turn {
    let (body, text) = (&asked.body, asked.texts_of("user").pop().unwrap_or_default());
    if asked_for(body, &["response_format", "format", "responseJsonSchema"]) {
        return Turn::status(400).message("no schemas here, \u{1b}[31mred\u{1b}[0m");
    }
    if asked_for(body, &["temperature"]) {
        return Turn::status(400).message("no temperature here");
    }
    if text.contains("Use the tool") && asked.tool_results().is_empty() {
        return Turn::new().tool_call("c1", "get_code", json!({"city": "Oslo"}));
    }
    let said = if text.contains("colour") { "red" } else { "one two three 7319" };
    Turn::new().text(said).chunk_chars(3)
}

#[test]
fn a_probe_prints_a_table_and_is_used_from_then_on() {
    for dialect in ALL {
        let bench = Bench::answering(dialect, half_good);
        config(&bench, dialect, "    temperature: 0.4\n");
        let ran =
            offline(bench.dir.path()).args(["models", "probe", "mine", "--context", "300"]).run().success();
        assert!(ran.stderr.contains("requests: about 4300 tokens in"), "{}", ran.stderr);
        for (mark, name) in [
            ("✓", "answers"),
            ("✓", "streaming"),
            ("✓", "tool calls"),
            ("✓", "images"),
            ("✗", "temperature"),
            ("✗", "structured output"),
        ] {
            assert!(ran.stdout.contains(&format!("{mark} {name}")), "{mark} {name}:\n{}", ran.stdout);
        }
        assert!(!ran.stdout.contains('\x1b'), "foreign text steers no terminal");
        let kept = std::fs::read_to_string(bench.dir.path().join(".hart/models/mine.json")).unwrap();
        assert!(!kept.contains("very-secret"));
        let profile: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(
            (&profile["facts"]["vision"], &profile["facts"]["temperature"]),
            (&json!(true), &json!(false))
        );

        let show = offline(bench.dir.path()).args(["models", "show", "mine", "--json"]).run().success();
        let sheet: Value = serde_json::from_str(&show.stdout).unwrap();
        assert!(
            sheet["capabilities"]["vision"]["from"].as_str().unwrap().starts_with("probe of 20"),
            "{sheet}"
        );
        // The run that follows leaves out what the endpoint refused, and says so.
        let ran = offline(bench.dir.path()).args(["run", "hi"]).run().success();
        assert!(ran.stderr.contains("`temperature`: the model does not take it"), "{}", ran.stderr);
        assert!(!asked_for(&bench.server.last_request().body, &["temperature"]));
        // Another address is another endpoint.
        let moved = offline(bench.dir.path()).args(["models", "show", "mine", "--json"]);
        config(&bench, dialect, "    default_headers: {x-a: b}\n");
        std::fs::write(
            bench.dir.path().join("config.yaml"),
            std::fs::read_to_string(bench.dir.path().join("config.yaml"))
                .unwrap()
                .replace("127.0.0.1", "localhost"),
        )
        .unwrap();
        let sheet: Value = serde_json::from_str(&moved.run().success().stdout).unwrap();
        assert_eq!(sheet["capabilities"]["vision"]["value"], json!(null));
    }
}

#[test]
fn an_endpoint_that_does_not_talk_fails_and_leaves_nothing_behind() {
    for dialect in ALL {
        for turn in
            [Turn::status(401).message("who is sk-very-secret?"), Turn::new().body(json!({"hello": "world"}))]
        {
            let bench = Bench::new(dialect);
            bench.server.push(turn);
            config(&bench, dialect, "");
            let ran = offline(bench.dir.path()).args(["models", "probe", "mine"]).run();
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            assert!(ran.stdout.starts_with("✗ answers") && ran.stdout.lines().count() == 1, "{}", ran.stdout);
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("very-secret"));
            assert!(!bench.dir.path().join(".hart/models").exists());
            assert_eq!(bench.server.requests().len(), 1);
        }
    }
}

#[test]
fn a_broken_profile_is_told_and_passed_over() {
    let bench = Bench::new(Dialect::OpenAi);
    config(&bench, Dialect::OpenAi, "");
    std::fs::create_dir_all(bench.dir.path().join(".hart/models")).unwrap();
    bench.write(".hart/models/mine.json", "{\"base_url\": ");
    let ran = bench.hart().args(["models", "show", "mine"]).run().success();
    assert!(ran.stderr.contains("mine.json") && ran.stderr.contains("probe again"), "{}", ran.stderr);
}
