use super::*;

fn deerflow() -> ToolOutputConfig {
    let json = serde_json::json!({
        "externalize_min_chars": 12_000, "preview_head_chars": 2000, "preview_tail_chars": 1000,
        "fallback_max_chars": 30_000, "storage_subdir": ".tool-results",
    });
    serde_json::from_value(json).unwrap()
}

#[test]
fn with_deerflows_keys_a_preview_adds_up_and_names_the_file() {
    let budget = deerflow();
    let path = budget.path("web fetch/../x", "run", "call").unwrap();
    assert!(path.as_str().starts_with("/mnt/user-data/outputs/.tool-results/web_fetch____x-"), "{path}");
    assert!(path.as_str().ends_with(".txt"));
    let text = "ä".repeat(9000) + &"z".repeat(9000);
    let shown = budget.preview(&text, &path);
    assert!(shown.starts_with(&"ä".repeat(2000)) && shown.ends_with(&"z".repeat(1000)));
    assert!(shown.contains("\n... [15000 of 18000 chars left out; the whole result is in /mnt/user-data/"));
    assert_eq!(budget.fallback(&text, "no sandbox"), None);
    let long = budget.fallback(&text.repeat(2), "no sandbox").unwrap();
    assert!(long.contains("[25000 of 36000 chars left out; they could not be kept (no sandbox)"), "{long}");
}

#[test]
fn by_default_whole_lines_are_shown_and_their_numbers_add_up() {
    let budget = ToolOutputConfig::default();
    let path = budget.path("grep", "run", "call/1.a").unwrap();
    assert_eq!(path.as_str(), "/large_tool_results/call_1_a");
    let text: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    let shown = budget.preview(&text, &path);
    assert!(
        shown.starts_with("[This result is too long to be shown: 792 characters in 100 lines."),
        "{shown}"
    );
    assert!(shown.contains("All of it is in /large_tool_results/call_1_a: read it in parts with read_file"));
    assert!(shown.contains("line 5\n... [90 lines left out: 6 to 95] ...\nline 96\n"), "{shown}");
    assert!(shown.ends_with("line 100"));
    assert_eq!(budget.fallback(&"x".repeat(1_000_000), "no sandbox"), None);
}

#[test]
fn a_line_without_end_is_cut_and_says_so() {
    for (lines, omitted) in [(1, None), (10, None), (11, Some("... [1 lines left out: 6 to 6] ..."))] {
        let text = vec!["ü".repeat(90_000); lines].join("\n");
        let shown = line_preview("message", &text, "/conversation_history/m.md");
        assert!(shown.contains("ü... [89000 more characters in this line]"), "{lines}");
        assert!(shown.chars().count() < 11_000, "{lines}");
        assert_eq!(shown.matches("more characters").count(), lines.min(10));
        assert_eq!(omitted.is_some(), shown.contains("lines left out"), "{lines}");
        assert!(omitted.is_none_or(|omitted| shown.contains(omitted)), "{shown}");
    }
}

#[test]
fn tools_may_have_their_own_threshold() {
    let json = serde_json::json!({"tool_overrides": {"grep": 50}, "exempt_tools": ["x"]});
    let budget: ToolOutputConfig = serde_json::from_value(json).unwrap();
    assert_eq!(budget.threshold("grep"), Some(50));
    assert_eq!(budget.threshold("read_file"), Some(80_000));
    assert_eq!(budget.threshold("x"), None);
}

#[test]
fn hostile_ids_are_one_plain_name() {
    let budget = ToolOutputConfig::default();
    for id in ["../../etc/passwd", "", "a b\0c", "..", &"x".repeat(500)] {
        let path = budget.path("tool", "run", id).unwrap();
        let name = path.as_str().strip_prefix("/large_tool_results/").unwrap();
        assert!(!name.is_empty() && !name.contains(['/', '.', '\0']) && name.len() <= 64, "{name}");
    }
    assert_eq!(long_message_path("a/b").unwrap().as_str(), "/conversation_history/a_b.md");
}

#[test]
fn a_folder_is_a_plain_name() {
    for bad in ["", ".", "..", "a/b", "../x", "a b", "ä"] {
        let config = ToolOutputConfig { storage_subdir: Some(bad.to_owned()), ..ToolOutputConfig::default() };
        assert!(config.validate().is_err(), "{bad:?}");
    }
    assert_eq!(ToolOutputConfig::default().validate(), Ok(()));
    assert_eq!(deerflow().validate(), Ok(()));
}
