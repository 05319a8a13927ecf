use hart_types::{Ai, Body, ToolStatus};
use serde_json::json;

use super::*;

/// One call per answer: `(tool, args, result)`.
fn verdicts(config: &LoopDetectionConfig, answers: &[(&str, Value, &str)]) -> Vec<Verdict> {
    let mut detector = Detector::default();
    let mut look = |at: usize, (tool, args, result): &(&str, Value, &str)| {
        let call = ToolCall::new("c", *tool, args.as_object().unwrap().clone());
        let answer = Message::new(Body::Ai(Ai { tool_calls: vec![call], ..Ai::default() }), "");
        let answer = answer.with_id(format!("m{at}"));
        let result = Message::tool(&"c".into(), tool, ToolStatus::Success, *result);
        detector.observe(config, &answer, &[&result], &own_name)
    };
    answers.iter().enumerate().map(|(at, answer)| look(at, answer)).collect()
}

fn own_name(called: &str) -> String {
    match called {
        "execute" => "bash",
        "edit_file" => "str_replace",
        own => own,
    }
    .to_owned()
}

fn marks(verdicts: &[Verdict]) -> String {
    let mark = |verdict: &Verdict| match verdict {
        Verdict::Fine => '.',
        Verdict::Correct(text) => {
            assert!(text.starts_with("[LOOP DETECTED] "), "{text}");
            'w'
        }
        Verdict::Stop(_) => 'S',
    };
    verdicts.iter().map(mark).collect()
}

#[test]
fn what_counts_as_the_same() {
    let same: [(&str, Value, Value); 9] = [
        (
            "bash",
            json!({"command": "ls", "description": "look"}),
            json!({"description": "again", "command": "ls "}),
        ),
        ("ls", json!({"path": "/a", "depth": 1}), json!({"depth": 1, "path": "/a"})),
        ("read_file", json!({"path": "/a", "start_line": 1}), json!({"path": "/a", "start_line": 150})),
        ("read_file", json!({"file_path": "/a", "offset": 0}), json!({"path": "/a", "start_line": 1})),
        ("execute", json!({"command": "ls", "timeout": 1}), json!({"command": "ls", "timeout": 2})),
        (
            "edit_file",
            json!({"file_path": "/a", "old_string": "x"}),
            json!({"path": "/a", "old_string": "x"}),
        ),
        (
            "write_file",
            json!({"path": "/a", "content": "x", "description": "a"}),
            json!({"path": "/a", "content": "x"}),
        ),
        ("custom", json!({"a": {"x": 1, "y": [2]}, "b": null}), json!({"b": null, "a": {"y": [2], "x": 1}})),
        ("custom", json!({}), json!({})),
    ];
    let different: [(&str, Value, Value); 7] = [
        ("bash", json!({"command": "ls"}), json!({"command": "ls -a"})),
        ("read_file", json!({"path": "/a", "start_line": 1}), json!({"path": "/a", "start_line": 201})),
        ("read_file", json!({"path": "/a", "offset": 0}), json!({"path": "/a", "offset": 400})),
        ("write_file", json!({"path": "/a", "content": "x"}), json!({"path": "/a", "content": "y"})),
        ("edit_file", json!({"path": "/a", "old_string": "x"}), json!({"path": "/a", "old_string": "y"})),
        ("str_replace", json!({"path": "/a", "old_str": "x"}), json!({"path": "/a", "old_str": "y"})),
        ("custom", json!({"a": [1, 2]}), json!({"a": [2, 1]})),
    ];
    let config = LoopDetectionConfig { warn_threshold: 2, ..LoopDetectionConfig::default() };
    for (tool, a, b) in same {
        assert_eq!(marks(&verdicts(&config, &[(tool, a.clone(), "r"), (tool, b, "r")])), ".w", "{tool} {a}");
    }
    for (tool, a, b) in different {
        assert_eq!(marks(&verdicts(&config, &[(tool, a.clone(), "r"), (tool, b, "r")])), "..", "{tool} {a}");
    }
    let polls = [("bash", json!({"command": "cat x"}), "1"), ("bash", json!({"command": "cat x"}), "2")];
    assert_eq!(marks(&verdicts(&config, &polls)), "..", "a result that changes is progress");
}

#[test]
fn three_are_corrected_and_five_are_stopped_within_the_window() {
    let config = LoopDetectionConfig::default();
    let same = ("look", json!({"path": "a"}), "x");
    assert_eq!(marks(&verdicts(&config, &vec![same.clone(); 6])), "..wwSS");
    let mut spread: Vec<_> = Vec::new();
    for round in 0..5 {
        spread.push(("bash", json!({"command": "look"}), "x"));
        spread.extend((0..9).map(|n| ("bash", json!({"command": format!("{round}-{n}")}), "x")));
    }
    assert!(!marks(&verdicts(&config, &spread)).contains('S'), "at most two are in one window");
    let alternating: Vec<_> = (0..10).map(|n| (["a", "b"][n % 2], json!({}), "same")).collect();
    assert_eq!(marks(&verdicts(&config, &alternating)), "....wwwwSS");
    let off = LoopDetectionConfig { warn_threshold: 0, hard_limit: 0, ..config };
    assert_eq!(marks(&verdicts(&off, &vec![same; 6])), "......");
}

#[test]
fn a_tool_that_is_called_all_the_time_is_stopped_unless_it_is_work() {
    let config = LoopDetectionConfig::default();
    let searches = |tool: &'static str, count: usize| -> Vec<(&str, Value, &str)> {
        (0..count).map(|n| (tool, json!({"query": n.to_string()}), "found")).collect()
    };
    let marks_of = |config: &LoopDetectionConfig, tool| marks(&verdicts(config, &searches(tool, 60)));
    let expected = format!("{}w{}{}", ".".repeat(29), ".".repeat(19), "S".repeat(11));
    assert_eq!(marks_of(&config, "web_search"), expected);
    for tool in ["bash", "execute", "edit_file", "delete"] {
        assert_eq!(marks_of(&config, tool), ".".repeat(60), "{tool}");
    }
    let own = BTreeMap::from([("bash".to_owned(), ToolFrequency { warn: 2, hard_limit: 4 })]);
    let strict = LoopDetectionConfig { tool_freq_overrides: own, ..config.clone() };
    assert!(marks_of(&strict, "bash").starts_with(".w.SS"));
    // Used fifty times, but over a long run.
    let mut spread = Vec::new();
    for n in 0..50 {
        spread.push(("web_search", json!({"query": n.to_string()}), "found"));
        spread.extend((0..5).map(|m| ("bash", json!({"command": format!("{n} {m}")}), "ok")));
    }
    assert_eq!(marks(&verdicts(&config, &spread)), ".".repeat(300));
}

#[test]
fn the_order_of_calls_means_nothing_and_raw_results_go_before_shown_ones() {
    let config = LoopDetectionConfig { warn_threshold: 2, ..LoopDetectionConfig::default() };
    let mut detector = Detector::default();
    let mut look = |ids: [&str; 2], shown: &str, raw: &str| {
        let calls = ids.iter().map(|id| ToolCall::new(*id, *id, Map::new())).collect();
        let answer = Message::new(Body::Ai(Ai { tool_calls: calls, ..Ai::default() }), "");
        ids.iter().for_each(|id| detector.returned(&(*id).into(), raw));
        let results = ids.map(|id| Message::tool(&id.into(), id, ToolStatus::Success, shown));
        detector.observe(&config, &answer, &results.each_ref(), &own_name)
    };
    assert_eq!(look(["a", "b"], "kept in file 1", "long"), Verdict::Fine);
    assert!(matches!(look(["b", "a"], "kept in file 2", "long"), Verdict::Correct(_)));
    assert_eq!(look(["b", "a"], "kept in file 2", "another"), Verdict::Fine);
}
