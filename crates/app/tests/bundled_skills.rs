//! Each skill that comes with hart: without mistakes and findings, and with scripts that work where agents run them.
//!
//! A skill's `tests/check.sh` is run in the sandbox with a folder to write to as its argument; 0 is good.

use std::sync::Arc;
use std::time::Duration;

use hart_app::CancellationToken;
use hart_app::knowledge::skills::{Inspected, Level, Library, LibraryConfig, bundled};
use hart_sandbox::{Exec, LocalSandboxProvider, SandboxConfig, SandboxProvider};

#[test]
fn none_has_mistakes_or_something_that_speaks_against_it() {
    assert!(bundled().contains_key("skill-creator"));
    for (name, package) in bundled() {
        let inspected = Inspected::of(package, Some(&name)).unwrap();
        assert!(inspected.mistakes.is_empty(), "{name}: {:?}", inspected.mistakes);
        let graver: Vec<String> = inspected
            .scan
            .findings
            .iter()
            .filter(|finding| finding.level == Level::Block)
            .map(ToString::to_string)
            .collect();
        assert!(graver.is_empty(), "{name}: {graver:?}");
        let manifest = inspected.manifest.unwrap();
        assert!(manifest.license.is_some() && manifest.description.len() <= 400, "{name}");
        let lines = inspected.package.text("SKILL.md").unwrap().lines().count();
        assert!(lines <= 200, "{name}: {lines} lines; what is long belongs to references");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn their_own_checks_pass_in_the_sandbox() {
    let home = tempfile::tempdir().unwrap();
    let skills = home.path().join("skills");
    let library = Library::new(LibraryConfig {
        skills: skills.clone(),
        home: home.path().to_owned(),
        states: home.path().join("extensions_config.json"),
        own: true,
        scan: true,
        lock: true,
    });
    library.prepare().unwrap();
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.path().to_owned(), Some(skills));
    let provider = Arc::new(provider.unwrap());
    let sandbox = provider.acquire(&"t".into(), &"u".into()).await.unwrap();
    for (name, package) in bundled() {
        assert!(
            package.get("tests/check.sh").is_some(),
            "{name} has no tests/check.sh that runs its scripts"
        );
        let command = format!(
            "mkdir -p check/{name} && cd /mnt/skills/public/{name} && \
             PYTHONDONTWRITEBYTECODE=1 sh tests/check.sh /mnt/user-data/workspace/check/{name}"
        );
        let exec = Exec::new(command).timeout(Duration::from_secs(300));
        let ran = sandbox.exec(exec, None, &CancellationToken::new()).await.unwrap();
        assert!(ran.exit.success(), "{name}: {:?}\n{}\n{}", ran.exit, ran.stdout, ran.stderr);
    }
    provider.shutdown().await;
}
