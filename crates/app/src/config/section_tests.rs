use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::config::raw;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Loops {
    enabled: bool,
    warn_threshold: u32,
    ratio: f32,
    wait: Option<u64>,
    on_limit: OnLimit,
    trigger: Vec<Trigger>,
    overrides: BTreeMap<String, Limits>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnLimit {
    Stop,
    Ask,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
struct Trigger {
    r#type: String,
    value: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    hard_limit: u32,
}

impl Default for Loops {
    fn default() -> Self {
        Self {
            enabled: true,
            warn_threshold: 3,
            ratio: 0.5,
            wait: None,
            on_limit: OnLimit::Stop,
            trigger: Vec::new(),
            overrides: BTreeMap::new(),
        }
    }
}

fn read(yaml: &str) -> (Loops, Vec<String>) {
    let tree = raw::parse(yaml, "config.yaml").unwrap();
    let mut findings = Findings { file: Some("config.yaml".into()), ..Findings::default() };
    let loops = section::<Loops>(&tree, "loops", &mut findings);
    findings.finish();
    let problems = findings.problems.iter();
    (loops, problems.map(|problem| format!("{} @ {}", problem.message, problem.place)).collect())
}

#[test]
fn what_is_written_is_read_and_the_rest_has_its_default() {
    let (loops, problems) = read(
        "loops:
  warn_threshold: 5
  ratio: 1
  wait: 7
  on_limit: ask
  trigger: [{type: tokens, value: 0.8}]
  overrides: {bash: {hard_limit: 9}}",
    );
    assert_eq!(problems, [""; 0]);
    let overrides = BTreeMap::from([("bash".to_owned(), Limits { hard_limit: 9 })]);
    let trigger = vec![Trigger { r#type: "tokens".into(), value: 0.8 }];
    let (on_limit, wait) = (OnLimit::Ask, Some(7));
    assert_eq!(
        loops,
        Loops { enabled: true, warn_threshold: 5, ratio: 1.0, wait, on_limit, trigger, overrides }
    );
    assert_eq!(read("other: 1").0, Loops::default());
    assert_eq!(read("loops: {}").0, Loops::default());
}

#[test]
fn every_mistake_is_told_where_it_stands() {
    let (loops, problems) = read(
        "loops:
  warn_treshold: 5
  frobnicate: 1
  ratio: high
  on_limit: perhaps
  trigger:
    - {type: tokens, value: many}
  overrides:
    bash:
      hard_limits: 9",
    );
    assert_eq!(loops, Loops::default());
    assert_eq!(
        problems,
        [
            "loops.warn_treshold: unknown key; did you mean `warn_threshold`? @ config.yaml:2:3",
            "loops.frobnicate: unknown key @ config.yaml:3:3",
            "loops.ratio: expected a number, found a string @ config.yaml:4:10",
            "loops.on_limit: unknown variant `perhaps`, expected `stop` or `ask` @ config.yaml:5:13",
            "loops.trigger: expected a number, found a string @ config.yaml:7:29",
            "loops.overrides.hard_limits: unknown key; did you mean `hard_limit`? @ config.yaml:10:7",
        ]
    );
}

#[test]
fn what_only_the_part_knows_is_told_at_its_key() {
    let tree = raw::parse("loops:\n  warn_threshold: 0\n", "config.yaml").unwrap();
    let mut findings = Findings { file: Some("config.yaml".into()), ..Findings::default() };
    let positive = |loops: &Loops| match loops.warn_threshold {
        0 => Err(Invalid {
            key: "warn_threshold",
            what: "warn_threshold must be above zero".into(),
            help: None,
        }),
        _ => Ok(()),
    };
    checked(&tree, "loops", &mut findings, positive);
    let problem = findings.problems.first().unwrap();
    assert_eq!(
        problem.to_string(),
        "error: loops: warn_threshold must be above zero\n  --> config.yaml:2:19\n  help: see `hart config explain loops`"
    );
}
