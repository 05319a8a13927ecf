//! Rules about paths, kept by the sandbox itself, whatever name or link leads there.

use std::sync::Arc;

use hart_sandbox::{
    GlobQuery, GrepOutput, GrepQuery, LineQuery, Permissions, RestrictedSandboxes, Sandbox, SandboxError,
    SandboxProvider, WriteMode,
};
use serde_json::{Value, json};

use crate::streams::parts;
use crate::support::Place;

struct Guarded {
    place: Place,
    sandbox: Arc<dyn Sandbox>,
}

async fn guarded(rules: Value) -> Guarded {
    let place = Place::new().await;
    let permissions = Permissions::new(serde_json::from_value(rules).unwrap()).unwrap();
    let inner: Arc<dyn SandboxProvider> = Arc::new(One(Arc::clone(&place.sandbox)));
    let provider = RestrictedSandboxes::new(inner, permissions);
    let sandbox = provider.acquire(&"thread".into(), &"user".into()).await.unwrap();
    Guarded { place, sandbox }
}

/// Gives out a sandbox that is there already.
#[derive(Debug)]
struct One(Arc<dyn Sandbox>);

#[async_trait::async_trait]
impl SandboxProvider for One {
    async fn acquire(
        &self,
        _: &hart_types::ThreadId,
        _: &hart_types::UserId,
    ) -> hart_sandbox::Result<Arc<dyn Sandbox>> {
        Ok(Arc::clone(&self.0))
    }
    async fn get(&self, _: &hart_types::SandboxId) -> Option<Arc<dyn Sandbox>> {
        Some(Arc::clone(&self.0))
    }
    async fn release(&self, _: &hart_types::SandboxId) -> hart_sandbox::Result<()> {
        Ok(())
    }
    async fn shutdown(&self) {}
    fn tier(&self) -> hart_sandbox::TierReport {
        hart_sandbox::probe()
    }
}

fn deny(path: &str) -> Value {
    json!([{"operations": ["read", "write"], "paths": [path], "mode": "deny"}])
}

fn is_forbidden<T: std::fmt::Debug>(result: Result<T, SandboxError>) -> bool {
    matches!(result, Err(SandboxError::Forbidden { .. }))
}

#[tokio::test]
async fn every_way_to_a_denied_file_is_closed() {
    let Guarded { place, sandbox } = guarded(deny("/mnt/user-data/workspace/secret/**")).await;
    let workspace = place.workspace();
    std::fs::create_dir_all(workspace.join("secret/deep")).unwrap();
    std::fs::write(workspace.join("secret/deep/key"), "needle").unwrap();
    std::fs::write(workspace.join("open"), "needle").unwrap();
    std::os::unix::fs::symlink("secret/deep/key", workspace.join("link")).unwrap();
    std::os::unix::fs::symlink("secret", workspace.join("dir")).unwrap();
    let all = LineQuery { first: 1, last: 9, max_bytes: 99 };
    for name in ["secret/deep/key", "./secret//deep/../deep/key", "link", "dir/deep/key"] {
        let path = sandbox.path(name).unwrap();
        assert!(is_forbidden(sandbox.read(&path).await), "{name}");
        assert!(is_forbidden(sandbox.read_lines(&path, all).await), "{name}");
        assert!(is_forbidden(sandbox.mark(&path).await), "{name}");
        assert!(is_forbidden(sandbox.stat(&path).await), "{name}");
        assert!(is_forbidden(sandbox.open(&path).await), "{name}");
        for replace in [false, true] {
            assert!(is_forbidden(sandbox.receive(&path, &mut parts(&["x"]), replace).await), "{name}");
        }
        assert!(is_forbidden(sandbox.write(&path, b"x", WriteMode::Append).await), "{name}");
        assert!(is_forbidden(sandbox.modify(&path, &mut |_| None).await), "{name}");
    }
    for name in ["secret/new", "dir/new/deeper", "secret/deep/key", "dir/deep/key"] {
        let path = sandbox.path(name).unwrap();
        assert!(is_forbidden(sandbox.write(&path, b"x", WriteMode::CreateNew).await), "{name}");
        assert!(is_forbidden(sandbox.receive(&path, &mut parts(&["x"]), true).await), "{name}");
        assert!(is_forbidden(sandbox.remove(&path).await), "{name}");
    }
    assert_eq!(std::fs::read(workspace.join("secret/deep/key")).unwrap(), b"needle");
    sandbox.remove(&sandbox.path("link").unwrap()).await.unwrap();
    assert!(is_forbidden(sandbox.list(&sandbox.path("dir/deep").unwrap(), 1).await));
}

#[tokio::test]
async fn listings_and_searches_do_not_tell_of_it() {
    let Guarded { place, sandbox } = guarded(deny("/mnt/user-data/workspace/**/secret*")).await;
    let workspace = place.workspace();
    for name in ["a/secret1", "a/plain", "b/secret2/inner", "z"] {
        std::fs::create_dir_all(workspace.join(name).parent().unwrap()).unwrap();
        std::fs::write(workspace.join(name), "needle\n").unwrap();
    }
    let base = || sandbox.path(".").unwrap();
    let shown = |paths: Vec<String>| -> Vec<String> {
        paths.into_iter().map(|path| path.replace("/mnt/user-data/workspace/", "")).collect()
    };
    let listed = sandbox.list(&base(), 3).await.unwrap().entries;
    assert_eq!(
        shown(listed.iter().map(|entry| entry.path.to_string()).collect()),
        ["a", "a/plain", "b", "z"]
    );
    let found = sandbox.glob(GlobQuery { max_results: 2, ..GlobQuery::new(base(), "**/*") }).await.unwrap();
    assert_eq!(shown(found.paths.iter().map(ToString::to_string).collect()), ["a/plain", "z"]);
    assert!(!found.truncated);
    let found = sandbox.grep(GrepQuery { max_results: 1, ..GrepQuery::new(base(), "needle") }).await.unwrap();
    assert_eq!(shown(found.matches.iter().map(|hit| hit.path.to_string()).collect()), ["a/plain"]);
    assert!(found.truncated, "z has one too");
    for output in [GrepOutput::Files, GrepOutput::Counts] {
        let query = GrepQuery { output, ..GrepQuery::new(base(), "needle") };
        let found = sandbox.grep(query).await.unwrap();
        let files = found.files.iter().map(|file| file.path.to_string()).collect();
        assert_eq!(shown(files), ["a/plain", "z"], "{output:?}");
    }
}

#[tokio::test]
async fn what_is_hidden_takes_no_room_from_what_is_not() {
    let Guarded { place, sandbox } = guarded(deny("/mnt/user-data/workspace/a/**")).await;
    let workspace = place.workspace();
    std::fs::create_dir(workspace.join("a")).unwrap();
    // More than any search returns.
    for n in 0..1_200 {
        std::fs::write(workspace.join(format!("a/{n}")), "needle\n").unwrap();
    }
    std::fs::write(workspace.join("z"), "needle\n").unwrap();
    let base = || sandbox.path(".").unwrap();
    let found = sandbox.glob(GlobQuery::new(base(), "**/*")).await.unwrap();
    assert_eq!(found.paths.iter().filter(|path| path.to_string().ends_with("/z")).count(), 1, "{found:?}");
    let found = sandbox.grep(GrepQuery::new(base(), "needle")).await.unwrap();
    assert_eq!((found.matches.len(), found.truncated), (1, false));
}

#[tokio::test]
async fn a_directory_with_something_protected_is_not_deleted() {
    let Guarded { place, sandbox } = guarded(deny("/mnt/user-data/workspace/a/keep.txt")).await;
    std::fs::create_dir_all(place.workspace().join("a")).unwrap();
    std::fs::create_dir_all(place.workspace().join("b")).unwrap();
    assert!(is_forbidden(sandbox.remove(&sandbox.path("a").unwrap()).await));
    sandbox.remove(&sandbox.path("b").unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_path_is_followed_to_where_it_leads() {
    let place = Place::new().await;
    let (workspace, sandbox) = (place.workspace(), &place.sandbox);
    std::fs::create_dir_all(workspace.join("real")).unwrap();
    std::os::unix::fs::symlink("real", workspace.join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.join("dangling")).unwrap();
    std::os::unix::fs::symlink("/etc", workspace.join("out")).unwrap();
    let resolve = async |text: &str| {
        let found = sandbox.resolve(&sandbox.path(text).unwrap()).await;
        found.map(|path| path.to_string()).map_err(|error| error.rule().unwrap_or_default())
    };
    for (given, leads_to) in [
        ("link", Ok("/mnt/user-data/workspace/real".to_owned())),
        ("link/not/yet", Ok("/mnt/user-data/workspace/real/not/yet".to_owned())),
        (".", Ok("/mnt/user-data/workspace".to_owned())),
        ("/mnt/user-data", Ok("/mnt/user-data".to_owned())),
        ("dangling", Err("path.symlink")),
        ("out/passwd", Err("path.symlink")),
    ] {
        assert_eq!(resolve(given).await, leads_to, "{given}");
    }
}
