//! Who commands are to the kernel, and the control groups they run in.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use hart_sandbox::{Exit, SandboxProvider, WriteMode};

use crate::support::{Place, path};

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test]
async fn a_root_hart_keeps_its_files_and_commands_are_not_root() {
    let Some(place) = Place::isolated().await else { return };
    if !root() {
        return;
    }
    place.sandbox.write(&path("f"), b"x", WriteMode::Overwrite).await.unwrap();
    assert_eq!(place.stdout("id -u; stat -c %u f; echo y > g; stat -c %u g").await, "65532\n65532\n65532");
    let found = std::fs::metadata(place.workspace().join("g")).unwrap();
    assert_eq!(found.uid(), 0, "on the disk it belongs to hart");
    // Something only root may read, in a directory that is shown.
    let report = place.provider.tier().to_string();
    assert!(report.contains("user: uid 65532, files mapped"), "{report}");
}

#[tokio::test]
async fn files_that_lend_their_owner_cannot_be_made() {
    let Some(place) = Place::isolated().await else { return };
    for attempt in [
        "chmod u+s f",
        "chmod g+s f",
        "chmod 4755 f",
        "install -m 4755 /bin/true g",
        "cp /bin/true h && chmod 6755 h",
    ] {
        place.run("echo x > f").await;
        assert_ne!(place.run(attempt).await.exit, Exit::Code(0), "{attempt}");
    }
    for entry in std::fs::read_dir(place.workspace()).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o6000, 0, "{:?}", entry.path());
    }
    place.stdout("chmod 755 f && touch n && mkdir -m 777 d").await;
}

/// Set in the second process of a test, to the home directory on a file system that cannot translate owners.
const UNMAPPABLE: &str = "HART_SANDBOX_TEST_UNMAPPABLE";

#[tokio::test]
async fn where_owners_cannot_be_translated_files_are_given_away() {
    if let Some(home) = std::env::var_os(UNMAPPABLE) {
        let home = std::path::PathBuf::from(home);
        let skills = crate::support::private_skills(&home, "u");
        let provider =
            hart_sandbox::LocalSandboxProvider::new(Default::default(), home.clone(), Some(skills)).unwrap();
        let sandbox = provider.acquire(&"t".into(), &"u".into()).await.unwrap();
        let report = provider.tier().to_string();
        assert!(report.contains("files owned by it"), "{report}");
        sandbox.write(&path("d/f"), b"x", WriteMode::Overwrite).await.unwrap();
        let command = hart_sandbox::Exec::new("echo y >> d/f && cat d/f && echo z > d/g && id -u");
        let output = sandbox.exec(command, None, &Default::default()).await.unwrap();
        assert_eq!(output.stdout, "xy\n65532\n", "{output:?}");
        sandbox.remove(&path("d/g")).await.unwrap();
        crate::support::skills_are_read(&*sandbox).await;
        crate::support::only_skills_were_opened(&home);
        return;
    }
    let Some(place) = Place::isolated().await else { return };
    if !root() {
        return;
    }
    // In a mount namespace of its own: the machine sees nothing of it.
    let mount = "mount -t ramfs ramfs \"$HART_SANDBOX_TEST_UNMAPPABLE\" && exec \"$@\"";
    let output = Command::new("/usr/bin/unshare")
        .args(["-m", "--propagation", "private", "/bin/sh", "-c", mount, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact", "identity::where_owners_cannot_be_translated_files_are_given_away"])
        .env(UNMAPPABLE, &place.home)
        .output()
        .unwrap();
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "{output:?}"
    );
}

/// Set in the second process of a test, to a directory that is a file system of its own.
const OWN_FILE_SYSTEM: &str = "HART_SANDBOX_TEST_OWN_FILE_SYSTEM";

#[tokio::test]
async fn a_home_on_its_own_file_system_is_not_told_by_the_mounts() {
    if let Some(top) = std::env::var_os(OWN_FILE_SYSTEM).map(std::path::PathBuf::from) {
        let home = top.join("data/of-hart");
        let skills = crate::support::private_skills(&home, "u");
        std::fs::create_dir(home.join("shared")).unwrap();
        let (host_path, container_path) = (home.join("shared"), "/mnt/shared".to_owned());
        let mounts = vec![hart_sandbox::Mount { host_path, container_path, read_only: false }];
        let config = hart_sandbox::SandboxConfig { mounts, ..Default::default() };
        let provider = hart_sandbox::LocalSandboxProvider::new(config, home, Some(skills)).unwrap();
        let sandbox = provider.acquire(&"t".into(), &"u".into()).await.unwrap();
        let command = hart_sandbox::Exec::new("cat /proc/self/mountinfo; echo /x/data/of-hart/skills");
        let shown = sandbox.exec(command, None, &Default::default()).await.unwrap().stdout;
        for place in ["/mnt/skills", "/mnt/user-skills", "/mnt/shared", "/mnt/user-data/workspace"] {
            assert!(shown.contains(&format!(" {place} {place} ")), "{place}: {shown}");
        }
        let told = shown.lines().filter(|line| line.contains("of-hart")).collect::<Vec<_>>();
        assert_eq!(told, ["/x/data/of-hart/skills"], "another path is another path");
        return;
    }
    let Some(place) = Place::isolated().await else { return };
    if !root() {
        return;
    }
    let test = "identity::a_home_on_its_own_file_system_is_not_told_by_the_mounts";
    let mount = format!("mount -t tmpfs tmpfs \"${OWN_FILE_SYSTEM}\" && exec \"$@\"");
    let output = Command::new("/usr/bin/unshare")
        .args(["-m", "--propagation", "private", "/bin/sh", "-c", &mount, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact", test])
        .env(OWN_FILE_SYSTEM, &place.outside)
        .output()
        .unwrap();
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "{output:?}"
    );
}

#[tokio::test]
async fn control_groups_come_and_go_with_their_command() {
    let Some(place) = Place::isolated().await else { return };
    let report = place.provider.tier().to_string();
    if !report.contains("processes (cgroup") {
        eprintln!("skipped: no control group can be made here: {report}");
        return;
    }
    let groups = place.stdout("cat /proc/self/cgroup").await;
    let own: Vec<&str> = groups.lines().filter(|line| line.contains("/hart-")).collect();
    assert!(own.len() >= 2, "{groups}");
    drop(place);
    for line in own {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controller, inner) = (parts.next().unwrap(), parts.next().unwrap());
        let name = inner.rsplit('/').next().unwrap();
        let base = if controller.is_empty() { "unified" } else { controller };
        let gone = !Path::new("/sys/fs/cgroup").join(base).join(name).exists();
        assert!(gone, "{line} is still there");
    }
}
