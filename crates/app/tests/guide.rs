//! What the guide shows in YAML works as it stands.
//!
//! Invariant: a snippet is loaded as a user's file would be, with a key in every variable and nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use hart_app::Env;
use hart_app::config::{AppConfig, LoadOptions, catalogue};
use hart_models::PRESETS;
use hart_testkit::docs;

/// Each snippet that configures models, loaded.
fn loaded() -> Vec<AppConfig> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let variables =
        PRESETS.iter().flat_map(|preset| preset.key_env).map(|name| (*name, "sk-dummy-0123456789"));
    let env = Env::from_iter(variables);
    let load = |snippet: &docs::Snippet| {
        let (file, line) = (snippet.file.display(), snippet.line);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.yaml"), &snippet.code).unwrap();
        let options = LoadOptions { path: None, cwd: dir.path().to_owned(), env: &env, overrides: None };
        let config = AppConfig::load(options).unwrap_or_else(|error| panic!("{file}:{line}: {error}"));
        assert!(config.warnings.is_empty(), "{file}:{line}: {:?}", config.warnings);
        assert!(!config.models.is_empty(), "{file}:{line}: no model");
        config
    };
    docs::blocks(&guide, "yaml").iter().filter(|block| block.code.starts_with("models:")).map(load).collect()
}

#[test]
fn every_snippet_of_the_guide_loads_and_every_provider_has_one() {
    let loaded = loaded();
    let shown: BTreeSet<&str> =
        loaded.iter().flat_map(|config| &config.models).map(|model| model.provider).collect();
    let missing: Vec<&str> =
        PRESETS.iter().map(|preset| preset.name).filter(|name| !shown.contains(name)).collect();
    assert!(missing.is_empty(), "docs/guide/models.md has no snippet for {missing:?}");
}

#[test]
fn every_section_is_in_the_guide_and_what_it_shows_of_the_chain_loads() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let page = std::fs::read_to_string(guide.join("configuration.md")).unwrap();
    let rows: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
    let listed = |name: &str| rows.iter().any(|row| row.contains(&format!("`{name}`")));
    let sections = catalogue().iter().filter(|key| key.used && !key.path.contains('.'));
    let missing: Vec<_> = sections.map(|key| &*key.path).filter(|name| !listed(name)).collect();
    assert_eq!(missing, ["config_version"], "docs/guide/configuration.md");

    let env = Env::from_iter([("HART_NO_PROBE", "1"), ("ARCHIVE_KEY", "k")]);
    let pages = ["middleware.md", "subagents.md"];
    let shown = docs::blocks(&guide, "yaml")
        .into_iter()
        .filter(|block| pages.iter().any(|page| block.file.ends_with(page)));
    let loaded = shown.map(|block| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.yaml"), &block.code).unwrap();
        let options = LoadOptions { path: None, cwd: dir.path().to_owned(), env: &env, overrides: None };
        let config = AppConfig::load(options).unwrap_or_else(|error| panic!("{error}"));
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    });
    assert_eq!(loaded.count(), 3);
}
