//! Who gets which sandbox.

use std::sync::Arc;

use hart_sandbox::{
    LocalSandboxProvider, Mount, SandboxConfig, SandboxError, SandboxProvider, Tier, WriteMode, probe,
};
use hart_types::{SandboxId, ThreadId, UserId};

use crate::support::{Place, path};

#[tokio::test]
async fn a_thread_has_one_sandbox_at_a_time() {
    let place = Place::new().await;
    let again = place.provider.acquire(&ThreadId::from("thread"), &UserId::from("user")).await.unwrap();
    assert!(Arc::ptr_eq(&again, &place.sandbox));
    let id = again.id().clone();
    assert!(Arc::ptr_eq(&place.provider.get(&id).await.unwrap(), &again));
    // Someone still holds it, so releasing must not give the next caller another one with other locks.
    place.provider.release(&id).await.unwrap();
    assert!(Arc::ptr_eq(&place.provider.get(&id).await.unwrap(), &again));
    assert!(place.provider.get(&SandboxId::from("local:nobody:nothing")).await.is_none());
}

#[tokio::test]
async fn a_folder_that_was_deleted_meanwhile_is_made_again() {
    let place = Place::new().await;
    std::fs::remove_dir_all(place.workspace()).unwrap();
    let again = place.provider.acquire(&ThreadId::from("thread"), &UserId::from("user")).await.unwrap();
    assert!(Arc::ptr_eq(&again, &place.sandbox));
    again.write(&path("there"), b"x", WriteMode::Overwrite).await.unwrap();
    assert!(place.workspace().join("there").exists());
}

#[tokio::test]
async fn files_outlive_their_sandbox() {
    let place = Place::new().await;
    let (thread, user) = (ThreadId::from("t"), UserId::from("u"));
    let sandbox = place.provider.acquire(&thread, &user).await.unwrap();
    sandbox.write(&path("kept"), b"x", WriteMode::Overwrite).await.unwrap();
    let id = sandbox.id().clone();
    drop(sandbox);
    place.provider.release(&id).await.unwrap();
    assert!(place.provider.get(&id).await.is_none());
    let sandbox = place.provider.acquire(&thread, &user).await.unwrap();
    assert_eq!(sandbox.read(&path("kept")).await.unwrap(), b"x");
}

#[tokio::test]
async fn hostile_ids_share_nothing_and_stay_below_home() {
    let place = Place::new().await;
    let long = "x".repeat(300);
    let ids = ["../x", "/etc", "a/b", "a\0b", "", "..", ".", &long, "x", "X", "a\nb", "ü"];
    for (number, id) in ids.iter().enumerate() {
        let sandbox = place.provider.acquire(&ThreadId::from(*id), &UserId::from(*id)).await.unwrap();
        let found = sandbox.write(&path("mine"), id.as_bytes(), WriteMode::CreateNew).await;
        assert!(found.is_ok(), "id {number} shares its files");
    }
    let users: Vec<_> = std::fs::read_dir(place.home.join("users")).unwrap().flatten().collect();
    assert_eq!(users.len(), ids.len() + 1);
    assert_eq!(std::fs::read_dir(&place.home).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&place.outside).unwrap().count(), 0);
}

#[tokio::test]
async fn directories_are_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new().await;
    let mut directory = place.workspace();
    while directory != place.home {
        let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", directory.display());
        directory.pop();
    }
}

#[tokio::test]
async fn a_thread_can_be_deleted() {
    let place = Place::new().await;
    place.sandbox.write(&path("a/b"), b"x", WriteMode::Overwrite).await.unwrap();
    std::os::unix::fs::symlink(&place.outside, place.workspace().join("link")).unwrap();
    std::fs::write(place.outside.join("kept"), "").unwrap();
    let dirs = place.provider.thread_dirs(&ThreadId::from("thread"), &UserId::from("user"));
    dirs.delete().unwrap();
    dirs.delete().unwrap();
    assert!(!place.workspace().exists());
    assert!(place.outside.join("kept").exists());
}

#[tokio::test]
async fn a_mount_may_not_contain_the_home() {
    let temporary = tempfile::tempdir().unwrap();
    let home = temporary.path().join("home");
    std::fs::create_dir(&home).unwrap();
    for host_path in [temporary.path().to_owned(), home.clone(), home.join("users"), home.join("users/u")] {
        let mount =
            Mount { host_path: host_path.clone(), container_path: "/mnt/data".into(), read_only: true };
        let config = SandboxConfig { mounts: vec![mount], ..SandboxConfig::default() };
        let error = LocalSandboxProvider::new(config, home.clone(), None).unwrap_err();
        assert!(matches!(error, SandboxError::BadConfig { .. }), "{error}");
        let skills = LocalSandboxProvider::new(SandboxConfig::default(), home.clone(), Some(host_path));
        let error = skills.unwrap_err();
        assert!(error.to_string().contains("`/mnt/skills`"), "{error}");
    }
    LocalSandboxProvider::new(SandboxConfig::default(), home.clone(), Some(home.join("skills"))).unwrap();
}

#[tokio::test]
async fn a_home_that_is_not_there_yet_is_found_behind_a_link() {
    let temporary = tempfile::tempdir().unwrap();
    let real = temporary.path().join("real");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, temporary.path().join("link")).unwrap();
    let mount = Mount { host_path: real, container_path: "/mnt/data".into(), read_only: true };
    let config = SandboxConfig { mounts: vec![mount], ..SandboxConfig::default() };
    let home = temporary.path().join("link/home");
    assert!(matches!(LocalSandboxProvider::new(config, home, None), Err(SandboxError::BadConfig { .. })));
}

#[test]
fn the_probe_says_what_is_in_force() {
    let report = probe();
    assert_eq!(report.tier == Tier::Isolated, report.reason.is_none());
    assert_eq!(report.reason.is_some(), report.fix.is_some());
    assert_eq!(report.namespaces.len(), 6);
    assert!(report.to_string().starts_with("sandbox: "));
    if report.tier == Tier::Isolated {
        assert!(report.namespaces.iter().all(|namespace| namespace.works));
    }
}

#[tokio::test]
async fn host_bash_is_not_used_where_isolation_works() {
    let Some(place) = Place::isolated_with(|config, _| {
        config.allow_host_bash = true;
        None
    })
    .await
    else {
        return;
    };
    assert_eq!(place.sandbox.capabilities().tier, Tier::Isolated);
    assert!(!place.sandbox.capabilities().network);
    assert_eq!(place.stdout("hostname 2>/dev/null || cat /etc/hostname").await, "sandbox");
}
