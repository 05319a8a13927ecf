//! A kernel that closes user namespaces: commands are refused, or unconfined if the operator said so.

use std::path::Path;
use std::process::Command;

use hart_sandbox::{
    Exec, Exit, LocalSandboxProvider, SandboxConfig, SandboxError, SandboxProvider, Tier, WriteMode,
};
use hart_types::{ThreadId, UserId};

use crate::support::{Place, path};

const HELPER: &str = "HART_SANDBOX_TEST_CLOSED";

/// Runs an ignored test of this module where no more user namespaces may be made.
async fn in_a_closed_kernel(test: &str) {
    let Some(place) = Place::isolated().await else { return };
    if !Path::new("/usr/bin/unshare").exists() {
        eprintln!("skipped: needs /usr/bin/unshare");
        return;
    }
    let close = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let output = Command::new("/usr/bin/unshare")
        .args(["-Ur", "/bin/sh", "-c", close, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--include-ignored", "--nocapture", "--exact", &format!("closed_kernel::{test}")])
        .env(HELPER, &place.home)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{output:?}");
}

#[tokio::test]
async fn commands_are_refused_with_the_knob_that_closes_them() {
    in_a_closed_kernel("helper_refused").await;
}

#[tokio::test]
async fn the_operator_may_allow_unconfined_commands() {
    in_a_closed_kernel("helper_host").await;
}

#[tokio::test]
#[ignore = "started by another test"]
async fn helper_refused() {
    let Some(home) = std::env::var_os(HELPER) else { return };
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.into(), None).unwrap();
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
#[ignore = "started by another test"]
async fn helper_host() {
    let Some(home) = std::env::var_os(HELPER) else { return };
    let config = SandboxConfig { allow_host_bash: true, ..SandboxConfig::default() };
    let provider = LocalSandboxProvider::new(config, home.into(), None).unwrap();
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
