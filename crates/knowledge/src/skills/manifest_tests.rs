use serde_json::json;

use super::*;

fn read(front: &str) -> Document {
    Document::read(&format!("---\n{front}\n---\n# Body\n"), None)
}

fn told(document: &Document) -> Vec<String> {
    document.mistakes.iter().map(ToString::to_string).collect()
}

#[test]
fn everything_a_front_matter_may_say() {
    let text = "---\nname: chart-making\ndescription: >-\n  Makes charts\n  from tables.\nlicense: MIT\nversion: 1.10\n\
                author: Ada\ncompatibility: needs python3\nmetadata:\n  audience: analysts\n\
                allowed-tools: [bash, read_file]\nrequired-secrets: [API_KEY, {name: TOKEN, optional: true}]\n---\nBody\n";
    let document = Document::read(text, Some("chart-making"));
    assert!(document.mistakes.is_empty(), "{:?}", told(&document));
    assert_eq!(text.get(document.body..), Some("Body\n"));
    let manifest = serde_json::to_value(document.manifest.unwrap()).unwrap();
    let expected = json!({
        "name": "chart-making", "description": "Makes charts from tables.", "license": "MIT", "version": "1.10",
        "author": "Ada", "compatibility": "needs python3", "metadata": {"audience": "analysts"},
        "allowed-tools": ["bash", "read_file"], "secrets-autonomous": true,
        "required-secrets": [{"name": "API_KEY"}, {"name": "TOKEN", "optional": true}],
    });
    assert_eq!(manifest, expected);
}

#[test]
fn a_switch_for_secrets_that_is_none_is_off() {
    let document = read("name: a\ndescription: b\nrequired-secrets: [A]\nsecrets-autonomous: maybe");
    assert!(!document.manifest.clone().unwrap().secrets_autonomous);
    assert!(told(&document).concat().contains("neither true nor false"), "{:?}", told(&document));
}

#[test]
fn other_habits_are_understood() {
    let document = read(
        "name: a\ndescription: b\nallowed-tools: Bash(git add:*), Read Write\nmodel: x\n\
                         metadata: {version: \"2\", author: B}\ndisable-model-invocation: true",
    );
    let manifest = document.manifest.clone().unwrap();
    assert_eq!(manifest.allowed_tools.unwrap(), ["Bash(git add:*)", "Read", "Write"]);
    assert_eq!((manifest.version.as_deref(), manifest.author.as_deref()), (Some("2"), Some("B")));
    assert!(manifest.user_only && manifest.metadata.is_empty());
    assert_eq!(told(&document).len(), 1, "{:?}", told(&document));
    let windows = Document::read("\u{feff}---\r\nname: a\r\ndescription: b\r\n---\r\nText", None);
    assert_eq!(windows.manifest.unwrap().name, "a");
    assert!(
        read("name: a\ndescription: b\nallowed-tools: []")
            .manifest
            .unwrap()
            .allowed_tools
            .unwrap()
            .is_empty()
    );
}

#[test]
fn every_mistake_has_its_line_and_a_remedy() {
    for (front, line, says) in [
        ("description: b", 1, "needs a `name`"),
        ("name: a", 1, "needs a `description`"),
        ("name: a\ndescription: ''", 3, "needs a `description`"),
        ("name: My Skill\ndescription: b", 2, "`My Skill` cannot be a name"),
        ("name: -a\ndescription: b", 2, "cannot be a name"),
        ("description: b\nname: [a]", 3, "`name` must be a text, not a list"),
        (
            "name: a\ndescription: b\nallowed-tools: 5",
            4,
            "`allowed-tools` must be a list of names, not a number",
        ),
        ("name: a\ndescription: [b: c: d", 3, "no valid YAML"),
        ("- a", 1, "no map"),
        ("", 1, "is empty"),
    ] {
        let document = read(front);
        assert!(document.manifest.is_none(), "{front}");
        let first = document.mistakes.first().unwrap();
        assert_eq!((first.severity, first.line), (Severity::Error, line), "{front}: {first}");
        assert!(first.message.contains(says) && !first.help.is_empty(), "{front}: {first}");
    }
    for (text, says) in
        [("# Title", "no front matter"), ("---\nname: a\n", "no front matter"), ("", "no front")]
    {
        assert!(told(&Document::read(text, None))[0].contains(says), "{text}");
    }
}

#[test]
fn what_does_no_harm_is_a_warning() {
    for (front, line, says) in [
        ("name: a\ndescription: b\nallowed_tools: [bash]", 4, "write `allowed-tools`"),
        ("name: a\ndescription: b\ncolour: red", 4, "unknown key `colour`"),
        (
            "name: a\ndescription: b\nagents: {c: {}}",
            4,
            "unknown key `agents`; describe them in `agents.yaml`",
        ),
        ("name: a\ndescription: Use it so: b", 3, "put quotes around it"),
        ("name: a\ndescription: use <b>", 3, "holds `<`"),
        ("name: a\ndescription: b\nmetadata: x", 4, "`metadata` must be a map"),
    ] {
        let document = read(front);
        assert!(document.manifest.is_some(), "{front}: {:?}", told(&document));
        let first = document.mistakes.first().unwrap();
        assert_eq!((first.severity, first.line), (Severity::Warning, line), "{front}: {first}");
        assert!(first.to_string().contains(says), "{front}: {first}");
    }
    let long = read(&format!("name: a\ndescription: {}", "x".repeat(2000)));
    assert_eq!(long.manifest.unwrap().description.len(), 1024);
    let other = Document::read("---\nname: a\ndescription: b\n---\n", Some("c"));
    assert!(told(&other)[0].contains("the folder is called `c`"));
}
