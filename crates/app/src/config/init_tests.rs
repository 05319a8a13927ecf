use super::*;
use crate::Env;
use crate::config::{AppConfig, BUILT_IN, LoadOptions, catalogue};

fn env() -> Env {
    Env::from_iter([
        ("OPENAI_API_KEY", "sk-live-0123456789"),
        ("ANTHROPIC_API_KEY", "sk-ant-0123456789"),
        ("DEEPSEEK_API_KEY", "sk-deep-0123456789"),
        ("MY_API_KEY", "sk-mine-0123456789"),
        ("HART_TOKEN", "a-long-random-text"),
    ])
}

fn load_in(dir: &Path) -> AppConfig {
    let env = env();
    AppConfig::load(LoadOptions { path: None, cwd: dir.to_owned(), env: &env, overrides: None }).unwrap()
}

#[test]
fn the_template_loads_as_it_is_and_uncommented() {
    let dir = tempfile::tempdir().unwrap();
    let path = init(dir.path()).unwrap();
    assert!(load_in(dir.path()).warnings.is_empty());
    let again = init(dir.path()).unwrap_err().to_string();
    assert!(again.contains("exists already"), "{again}");
    assert!(init(&dir.path().join("gone")).unwrap_err().to_string().contains("directory does not exist"));

    // A `#` that is not followed by a space hides YAML; the rest is prose.
    let uncommented: Vec<_> = TEMPLATE
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') || rest.starts_with("  ") => rest,
            _ => line,
        })
        .collect();
    fs::write(&path, uncommented.join("\n")).unwrap();
    let config = load_in(dir.path());
    // The directory of its example mount is not on this machine.
    let others = config.warnings.iter().filter(|warning| !warning.message.contains("/srv/data"));
    assert_eq!(others.count(), 0, "{:?}", config.warnings);
    assert_eq!(config.models.len(), 5);
    assert_eq!(config.tools.chosen().collect::<Vec<_>>(), BUILT_IN);
    // What it shows as a default is the default.
    let fresh = load_in(tempfile::tempdir().unwrap().path());
    for key in
        ["log_level", "max_recursion_limit", "sandbox.bash_command_timeout", "sandbox.ls_output_max_chars"]
    {
        assert_eq!(config.explain(key).unwrap().value, fresh.explain(key).unwrap().value, "{key}");
    }
}

#[test]
fn the_catalogue_tells_the_defaults_that_the_types_have() {
    let sandbox = load_in(tempfile::tempdir().unwrap().path()).sandbox;
    let of = |path: &str| catalogue().iter().find(|key| key.path == path).unwrap().default;
    assert_eq!(of("sandbox.bash_output_max_chars"), sandbox.bash_output_max_chars.to_string());
    assert_eq!(of("sandbox.read_file_output_max_chars"), sandbox.read_file_output_max_chars.to_string());
    assert_eq!(of("sandbox.ls_output_max_chars"), sandbox.ls_output_max_chars.to_string());
    assert_eq!(of("sandbox.bash_command_timeout"), sandbox.bash_command_timeout.as_secs().to_string());
    assert_eq!(of("sandbox.allow_host_bash"), sandbox.allow_host_bash.to_string());
}
