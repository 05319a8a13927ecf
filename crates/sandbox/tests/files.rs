//! Files of a thread that behaves.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use hart_sandbox::{EntryKind, SandboxError, WriteMode};

use crate::support::{Place, path};

#[tokio::test]
async fn what_is_written_is_read() {
    let place = Place::new().await;
    let file = path("a/b/c.txt");
    place.sandbox.write(&file, b"one", WriteMode::Overwrite).await.unwrap();
    assert_eq!(place.sandbox.read(&file).await.unwrap(), b"one");
    place.sandbox.write(&file, b" two", WriteMode::Append).await.unwrap();
    assert_eq!(place.sandbox.read_text(&file).await.unwrap(), "one two");
    place.sandbox.write(&file, b"three", WriteMode::Overwrite).await.unwrap();
    assert_eq!(place.sandbox.read_text(&file).await.unwrap(), "three");
    let leftovers: Vec<_> = std::fs::read_dir(place.workspace().join("a/b")).unwrap().collect();
    assert_eq!(leftovers.len(), 1, "temporary files stay behind: {leftovers:?}");
}

#[tokio::test]
async fn appending_creates() {
    let place = Place::new().await;
    place.sandbox.write(&path("logs/new.log"), b"first", WriteMode::Append).await.unwrap();
    assert_eq!(place.sandbox.read(&path("logs/new.log")).await.unwrap(), b"first");
}

#[tokio::test]
async fn create_new_never_overwrites() {
    let place = Place::new().await;
    place.sandbox.write(&path("f"), b"one", WriteMode::CreateNew).await.unwrap();
    let error = place.sandbox.write(&path("f"), b"two", WriteMode::CreateNew).await.unwrap_err();
    assert!(matches!(error, SandboxError::AlreadyExists(_)), "{error}");
    assert_eq!(place.sandbox.read(&path("f")).await.unwrap(), b"one");
}

#[tokio::test]
async fn overwriting_keeps_the_mode() {
    let place = Place::new().await;
    place.sandbox.write(&path("run.sh"), b"#!/bin/sh", WriteMode::Overwrite).await.unwrap();
    let host = place.workspace().join("run.sh");
    std::fs::set_permissions(&host, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.sandbox.write(&path("run.sh"), b"#!/bin/sh\ntrue", WriteMode::Overwrite).await.unwrap();
    assert_eq!(std::fs::metadata(&host).unwrap().permissions().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn content_need_not_be_text() {
    let place = Place::new().await;
    let bytes: Vec<u8> = (0..=255).collect();
    place.sandbox.write(&path("bytes"), &bytes, WriteMode::Overwrite).await.unwrap();
    assert_eq!(place.sandbox.read(&path("bytes")).await.unwrap(), bytes);
    let error = place.sandbox.read_text(&path("bytes")).await.unwrap_err();
    assert!(matches!(error, SandboxError::NotUtf8(_)), "{error}");
}

#[tokio::test]
async fn files_and_directories_are_not_confused() {
    let place = Place::new().await;
    place.sandbox.write(&path("dir/file"), b"x", WriteMode::Overwrite).await.unwrap();
    for mode in [WriteMode::Overwrite, WriteMode::Append] {
        let error = place.sandbox.write(&path("dir"), b"x", mode).await.unwrap_err();
        assert!(matches!(error, SandboxError::IsDirectory(_)), "{mode:?}: {error}");
        let error = place.sandbox.write(&path("dir/file/below"), b"x", mode).await.unwrap_err();
        assert!(matches!(error, SandboxError::NotADirectory(_)), "{mode:?}: {error}");
    }
    assert!(matches!(place.sandbox.read(&path("dir")).await, Err(SandboxError::IsDirectory(_))));
    assert!(matches!(place.sandbox.read(&path(".")).await, Err(SandboxError::IsDirectory(_))));
    assert!(matches!(place.sandbox.read(&path("/mnt/user-data")).await, Err(SandboxError::IsDirectory(_))));
    assert!(matches!(place.sandbox.read(&path("missing")).await, Err(SandboxError::NotFound(_))));
    assert!(matches!(place.sandbox.list(&path("dir/file"), 1).await, Err(SandboxError::NotADirectory(_))));
    assert!(matches!(place.sandbox.list(&path("missing"), 1).await, Err(SandboxError::NotFound(_))));
}

#[tokio::test]
async fn listing_goes_as_deep_as_asked_and_leaves_noise_out() {
    let place = Place::new().await;
    for file in ["b.txt", "a/x.txt", "a/deep/y.txt", "node_modules/m/index.js", ".git/HEAD"] {
        place.sandbox.write(&path(file), b"12345", WriteMode::Overwrite).await.unwrap();
    }
    let shown = async |at: &str, depth| -> Vec<String> {
        let listing = place.sandbox.list(&path(at), depth).await.unwrap();
        assert!(!listing.truncated);
        listing.entries.iter().map(|entry| format!("{} {}", entry.depth, entry.path)).collect()
    };
    let workspace = "/mnt/user-data/workspace";
    assert_eq!(shown(".", 1).await, [format!("1 {workspace}/a"), format!("1 {workspace}/b.txt")]);
    assert_eq!(
        shown(".", 2).await,
        [
            format!("1 {workspace}/a"),
            format!("2 {workspace}/a/deep"),
            format!("2 {workspace}/a/x.txt"),
            format!("1 {workspace}/b.txt")
        ]
    );
    assert_eq!(shown("node_modules", 1).await, [format!("1 {workspace}/node_modules/m")]);
    let top = shown("/mnt/user-data", 2).await;
    assert!(top.contains(&format!("2 {workspace}/a")), "{top:?}");
    let entries = place.sandbox.list(&path("."), 1).await.unwrap().entries;
    assert_eq!((entries[1].kind, entries[1].size), (EntryKind::File, 5));
}

#[tokio::test]
async fn listing_is_in_path_order() {
    let place = Place::new().await;
    // `.` sorts before `/`: as plain text `a.txt` would come between `a` and what is in it.
    for file in ["a.txt", "a/x", "/mnt/user-data/uploads/u", "/mnt/user-data/outputs/o"] {
        place.sandbox.write(&path(file), b"", WriteMode::Overwrite).await.unwrap();
    }
    let shown = async |depth| -> Vec<String> {
        let listing = place.sandbox.list(&path("/mnt/user-data"), depth).await.unwrap();
        let below = |path: &str| path.strip_prefix("/mnt/user-data/").unwrap().to_owned();
        listing.entries.iter().map(|entry| below(entry.path.as_str())).collect()
    };
    assert_eq!(shown(1).await, ["outputs", "uploads", "workspace"]);
    let all = [
        "outputs",
        "outputs/o",
        "uploads",
        "uploads/u",
        "workspace",
        "workspace/a",
        "workspace/a/x",
        "workspace/a.txt",
    ];
    assert_eq!(shown(3).await, all);
}

#[tokio::test]
async fn stat_tells_kind_size_and_access() {
    let place = Place::with(|_, outside| {
        std::fs::write(outside.join("SKILL.md"), "# Skill").unwrap();
        Some(outside.clone())
    })
    .await;
    place.sandbox.write(&path("f"), b"12345", WriteMode::Overwrite).await.unwrap();
    let file = place.sandbox.stat(&path("f")).await.unwrap();
    assert_eq!((file.kind, file.size, file.read_only), (EntryKind::File, 5, false));
    assert!(file.modified > 0);
    assert_eq!(place.sandbox.stat(&path(".")).await.unwrap().kind, EntryKind::Directory);
    let skill = place.sandbox.stat(&path("/mnt/skills/SKILL.md")).await.unwrap();
    assert!(skill.read_only);
    assert!(matches!(place.sandbox.stat(&path("missing")).await, Err(SandboxError::NotFound(_))));
}

#[tokio::test]
async fn skills_and_roots_cannot_be_changed() {
    let place = Place::with(|_, outside| {
        std::fs::write(outside.join("SKILL.md"), "# Skill").unwrap();
        Some(outside.clone())
    })
    .await;
    let skill = path("/mnt/skills/SKILL.md");
    assert_eq!(place.sandbox.read_text(&skill).await.unwrap(), "# Skill");
    for mode in [WriteMode::Overwrite, WriteMode::Append, WriteMode::CreateNew] {
        assert!(matches!(place.sandbox.write(&skill, b"", mode).await, Err(SandboxError::ReadOnly(_))));
    }
    assert!(matches!(place.sandbox.remove(&skill).await, Err(SandboxError::ReadOnly(_))));
    assert!(matches!(
        place.sandbox.modify(&skill, &mut |_| Some(vec![])).await,
        Err(SandboxError::ReadOnly(_))
    ));
    assert!(matches!(place.sandbox.remove(&path("/mnt/user-data")).await, Err(SandboxError::ReadOnly(_))));
    assert!(matches!(place.sandbox.remove(&path(".")).await, Err(SandboxError::IsDirectory(_))));
}

#[tokio::test]
async fn without_skills_there_is_nothing_to_read() {
    let place = Place::new().await;
    assert!(matches!(place.sandbox.read(&path("/mnt/skills/x")).await, Err(SandboxError::NotFound(_))));
}

#[tokio::test]
async fn removing_takes_files_and_empty_directories() {
    let place = Place::new().await;
    place.sandbox.write(&path("d/f"), b"", WriteMode::Overwrite).await.unwrap();
    assert!(matches!(place.sandbox.remove(&path("d")).await, Err(SandboxError::NotEmpty(_))));
    place.sandbox.remove(&path("d/f")).await.unwrap();
    place.sandbox.remove(&path("d")).await.unwrap();
    assert!(matches!(place.sandbox.remove(&path("d")).await, Err(SandboxError::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_edits_all_take_effect() {
    let place = Arc::new(Place::new().await);
    place.sandbox.write(&path("counter"), b"", WriteMode::Overwrite).await.unwrap();
    let mut edits = tokio::task::JoinSet::new();
    for number in 0..60_u8 {
        let place = Arc::clone(&place);
        edits.spawn(async move {
            let file = path("counter");
            if number % 3 == 0 {
                place.sandbox.write(&file, &[number], WriteMode::Append).await.unwrap();
            } else {
                let mut add = |old: &[u8]| Some([old, &[number]].concat());
                assert!(place.sandbox.modify(&file, &mut add).await.unwrap());
            }
        });
    }
    while let Some(edit) = edits.join_next().await {
        edit.unwrap();
    }
    let mut content = place.sandbox.read(&path("counter")).await.unwrap();
    content.sort_unstable();
    assert_eq!(content, (0..60).collect::<Vec<u8>>());
}

#[tokio::test]
async fn an_edit_may_decide_not_to() {
    let place = Place::new().await;
    place.sandbox.write(&path("f"), b"same", WriteMode::Overwrite).await.unwrap();
    let mut seen = Vec::new();
    let mut look = |old: &[u8]| {
        seen = old.to_vec();
        None
    };
    assert!(!place.sandbox.modify(&path("f"), &mut look).await.unwrap());
    assert_eq!(seen, b"same");
    assert!(matches!(place.sandbox.modify(&path("g"), &mut |_| None).await, Err(SandboxError::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_never_sees_half_a_write() {
    let place = Arc::new(Place::new().await);
    let sizes = [1_usize, 300_000];
    place.sandbox.write(&path("f"), &vec![b'x'; sizes[0]], WriteMode::Overwrite).await.unwrap();
    let writer = Arc::clone(&place);
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(async move {
        for round in 0..60 {
            writer
                .sandbox
                .write(&path("f"), &vec![b'x'; sizes[round % 2]], WriteMode::Overwrite)
                .await
                .unwrap();
        }
    });
    while writing.try_join_next().is_none() {
        let length = place.sandbox.read(&path("f")).await.unwrap().len();
        assert!(sizes.contains(&length), "{length} bytes");
    }
}
