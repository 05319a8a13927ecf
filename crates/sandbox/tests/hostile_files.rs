//! Files of a thread that tries to reach out through them.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hart_sandbox::{GlobQuery, GrepQuery, PathError, SandboxError, VPath, WriteMode};

use crate::support::{Place, path};

fn is_symlink_error<T: std::fmt::Debug>(result: Result<T, SandboxError>) -> bool {
    matches!(result, Err(SandboxError::Path(PathError::Symlink { .. })))
}

#[tokio::test]
async fn a_link_to_the_host_leads_nowhere() {
    let Some(place) = Place::isolated().await else { return };
    let plant = "ln -s /etc/passwd passwd; ln -s ../../../../../../../../etc etc; ln -s /mnt/user-data/outputs out; \
                 ln -s ../outputs up; ln -s / root";
    place.stdout(plant).await;
    for name in ["passwd", "etc/passwd", "out/f", "up/f", "root/etc/passwd"] {
        let file = path(name);
        assert!(is_symlink_error(place.sandbox.read(&file).await), "read {name}");
        assert!(is_symlink_error(place.sandbox.stat(&file).await), "stat {name}");
        for mode in [WriteMode::Overwrite, WriteMode::Append] {
            assert!(is_symlink_error(place.sandbox.write(&file, b"x", mode).await), "write {name} {mode:?}");
        }
        assert!(is_symlink_error(place.sandbox.modify(&file, &mut |_| Some(vec![])).await), "modify {name}");
    }
    assert!(is_symlink_error(place.sandbox.list(&path("etc"), 2).await));
    let listing = place.sandbox.list(&path("."), 5).await.unwrap();
    assert_eq!(listing.entries.len(), 5, "the links and nothing behind them: {listing:?}");
}

#[tokio::test]
async fn a_dangling_link_is_no_way_to_create_outside() {
    let place = Place::new().await;
    let target = place.outside.join("created");
    symlink(&target, place.workspace().join("absolute")).unwrap();
    symlink("../../../../../../../outside/created", place.workspace().join("relative")).unwrap();
    for name in ["absolute", "relative"] {
        for mode in [WriteMode::Overwrite, WriteMode::Append] {
            assert!(is_symlink_error(place.sandbox.write(&path(name), b"x", mode).await), "{name} {mode:?}");
        }
        let new = place.sandbox.write(&path(name), b"x", WriteMode::CreateNew).await;
        assert!(matches!(new, Err(SandboxError::AlreadyExists(_))), "{new:?}");
    }
    assert!(!target.exists());
}

#[tokio::test]
async fn links_that_stay_inside_work() {
    let place = Place::new().await;
    place.sandbox.write(&path("real/file"), b"one", WriteMode::Overwrite).await.unwrap();
    symlink("real", place.workspace().join("dir")).unwrap();
    symlink("../dir/file", place.workspace().join("real/again")).unwrap();
    symlink("not-yet", place.workspace().join("dangling")).unwrap();
    assert_eq!(place.sandbox.read(&path("dir/again")).await.unwrap(), b"one");
    place.sandbox.write(&path("dir/again"), b"two", WriteMode::Overwrite).await.unwrap();
    assert_eq!(place.sandbox.read(&path("real/file")).await.unwrap(), b"two");
    assert!(place.workspace().join("real/again").is_symlink(), "the link was replaced by a file");
    place.sandbox.write(&path("dangling"), b"made", WriteMode::Overwrite).await.unwrap();
    assert_eq!(std::fs::read(place.workspace().join("not-yet")).unwrap(), b"made");
    place.sandbox.write(&path("dir/new/deep"), b"x", WriteMode::Overwrite).await.unwrap();
    assert!(place.workspace().join("real/new/deep").exists());
}

#[tokio::test]
async fn link_loops_end() {
    let place = Place::new().await;
    symlink("b", place.workspace().join("a")).unwrap();
    symlink("a", place.workspace().join("b")).unwrap();
    assert!(is_symlink_error(place.sandbox.read(&path("a")).await));
    assert!(is_symlink_error(place.sandbox.write(&path("a"), b"", WriteMode::Overwrite).await));
}

#[tokio::test]
async fn removing_a_link_keeps_its_target() {
    let place = Place::new().await;
    std::fs::write(place.outside.join("kept"), "").unwrap();
    symlink(place.outside.join("kept"), place.workspace().join("link")).unwrap();
    place.sandbox.remove(&path("link")).await.unwrap();
    assert!(place.outside.join("kept").exists());
    symlink(&place.outside, place.workspace().join("dir")).unwrap();
    assert!(is_symlink_error(place.sandbox.remove(&path("dir/kept")).await));
    assert!(place.outside.join("kept").exists());
}

#[tokio::test]
async fn searches_do_not_follow_links() {
    let place = Place::new().await;
    std::fs::write(place.outside.join("secret.txt"), "needle").unwrap();
    symlink(&place.outside, place.workspace().join("dir")).unwrap();
    symlink(place.outside.join("secret.txt"), place.workspace().join("file.txt")).unwrap();
    let found = place.sandbox.glob(GlobQuery::new(path("."), "**/secret.txt")).await.unwrap();
    assert_eq!(found.paths, []);
    let found = place.sandbox.grep(GrepQuery::new(path("."), "needle")).await.unwrap();
    assert_eq!(found.matches, []);
    let direct = place.sandbox.grep(GrepQuery::new(path("file.txt"), "needle")).await;
    assert!(is_symlink_error(direct));
}

#[tokio::test]
async fn special_files_neither_block_nor_break() {
    let Some(place) = Place::isolated().await else { return };
    let socket = "import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")";
    place
        .stdout(&format!("mkfifo fifo; if [ -x /usr/bin/python3 ]; then /usr/bin/python3 -c '{socket}'; fi"))
        .await;
    let names: &[&str] =
        if place.workspace().join("socket").exists() { &["fifo", "socket"] } else { &["fifo"] };
    for name in names {
        let special = path(name);
        assert!(matches!(place.sandbox.read(&special).await, Err(SandboxError::NotAFile { .. })), "{name}");
        for mode in [WriteMode::Overwrite, WriteMode::Append] {
            let result = place.sandbox.write(&special, b"x", mode).await;
            assert!(matches!(result, Err(SandboxError::NotAFile { .. })), "{name} {mode:?}: {result:?}");
        }
    }
    place.sandbox.grep(GrepQuery::new(path("."), "x")).await.unwrap();
}

#[tokio::test]
async fn names_that_are_no_text_are_shown_and_survived() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new().await;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::create_dir(place.workspace().join(name)).unwrap();
    std::fs::write(place.workspace().join(name).join("f"), "needle").unwrap();
    let listing = place.sandbox.list(&path("."), 3).await.unwrap();
    assert_eq!(listing.entries[0].path.file_name(), "caf\u{fffd}");
    let found = place.sandbox.grep(GrepQuery::new(path("."), "needle")).await.unwrap();
    assert_eq!(found.matches[0].path.as_str(), "/mnt/user-data/workspace/caf\u{fffd}/f");
}

#[tokio::test]
async fn a_tree_deeper_than_any_path_is_survived() {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let place = Place::new().await;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut inner = open(place.workspace(), flags, Mode::empty()).unwrap();
    for _ in 0..2000 {
        mkdirat(&inner, "deep", Mode::from(0o700)).unwrap();
        inner = openat(&inner, "deep", flags, Mode::empty()).unwrap();
    }
    let listing = place.sandbox.list(&path("."), usize::MAX).await.unwrap();
    assert!(listing.entries.len() > 100 && listing.truncated);
    let found = place.sandbox.glob(GlobQuery::new(path("."), "**/nothing")).await.unwrap();
    assert_eq!((found.paths.len(), found.truncated), (0, true));
}

/// A directory is swapped for a link to the outside, over and over, while the host side works in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_in_the_middle_of_it_wins_nothing() {
    let place = Arc::new(Place::new().await);
    std::fs::write(place.outside.join("file"), "secret").unwrap();
    let workspace = place.workspace();
    std::fs::create_dir(workspace.join("dir")).unwrap();
    std::fs::write(workspace.join("dir/file"), "harmless").unwrap();
    symlink(&place.outside, workspace.join("link")).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&done);
    let swapping = std::thread::spawn(move || {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        while !stop.load(Ordering::Relaxed) {
            let _ =
                renameat_with(CWD, workspace.join("dir"), CWD, workspace.join("link"), RenameFlags::EXCHANGE);
        }
    });
    for round in 0..1500 {
        match place.sandbox.read(&path("dir/file")).await {
            Ok(content) => assert_ne!(content, b"secret", "read outside"),
            Err(error) => assert!(!matches!(error, SandboxError::Io { .. }), "{error}"),
        }
        let _ = place.sandbox.write(&path("dir/planted"), b"x", WriteMode::Overwrite).await;
        if round % 20 == 0 {
            let found = place.sandbox.grep(GrepQuery::new(path("."), "secret")).await.unwrap();
            assert_eq!(found.matches, []);
        }
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(!place.outside.join("planted").exists(), "wrote outside");
}

#[tokio::test]
async fn paths_outside_are_refused_by_name() {
    let place = Place::new().await;
    for text in [
        "/etc/passwd",
        "../../../etc/passwd",
        "/mnt/user-data/../../etc/passwd",
        "/",
        "/mnt",
        "/mnt/user-datax",
    ] {
        let error = place.sandbox.path(text).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("outside the sandbox: `{text}`; use /mnt/user-data/workspace")),
            "{error}"
        );
    }
    assert!(matches!(VPath::parse("a\0b"), Err(PathError::Nul { .. })));
}

/// One file under two spellings would be a way past a rule about the other, or over another's content.
#[tokio::test]
async fn names_that_look_alike_are_different_files() {
    let Some(place) = Place::isolated().await else { return };
    let names = ["caf\u{e9}", "cafe\u{301}", "README", "readme", "a\\b", "C:", "..\\..\\x", "f:stream"];
    for name in names {
        place.sandbox.write(&path(name), name.as_bytes(), WriteMode::CreateNew).await.unwrap();
    }
    for name in names {
        assert_eq!(place.sandbox.read(&path(name)).await.unwrap(), name.as_bytes(), "{name}");
        assert_eq!(place.stdout(&format!("cat '{name}'")).await, name);
    }
    let listing = place.sandbox.list(&path("."), 3).await.unwrap();
    assert_eq!(listing.entries.len(), names.len(), "all lie side by side: {listing:?}");
    assert_eq!(std::fs::read_dir(place.workspace().parent().unwrap()).unwrap().count(), 3);
}
