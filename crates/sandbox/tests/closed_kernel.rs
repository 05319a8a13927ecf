//! A kernel that closes user namespaces: commands are refused, or unconfined if the operator said so.

use std::path::{Path, PathBuf};
use std::process::Command;

use hart_sandbox::{
    Exec, Exit, LocalSandboxProvider, SandboxConfig, SandboxError, SandboxProvider, Tier, WriteMode,
};
use hart_types::{ThreadId, UserId};

use crate::support::{Place, path};

/// Set only in the second process of a test, to the home directory to use there.
const HELPER: &str = "HART_SANDBOX_TEST_CLOSED";

/// The home directory to use, in a process that may make no user namespaces; elsewhere runs `test` again in such a one.
///
/// The limit belongs to a user namespace, and a process with threads, as tests are, cannot move to another. So a test
/// that needs it starts this binary again for itself alone, with [`HELPER`] set: both halves are one test under one
/// name, and no helper has to pose as a test.
async fn in_a_closed_kernel(test: &str) -> Option<PathBuf> {
    if let Some(home) = std::env::var_os(HELPER) {
        return Some(home.into());
    }
    let place = Place::isolated().await?;
    if !Path::new("/usr/bin/unshare").exists() {
        eprintln!("skipped: needs /usr/bin/unshare");
        return None;
    }
    let close = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let output = Command::new("/usr/bin/unshare")
        .args(["-Ur", "/bin/sh", "-c", close, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact", &format!("closed_kernel::{test}")])
        .env(HELPER, &place.home)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    // A name that no test has would run nothing, successfully.
    assert!(output.status.success() && printed.contains("1 passed"), "{output:?}");
    None
}

#[tokio::test]
async fn commands_are_refused_with_the_knob_that_closes_them() {
    let test = "commands_are_refused_with_the_knob_that_closes_them";
    let Some(home) = in_a_closed_kernel(test).await else { return };
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home, None).unwrap();
    let sandbox = provider.acquire(&ThreadId::from("t"), &UserId::from("u")).await.unwrap();
    assert_eq!(sandbox.capabilities().tier, Tier::Refused);
    let error = sandbox.exec(Exec::new("touch ran"), None, &Default::default()).await.unwrap_err();
    let SandboxError::Unavailable { reason, fix } = &error else { panic!("{error}") };
    assert!(reason.starts_with("unshare(") && reason.contains("failed: "), "{reason}");
    assert!(fix.contains("sysctl -w user.max_user_namespaces="), "{fix}");
    let report = provider.tier();
    assert!(report.namespaces.iter().all(|namespace| !namespace.works), "{report}");
    // Files need no namespaces.
    sandbox.write(&path("f"), b"x", WriteMode::Overwrite).await.unwrap();
    assert!(matches!(sandbox.read(&path("ran")).await, Err(SandboxError::NotFound(_))));
}

#[tokio::test]
async fn the_operator_may_allow_unconfined_commands() {
    let test = "the_operator_may_allow_unconfined_commands";
    let Some(home) = in_a_closed_kernel(test).await else { return };
    let config = SandboxConfig { allow_host_bash: true, ..SandboxConfig::default() };
    let provider = LocalSandboxProvider::new(config, home, None).unwrap();
    let sandbox = provider.acquire(&ThreadId::from("t"), &UserId::from("u")).await.unwrap();
    assert_eq!(sandbox.capabilities().tier, Tier::Host);
    let seen = std::sync::Mutex::new(String::new());
    let sink = |_, text: &str| seen.lock().unwrap().push_str(text);
    let command =
        "echo kept > /mnt/user-data/outputs/f; cat /mnt/user-data/outputs/f; pwd; env | cut -d= -f1; exit 4";
    let output = sandbox.exec(Exec::new(command), Some(&sink), &Default::default()).await.unwrap();
    assert_eq!(output.exit, Exit::Code(4));
    assert!(output.stdout.starts_with("kept\n/mnt/user-data/workspace\n"), "{output:?}");
    assert!(!output.stdout.contains(HELPER), "hart's environment was passed on");
    assert_eq!(*seen.lock().unwrap(), output.stdout);
    let stuck = Exec::new("echo up; sleep 600 & sleep 600").timeout(std::time::Duration::from_secs(1));
    let output = sandbox.exec(stuck, None, &Default::default()).await.unwrap();
    assert_eq!((output.exit, output.stdout.as_str()), (Exit::TimedOut, "up\n"));
}
