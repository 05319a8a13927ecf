//! Commands that try to take the machine with them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hart_sandbox::{Denied, Exec, Exit, OutputSink, SandboxProvider, Stream};
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, Place, path, processes_with};

#[derive(Default)]
struct Heard {
    denied: Mutex<Vec<Denied>>,
    bytes: AtomicU64,
}

impl OutputSink for Heard {
    fn output(&self, _: Stream, text: &str) {
        self.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
    }

    fn denied(&self, denied: &Denied) {
        self.denied.lock().unwrap().push(denied.clone());
    }
}

impl Heard {
    fn rules(&self) -> Vec<&'static str> {
        self.denied.lock().unwrap().iter().map(|denied| denied.rule).collect()
    }
}

fn has_cgroups(place: &Place) -> bool {
    place.provider.tier().to_string().contains("processes (cgroup")
}

#[tokio::test]
async fn a_fork_bomb_is_held_and_ends() {
    let Some(place) = Place::isolated_with(|config, _| {
        config.pids_limit = 64;
        None
    })
    .await
    else {
        return;
    };
    let marker = format!("hart-bomb-{}", std::process::id());
    // Only inside: as the second process there is, and never more than a bounded number of rounds.
    let bomb = format!("[ $$ = 2 ] || exit 3; b() {{ : {marker}; b | b & }}; b; sleep 600");
    let heard = Heard::default();
    let exec = Exec::new(bomb).timeout(Duration::from_secs(2)).output_limit(10_000);
    let output = place.sandbox.exec(exec, Some(&heard), &CancellationToken::new()).await.unwrap();
    assert_ne!(output.exit, Exit::Code(3));
    assert_eq!(processes_with(&marker), [] as [u32; 0]);
    if has_cgroups(&place) {
        assert!(heard.rules().contains(&"cgroup.pids"), "{:?}", heard.rules());
    }
    assert!(place.run("true").await.exit.success(), "hart goes on");
}

#[tokio::test]
async fn a_memory_bomb_takes_only_itself() {
    let Some(place) = Place::isolated_with(|config, _| {
        config.memory_limit = Some(64 << 20);
        None
    })
    .await
    else {
        return;
    };
    if !has_cgroups(&place) {
        eprintln!("skipped: no control group can be made here");
        return;
    }
    let heard = Heard::default();
    // Bounded by itself too, should the limit not hold.
    let exec = Exec::new("[ $$ = 2 ] || exit 3; head -c 500000000 /dev/zero | tail -c 400000000 | wc -c")
        .timeout(PATIENCE);
    let output = place.sandbox.exec(exec, Some(&heard), &CancellationToken::new()).await.unwrap();
    assert_ne!(output.stdout.trim(), "400000000", "{output:?}");
    assert!(heard.rules().contains(&"cgroup.memory"), "{:?} {output:?}", heard.rules());
}

#[tokio::test]
async fn a_disk_filler_meets_its_limits() {
    let Some(place) = Place::isolated().await else { return };
    // Sparse: no byte of it reaches the disk, whatever happens.
    let output = place.run("truncate -s 9G big").await;
    assert!(!output.exit.success(), "{output:?}");
    let output = place.run("truncate -s 7G big && rm big && head -c 1100M /dev/zero > /tmp/f").await;
    assert!(!output.exit.success() && output.stderr.contains("space"), "{output:?}");
    let output = place.run("cd /tmp; seq 206000 | xargs touch 2>&1 | tail -n 1").await;
    assert!(output.stdout.contains("No space"), "{}", output.stdout);
}

#[tokio::test]
async fn files_without_end_stop_at_the_quota_of_the_thread() {
    const QUOTA: u64 = 48 << 20;
    let Some(place) = Place::isolated_with(|config, _| {
        config.disk_limit = QUOTA;
        None
    })
    .await
    else {
        return;
    };
    let heard = Heard::default();
    // Bounded by itself too, should the limit not hold: no more than 4 GB. Many files, so that no limit of one matters.
    let filler =
        "[ $$ = 2 ] || exit 3; for i in $(seq 1000); do head -c 4M /dev/zero > f$i; sleep 0.02; done";
    let exec = Exec::new(filler).timeout(PATIENCE);
    let output = place.sandbox.exec(exec, Some(&heard), &CancellationToken::new()).await.unwrap();
    assert_eq!(output.exit, Exit::Signal(9), "{output:?}");
    assert!(output.stderr.contains("the limit is 48 MiB; remove what is not needed"), "{output:?}");
    assert!(heard.rules().contains(&"disk.quota"), "{:?}", heard.rules());
    // Now nothing can be written, neither by commands nor by the file tools, but what is there can be removed.
    let full = place.run("echo more > g").await;
    assert!(!full.exit.success() && full.stderr.contains("the limit is 48 MiB"), "{full:?}");
    assert_eq!(place.stdout("cat g | wc -c").await, "0");
    let written = place.sandbox.write(&path("h"), b"more", hart_sandbox::WriteMode::Overwrite).await;
    assert_eq!(written.unwrap_err().rule(), Some("disk.quota"));
    place.stdout("rm f*").await;
    assert_eq!(place.stdout("echo more > g; cat g").await, "more");
    place.sandbox.write(&path("h"), b"more", hart_sandbox::WriteMode::Overwrite).await.unwrap();
}

#[tokio::test]
async fn empty_files_without_end_stop_too() {
    let Some(place) = Place::isolated_with(|config, _| {
        config.disk_limit = 16 << 20;
        None
    })
    .await
    else {
        return;
    };
    let heard = Heard::default();
    let filler = "[ $$ = 2 ] || exit 3; for i in $(seq 60); do mkdir d$i; (cd d$i; seq 1000 | xargs touch); sleep 0.05; done";
    let exec = Exec::new(filler).timeout(PATIENCE);
    let output = place.sandbox.exec(exec, Some(&heard), &CancellationToken::new()).await.unwrap();
    assert_eq!(output.exit, Exit::Signal(9), "{output:?}");
    assert!(heard.rules().contains(&"disk.quota"), "{:?}", heard.rules());
}

#[tokio::test]
async fn nothing_runs_or_is_written_where_the_disk_is_nearly_full() {
    let Some(place) = Place::isolated_with(|config, _| {
        config.disk_reserve = Some(u64::MAX);
        None
    })
    .await
    else {
        return;
    };
    let report = place.provider.tier();
    assert!(report.disk_full && report.to_string().contains("nothing is run or written"), "{report}");
    let ran = place.sandbox.exec(Exec::new("true"), None, &CancellationToken::new()).await;
    let error = ran.unwrap_err();
    assert_eq!(error.rule(), Some("disk.reserve"));
    assert!(error.to_string().contains("must stay free; ask the user to make room"), "{error}");
    let written = place.sandbox.write(&path("h"), b"more", hart_sandbox::WriteMode::Overwrite).await;
    assert_eq!(written.unwrap_err().rule(), Some("disk.reserve"));
}

#[tokio::test]
async fn an_output_flood_is_counted_not_kept() {
    // In a process of its own, where no other test takes memory meanwhile.
    const ALONE: &str = "HART_SANDBOX_TEST_FLOOD";
    if std::env::var_os(ALONE).is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "bombs::an_output_flood_is_counted_not_kept"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
        return;
    }
    let Some(place) = Place::isolated().await else { return };
    let heard = Heard::default();
    let exec = Exec::new("head -c 1000000000 /dev/zero | tr '\\0' x")
        .timeout(Duration::from_secs(300))
        .output_limit(20_000);
    let before = resident();
    let output = place.sandbox.exec(exec, Some(&heard), &CancellationToken::new()).await.unwrap();
    assert_eq!(heard.bytes.load(Ordering::Relaxed), 1_000_000_000);
    assert!(output.stdout.len() < 21_000);
    assert!(resident() < before + (32 << 20), "{before} grew to {}", resident());
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn a_daemon_that_detaches_is_not_left_behind() {
    let Some(place) = Place::isolated().await else { return };
    let marker = format!("hart-daemon-{}", std::process::id());
    let daemon = format!(
        "(setsid bash -c 'trap \"\" TERM HUP INT QUIT; (setsid bash -c \"exec >/dev/null 2>&1 </dev/null; while :; do sleep 600; done; : {marker}\" &) ; exit' &); sleep 0.3; echo done"
    );
    let output = place.run(&daemon).await;
    assert_eq!(output.stdout, "done\n");
    assert_eq!(processes_with(&marker), [] as [u32; 0]);
}
