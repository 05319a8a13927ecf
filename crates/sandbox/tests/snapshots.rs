//! Snapshots of real directories: what is taken comes back, whatever was done meanwhile.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hart_sandbox::{ChangeStatus, SnapshotError, Snapshots, ThreadDirs};
use hart_types::{RunId, ThreadId, UserId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

struct Thread {
    snapshots: Snapshots,
    root: PathBuf,
    outside: PathBuf,
    _home: TempDir,
}

impl Thread {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let outside = home.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let dirs = ThreadDirs::new(&home.path().join("home"), &UserId::from("u"), &ThreadId::from("t"));
        dirs.create().unwrap();
        let root = dirs.root().join("user-data");
        Self { snapshots: Snapshots::new(dirs), root, outside, _home: home }
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn store_size(&self) -> u64 {
        let root = self.root.parent().unwrap().join("snapshots");
        ["packs", "objects"]
            .iter()
            .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum()
    }
}

/// Everything below a directory: kind, mode and content or target.
fn picture(root: &Path) -> BTreeMap<Vec<u8>, (char, u32, Vec<u8>)> {
    fn walk(root: &Path, dir: &Path, all: &mut BTreeMap<Vec<u8>, (char, u32, Vec<u8>)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            let mode = meta.mode() & 0o777;
            if meta.is_symlink() {
                all.insert(
                    name,
                    ('l', 0, fs::read_link(&path).unwrap().into_os_string().as_bytes().to_vec()),
                );
            } else if meta.is_dir() {
                all.insert(name, ('d', mode, Vec::new()));
                walk(root, &path, all);
            } else {
                all.insert(name, ('f', mode, fs::read(&path).unwrap()));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

/// One thing done to a tree. Names are few, so that the steps meet each other.
#[derive(Clone, Debug)]
enum Step {
    Write(usize, usize, Vec<u8>),
    Directory(usize, usize),
    Link(usize, usize, usize),
    Remove(usize, usize),
    Mode(usize, usize, u32),
    Rename(usize, usize, usize),
}

const DIRS: [&[u8]; 5] =
    [b"workspace", b"workspace/a", b"outputs", b"workspace/a/b c", b"workspace/new\nline\xff"];
const NAMES: [&[u8]; 6] = [b"a", b"b c", b"new\nline\xff", b"%25x", b"-rf", b"\xf0\x9f\xa6\x8c"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (dir, name) = (0..DIRS.len(), 0..NAMES.len());
    let small = proptest::collection::vec(any::<u8>(), 0..40);
    let content = prop_oneof![4 => small, 1 => (any::<u8>(), 200_000_usize..400_000).prop_map(|(byte, n)| vec![byte; n])];
    let step = prop_oneof![
        4 => (dir.clone(), name.clone(), content).prop_map(|(d, n, c)| Step::Write(d, n, c)),
        2 => (dir.clone(), name.clone()).prop_map(|(d, n)| Step::Directory(d, n)),
        1 => (dir.clone(), name.clone(), name.clone()).prop_map(|(d, n, t)| Step::Link(d, n, t)),
        2 => (dir.clone(), name.clone()).prop_map(|(d, n)| Step::Remove(d, n)),
        1 => (dir.clone(), name.clone(), prop_oneof![Just(0o755_u32), Just(0o600), Just(0o555), Just(0o700)])
            .prop_map(|(d, n, m)| Step::Mode(d, n, m)),
        1 => (dir, name.clone(), name).prop_map(|(d, n, t)| Step::Rename(d, n, t)),
    ];
    proptest::collection::vec(step, 0..25)
}

/// Does it if it can be done; what fails is no part of the tree.
fn apply(root: &Path, step: &Step) {
    let at = |dir: usize, name: usize| {
        root.join(OsStr::from_bytes(DIRS[dir])).join(OsStr::from_bytes(NAMES[name]))
    };
    match step {
        Step::Write(dir, name, content) => {
            let path = at(*dir, *name);
            if !path.is_symlink() {
                let _ = fs::write(path, content);
            }
        }
        Step::Directory(dir, name) => {
            let _ = fs::create_dir(at(*dir, *name));
        }
        Step::Link(dir, name, target) => {
            let _ = symlink(OsStr::from_bytes(NAMES[*target]), at(*dir, *name));
        }
        Step::Remove(dir, name) => {
            let path = at(*dir, *name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        Step::Mode(dir, name, mode) => {
            let path = at(*dir, *name);
            if !path.is_symlink() {
                let _ = fs::set_permissions(path, fs::Permissions::from_mode(*mode));
            }
        }
        Step::Rename(dir, name, to) => {
            let _ = fs::rename(at(*dir, *name), at(*dir, *to));
        }
    }
}

#[test]
fn what_was_taken_comes_back_whatever_was_done() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 60, ..Config::default() });
    runner
        .run(&(steps(), steps(), steps()), |(first, second, third)| {
            let thread = Thread::new();
            first.iter().for_each(|step| apply(&thread.root, step));
            let original = picture(&thread.root);
            let taken = runtime.block_on(thread.snapshots.take()).unwrap();
            second.iter().for_each(|step| apply(&thread.root, step));
            let between = picture(&thread.root);
            let again = runtime.block_on(thread.snapshots.take()).unwrap();
            third.iter().for_each(|step| apply(&thread.root, step));
            for (id, expected) in [(&taken.id, &original), (&again.id, &between), (&taken.id, &original)] {
                let restored = runtime.block_on(thread.snapshots.restore(id)).unwrap();
                prop_assert!(restored.left.is_empty(), "{:?}", restored.left);
                prop_assert_eq!(&picture(&thread.root), expected);
            }
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn many_files_are_read_once() {
    let thread = Thread::new();
    for index in 0..5000 {
        thread.put(&format!("workspace/d{}/f{index}.txt", index % 50), format!("file {index}\n"));
    }
    let first = thread.snapshots.take().await.unwrap();
    assert_eq!((first.files, first.read), (5000, 5000));
    let size = thread.store_size();
    // What was written within a tick of the first look is looked at again; after that it is certain.
    let settle = || tokio::time::sleep(std::time::Duration::from_millis(60));
    settle().await;
    thread.snapshots.take().await.unwrap();
    thread.put("workspace/d1/f1.txt", "changed\n");
    settle().await;
    let third = thread.snapshots.take().await.unwrap();
    assert_eq!((third.files, third.read), (5000, 1));
    assert_eq!(thread.store_size(), size + "changed\n".len() as u64, "only what is new is stored");
    fs::remove_dir_all(thread.root.join("workspace/d2")).unwrap();
    let restored = thread.snapshots.restore(&third.id).await.unwrap();
    assert_eq!((restored.written, restored.deleted), (101, 0), "{:?}", restored.left);
}

#[tokio::test]
async fn a_write_in_place_does_not_reach_the_snapshot() {
    let thread = Thread::new();
    let big = vec![7; 300_000];
    thread.put("workspace/small", "before");
    thread.put("workspace/big", &big);
    let taken = thread.snapshots.take().await.unwrap();
    for (path, byte) in [("workspace/small", 1_u8), ("workspace/big", 2)] {
        use std::os::unix::fs::FileExt;
        let file = fs::OpenOptions::new().write(true).open(thread.root.join(path)).unwrap();
        let times = fs::FileTimes::new().set_modified(file.metadata().unwrap().modified().unwrap());
        file.write_all_at(&[byte], 0).unwrap();
        // As a command that hides its traces would.
        file.set_times(times).unwrap();
    }
    thread.snapshots.restore(&taken.id).await.unwrap();
    assert_eq!(fs::read(thread.root.join("workspace/small")).unwrap(), b"before");
    assert_eq!(fs::read(thread.root.join("workspace/big")).unwrap(), big);
}

#[tokio::test]
async fn links_are_kept_and_never_followed() {
    let thread = Thread::new();
    fs::write(thread.outside.join("precious"), "mine").unwrap();
    fs::create_dir(thread.outside.join("dir")).unwrap();
    symlink(&thread.outside, thread.root.join("workspace/out")).unwrap();
    symlink("nowhere", thread.root.join("workspace/dangling")).unwrap();
    thread.put("workspace/dir/file", "inside");
    let taken = thread.snapshots.take().await.unwrap();
    assert_eq!(taken.files, 1, "what lies behind a link is not in it");
    // A directory becomes a link out: restoring must not write, delete or chmod through it.
    fs::remove_dir_all(thread.root.join("workspace/dir")).unwrap();
    symlink(&thread.outside, thread.root.join("workspace/dir")).unwrap();
    fs::remove_file(thread.root.join("workspace/out")).unwrap();
    fs::remove_file(thread.root.join("workspace/dangling")).unwrap();
    let before = picture(&thread.outside);
    let restored = thread.snapshots.restore(&taken.id).await.unwrap();
    assert_eq!(restored.left, [""; 0]);
    assert_eq!(picture(&thread.outside), before);
    assert_eq!(fs::read_link(thread.root.join("workspace/out")).unwrap(), thread.outside);
    assert_eq!(fs::read_to_string(thread.root.join("workspace/dir/file")).unwrap(), "inside");
    assert!(!thread.root.join("workspace/dir").is_symlink());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_swapped_for_a_link_leads_nowhere() {
    let thread = Thread::new();
    fs::write(thread.outside.join("file"), "mine").unwrap();
    for index in 0..20 {
        thread.put(&format!("workspace/dir/f{index}"), "inside");
    }
    let taken = thread.snapshots.take().await.unwrap();
    let (dir, aside) = (thread.root.join("workspace/dir"), thread.root.join("uploads/aside"));
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapping = {
        let (stop, outside) = (stop.clone(), thread.outside.clone());
        std::thread::spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = fs::rename(&dir, &aside);
                let _ = symlink(&outside, &dir);
                let _ = fs::remove_file(&dir);
                let _ = fs::rename(&aside, &dir);
            }
        })
    };
    let before = picture(&thread.outside);
    for _ in 0..300 {
        // Both may fail or miss files; neither may leave the thread's directories.
        let _ = thread.snapshots.restore(&taken.id).await;
        assert_eq!(picture(&thread.outside), before);
    }
    let seen = thread.snapshots.take().await.unwrap();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapping.join().unwrap();
    let changes = thread.snapshots.diff(&taken.id, &seen.id).await.unwrap();
    assert!(changes.files.iter().all(|file| file.diff.as_deref().is_none_or(|diff| !diff.contains("mine"))));
}

#[tokio::test]
async fn what_is_huge_or_closed_is_left_alone_and_named() {
    let thread = Thread::new();
    thread.put("workspace/a", "x");
    let huge = fs::File::create(thread.root.join("workspace/huge")).unwrap();
    huge.set_len(600 << 20).unwrap();
    thread.put("workspace/closed", "secret");
    fs::set_permissions(thread.root.join("workspace/closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let taken = thread.snapshots.take().await.unwrap();
    assert!(taken.left_out[taken.left_out.len() - 1].starts_with("workspace/huge: larger than 512 MiB"));
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    assert_eq!(taken.left_out.len(), if is_root { 1 } else { 2 });
    huge.set_len(601 << 20).unwrap();
    fs::write(thread.root.join("workspace/a"), "y").unwrap();
    thread.snapshots.restore(&taken.id).await.unwrap();
    assert_eq!(fs::metadata(thread.root.join("workspace/huge")).unwrap().len(), 601 << 20);
    assert_eq!(fs::read(thread.root.join("workspace/a")).unwrap(), b"x");
    fs::remove_file(thread.root.join("workspace/huge")).unwrap();
    let restored = thread.snapshots.restore(&taken.id).await.unwrap();
    assert_eq!(restored.left, ["workspace/huge: larger than 512 MiB"]);
}

#[tokio::test]
async fn changes_are_told_as_clients_expect_them() {
    let thread = Thread::new();
    thread.put("workspace/keep.txt", "same\n");
    thread.put("workspace/edit.txt", "one\ntwo\nthree\n");
    thread.put("workspace/gone.txt", "old\n");
    thread.put("workspace/.env", "KEY=1\n");
    thread.put("workspace/node_modules/x.js", "x");
    thread.put("workspace/data.bin", b"\0\x01");
    let before = thread.snapshots.take().await.unwrap();
    thread.put("workspace/edit.txt", "one\n2\nthree\nfour\n");
    fs::remove_file(thread.root.join("workspace/gone.txt")).unwrap();
    thread.put("outputs/new.md", "# hi\n");
    thread.put("outputs/.tool-results/bash-1.log", "noise");
    thread.put("workspace/.env", "KEY=2\n");
    thread.put("workspace/node_modules/y.js", "y");
    thread.put("workspace/data.bin", b"\0\x02");
    symlink("edit.txt", thread.root.join("workspace/link")).unwrap();
    let after = thread.snapshots.take().await.unwrap();
    let changes = thread.snapshots.diff(&before.id, &after.id).await.unwrap();
    let json = serde_json::to_value(&changes).unwrap();
    assert_eq!(
        json["summary"],
        serde_json::json!({"created": 2, "modified": 3, "deleted": 1, "symlink_created": 1, "additions": 3,
            "deletions": 2, "truncated": false})
    );
    assert_eq!(json["limits"]["max_files"], 200);
    let file = |path: &str| changes.files.iter().find(|file| file.path.ends_with(path)).unwrap();
    assert_eq!(
        file("edit.txt").diff.as_deref().unwrap(),
        "--- a/workspace/edit.txt\n+++ b/workspace/edit.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n"
    );
    let new = file("new.md");
    assert_eq!((new.status, new.path.as_str()), (ChangeStatus::Created, "/mnt/user-data/outputs/new.md"));
    assert!(new.diff.as_deref().unwrap().starts_with("--- /dev/null\n+++ b/outputs/new.md\n"));
    assert_eq!(file("gone.txt").status, ChangeStatus::Deleted);
    let env = file(".env");
    assert_eq!(
        (env.sensitive, env.diff.as_ref(), env.diff_unavailable_reason),
        (true, None, Some("sensitive"))
    );
    assert_eq!((file("data.bin").binary, file("data.bin").diff_unavailable_reason), (true, Some("binary")));
    assert_eq!(file("link").symlink_target_after.as_deref(), Some("edit.txt"));
    assert_eq!(changes.files.len(), 6);
}

#[tokio::test]
async fn answers_are_bounded() {
    let thread = Thread::new();
    let before = thread.snapshots.take().await.unwrap();
    for index in 0..250 {
        thread.put(&format!("workspace/f{index:03}"), "x\n".repeat(5000));
    }
    thread.put("outputs/large.txt", "y\n".repeat(200_000));
    let after = thread.snapshots.take().await.unwrap();
    let changes = thread.snapshots.diff(&before.id, &after.id).await.unwrap();
    assert_eq!((changes.summary.created, changes.files.len(), changes.summary.truncated), (251, 200, true));
    let shown: usize = changes.files.iter().filter_map(|file| file.diff.as_ref()).map(String::len).sum();
    assert!(shown <= 1 << 20, "{shown}");
    assert!(changes.files.iter().any(|file| file.diff_truncated));
    assert_eq!(changes.files[0].diff_unavailable_reason, Some("too_large"));
    assert_eq!(changes.files.last().unwrap().diff_unavailable_reason, Some("total_limit"));
}

#[tokio::test]
async fn old_snapshots_go_and_the_others_stay_whole() {
    let thread = Thread::new();
    let mut taken = Vec::new();
    for round in 0..4 {
        thread.put("workspace/always", "the same");
        thread.put("workspace/round", format!("round {round}"));
        thread.put("workspace/big", vec![round as u8; 300_000]);
        taken.push(thread.snapshots.take().await.unwrap().id);
    }
    assert_eq!(thread.snapshots.list().await.unwrap(), taken);
    let size = thread.store_size();
    assert_eq!(thread.snapshots.prune(2).await.unwrap(), 2);
    assert!(thread.store_size() <= size - 600_000);
    assert!(matches!(thread.snapshots.restore(&taken[0]).await, Err(SnapshotError::NotFound { .. })));
    thread.snapshots.restore(&taken[2]).await.unwrap();
    assert_eq!(fs::read(thread.root.join("workspace/round")).unwrap(), b"round 2");
    assert_eq!(fs::read(thread.root.join("workspace/big")).unwrap(), vec![2; 300_000]);
    assert_eq!(fs::read(thread.root.join("workspace/always")).unwrap(), b"the same");
    assert_eq!(thread.snapshots.prune(0).await.unwrap(), 2);
    assert_eq!(thread.store_size(), 0);
}

#[tokio::test]
async fn a_damaged_snapshot_is_said_to_be() {
    let thread = Thread::new();
    thread.put("workspace/a", "x");
    let taken = thread.snapshots.take().await.unwrap();
    let manifest = thread.root.parent().unwrap().join(format!("snapshots/{}.manifest", taken.id));
    let bytes = fs::read(&manifest).unwrap();
    for broken in [&b""[..], b"{", &bytes[..bytes.len() / 2], b"[1,\"0\",1]\n[\"workspace/../x\",{}]"] {
        fs::write(&manifest, broken).unwrap();
        assert!(matches!(thread.snapshots.restore(&taken.id).await, Err(SnapshotError::Damaged { .. })));
    }
    assert_eq!(fs::read(thread.root.join("workspace/a")).unwrap(), b"x", "nothing is touched");
    thread.snapshots.take().await.unwrap();
}

#[tokio::test]
async fn a_change_within_a_tick_of_the_clock_is_not_missed() {
    let thread = Thread::new();
    thread.put("workspace/a", "0000");
    let mut last = thread.snapshots.take().await.unwrap().id;
    for round in 1..300 {
        // Same file, same size, and on most kernels the same time as the write before.
        fs::write(thread.root.join("workspace/a"), format!("{round:04}")).unwrap();
        let now = thread.snapshots.take().await.unwrap().id;
        let changes = thread.snapshots.diff(&last, &now).await.unwrap();
        assert_eq!(changes.summary.modified, 1, "round {round}");
        last = now;
    }
}

#[tokio::test]
async fn a_thread_that_never_had_a_file_is_undone_to_having_none() {
    let thread = Thread::new();
    fs::remove_dir_all(thread.root.parent().unwrap()).unwrap();
    let (idle, busy) = (RunId::from("r1"), RunId::from("r2"));
    thread.snapshots.before_run(&idle).await.unwrap();
    thread.snapshots.after_run(&idle).await.unwrap();
    assert!(!thread.root.exists(), "nobody has put a file there");
    assert!(thread.snapshots.run_changes(&idle).await.unwrap().files.is_empty());
    thread.snapshots.undo_run(&idle).await.unwrap();
    assert!(!thread.root.exists());

    thread.snapshots.before_run(&busy).await.unwrap();
    thread.put("workspace/new.txt", "new\n");
    // A run that goes on in another process says it again.
    thread.snapshots.before_run(&busy).await.unwrap();
    assert_eq!(thread.snapshots.run_changes(&busy).await.unwrap().summary.created, 1);
    thread.snapshots.after_run(&busy).await.unwrap();
    assert_eq!(thread.snapshots.run_changes(&busy).await.unwrap().summary.created, 1);
    thread.snapshots.undo_run(&busy).await.unwrap();
    assert_eq!(fs::read_dir(thread.root.join("workspace")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_was_sent_while_a_run_was_at_work_stays_when_it_is_undone() {
    let thread = Thread::new();
    let run = RunId::from("r1");
    thread.put("uploads/old.csv", "1\n");
    thread.snapshots.before_run(&run).await.unwrap();
    thread.put("uploads/old.csv", "changed by the run\n");
    thread.put("uploads/sent.csv", "2\n");
    thread.put("workspace/made.txt", "x\n");
    thread.snapshots.undo_run(&run).await.unwrap();
    let read = |path: &str| fs::read_to_string(thread.root.join(path)).ok();
    assert_eq!(read("uploads/old.csv").as_deref(), Some("1\n"));
    assert_eq!(read("uploads/sent.csv").as_deref(), Some("2\n"), "nobody undid the sending");
    assert_eq!(read("workspace/made.txt"), None);
}

#[tokio::test]
async fn a_run_is_undone_to_where_it_began_and_its_changes_are_told() {
    let thread = Thread::new();
    let (first, second) = (RunId::from("r1"), RunId::from("../r2"));
    thread.put("workspace/kept.txt", "one\n");
    thread.snapshots.before_run(&first).await.unwrap();
    let before = picture(&thread.root);
    thread.put("workspace/kept.txt", "two\n");
    thread.put("outputs/new.md", "# new\n");
    // A run that goes on in another process says it again.
    thread.snapshots.before_run(&first).await.unwrap();
    let so_far = thread.snapshots.run_changes(&first).await.unwrap();
    assert_eq!((so_far.summary.created, so_far.summary.modified), (1, 1));
    thread.snapshots.after_run(&first).await.unwrap();

    thread.snapshots.before_run(&second).await.unwrap();
    fs::remove_file(thread.root.join("workspace/kept.txt")).unwrap();
    thread.snapshots.after_run(&second).await.unwrap();

    let of = async |run: &RunId| thread.snapshots.run_changes(run).await.unwrap();
    let status = |changes: &hart_sandbox::WorkspaceChanges| {
        changes.files.iter().map(|file| (file.path.clone(), file.status)).collect::<Vec<_>>()
    };
    assert_eq!(
        status(&of(&first).await),
        [
            ("/mnt/user-data/outputs/new.md".to_owned(), ChangeStatus::Created),
            ("/mnt/user-data/workspace/kept.txt".to_owned(), ChangeStatus::Modified),
        ]
    );
    assert_eq!(
        status(&of(&second).await),
        [("/mnt/user-data/workspace/kept.txt".to_owned(), ChangeStatus::Deleted)]
    );
    thread.snapshots.undo_run(&first).await.unwrap();
    assert_eq!(picture(&thread.root), before);
    let unknown = thread.snapshots.undo_run(&RunId::from("r3")).await.unwrap_err();
    assert!(matches!(unknown, SnapshotError::NotFound { .. }), "{unknown}");
}

#[tokio::test]
async fn runs_that_change_nothing_cost_no_snapshot_and_old_ones_are_dropped() {
    let thread = Thread::new();
    thread.put("workspace/a.txt", "a");
    // Long enough ago that a stamp is proof.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let run = async |name: String, write: bool| {
        let run = RunId::from(name.as_str());
        thread.snapshots.before_run(&run).await.unwrap();
        if write {
            thread.put("workspace/a.txt", &name);
        }
        thread.snapshots.after_run(&run).await.unwrap();
        run
    };
    for number in 0..5 {
        run(format!("quiet{number}"), false).await;
    }
    assert_eq!(thread.snapshots.list().await.unwrap().len(), 1);
    let mut busy = Vec::new();
    for number in 0..60 {
        busy.push(run(format!("busy{number}"), true).await);
    }
    assert!(thread.snapshots.list().await.unwrap().len() <= 41);
    let gone = thread.snapshots.run_changes(&busy[0]).await.unwrap_err();
    assert!(matches!(gone, SnapshotError::NotFound { .. }), "{gone}");
    assert_eq!(thread.snapshots.run_changes(&busy[59]).await.unwrap().summary.modified, 1);
    let notes = thread.root.parent().unwrap().join("snapshots/runs");
    assert!(fs::read_dir(notes).unwrap().count() <= 41);
}

#[tokio::test]
async fn another_thread_gets_the_files_and_goes_its_own_way() {
    let thread = Thread::new();
    let home = tempfile::tempdir().unwrap();
    let other = ThreadDirs::new(home.path(), &UserId::from("u"), &ThreadId::from("copy"));
    thread.put("workspace/a.txt", "a");
    thread.put("outputs/b/c.txt", "c");
    thread.snapshots.copy_to(other.clone()).await.unwrap();
    let copy = other.root().join("user-data");
    assert_eq!(picture(&copy), picture(&thread.root));
    thread.put("workspace/a.txt", "changed");
    assert_eq!(fs::read(copy.join("workspace/a.txt")).unwrap(), b"a");

    let nobody = ThreadDirs::new(home.path(), &UserId::from("u"), &ThreadId::from("nobody"));
    let third = ThreadDirs::new(home.path(), &UserId::from("u"), &ThreadId::from("third"));
    Snapshots::new(nobody.clone()).copy_to(third.clone()).await.unwrap();
    assert!(!nobody.root().exists() && !third.root().exists());
}
