//! A kernel that closes user namespaces: Landlock confines, and without that commands are refused.

use std::ops::RangeInclusive;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hart_sandbox::{
    Exec, Exit, LocalSandboxProvider, SandboxConfig, SandboxError, SandboxProvider, Tier, WriteMode,
};
use hart_types::{ThreadId, UserId};

use crate::support::{Place, only_skills_were_opened, path, private_skills, skills_are_read};

/// Set only in the second process of a test, to the home directory to use there.
const HELPER: &str = "HART_SANDBOX_TEST_CLOSED";

/// The home directory to use, in a process that may make no user namespaces; elsewhere runs `test` again in such a one.
///
/// The limit belongs to a user namespace, and a process with threads, as tests are, cannot move to another. So a test
/// that needs it starts this binary again for itself alone, with [`HELPER`] set: both halves are one test under one
/// name, and no helper has to pose as a test.
pub(crate) async fn in_a_closed_kernel(test: &str, landlock: bool) -> Option<PathBuf> {
    if let Some(home) = std::env::var_os(HELPER) {
        return Some(home.into());
    }
    let place = Place::isolated().await?;
    if !Path::new("/usr/bin/unshare").exists() {
        crate::support::skipped("needs /usr/bin/unshare");
        return None;
    }
    let close = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let mut command = Command::new("/usr/bin/unshare");
    command
        .args(["-Ur", "/bin/sh", "-c", close, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact", test])
        .env(HELPER, &place.home);
    if !landlock {
        #[expect(unsafe_code, reason = "runs between fork and exec")]
        // SAFETY: two system calls on data made before fork.
        unsafe {
            command.pre_exec(without_landlock());
        }
    }
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    // A name that no test has would run nothing, successfully.
    assert!(output.status.success() && printed.contains("1 passed"), "{output:?}");
    None
}

/// Has the kernel answer as one without Landlock does.
fn without_landlock() -> impl FnMut() -> std::io::Result<()> + Send + Sync + 'static {
    without(libc::SYS_landlock_create_ruleset..=libc::SYS_landlock_restrict_self, libc::ENOSYS)
}

/// Has the kernel refuse these calls.
fn without(
    calls: RangeInclusive<libc::c_long>,
    errno: i32,
) -> impl FnMut() -> std::io::Result<()> + Send + Sync + 'static {
    let filter = [
        libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
        libc::sock_filter { code: 0x35, jt: 0, jf: 2, k: *calls.start() as u32 },
        libc::sock_filter { code: 0x25, jt: 1, jf: 0, k: *calls.end() as u32 },
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | errno as u32 },
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ];
    move || {
        let program = libc::sock_fprog { len: 5, filter: filter.as_ptr().cast_mut() };
        #[expect(unsafe_code, reason = "system call")]
        // SAFETY: the program points to five live instructions.
        let result = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
        };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

#[tokio::test]
async fn commands_are_refused_with_the_knob_that_closes_them() {
    let test = "closed_kernel::commands_are_refused_with_the_knob_that_closes_them";
    let Some(home) = in_a_closed_kernel(test, false).await else { return };
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
    let test = "closed_kernel::the_operator_may_allow_unconfined_commands";
    let Some(home) = in_a_closed_kernel(test, false).await else { return };
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

#[tokio::test]
async fn a_list_of_hosts_is_refused_where_nothing_can_enforce_it() {
    let test = "closed_kernel::a_list_of_hosts_is_refused_where_nothing_can_enforce_it";
    let Some(home) = in_a_closed_kernel(test, true).await else { return };
    for allow_host_bash in [false, true] {
        let network = serde_json::from_str(r#"["example.org"]"#).unwrap();
        let config = SandboxConfig { network, allow_host_bash, ..SandboxConfig::default() };
        let provider = LocalSandboxProvider::new(config, home.clone(), None).unwrap();
        let sandbox = provider.acquire(&ThreadId::from("t"), &UserId::from("u")).await.unwrap();
        assert_eq!(sandbox.capabilities().tier, Tier::Refused);
        let error = sandbox.exec(Exec::new("touch ran"), None, &Default::default()).await.unwrap_err();
        let SandboxError::Unavailable { reason, fix } = &error else { panic!("{error}") };
        assert!(reason.starts_with("`sandbox.network` lists hosts, and only namespaces"), "{reason}");
        assert!(reason.contains("unshare("), "{reason}");
        assert!(fix.contains("max_user_namespaces") && fix.ends_with("`sandbox.network: off`"), "{fix}");
    }
    // An empty list allows nothing, which can be had.
    let network = serde_json::from_str("[]").unwrap();
    let config = SandboxConfig { network, ..SandboxConfig::default() };
    let provider = LocalSandboxProvider::new(config, home, None).unwrap();
    assert_eq!(provider.tier().tier, Tier::Landlock, "{}", provider.tier());
}

#[tokio::test]
async fn a_home_inside_the_visible_system_is_closed_without_namespaces_too() {
    let test = "closed_kernel::a_home_inside_the_visible_system_is_closed_without_namespaces_too";
    let Some(_) = in_a_closed_kernel(test, true).await else { return };
    // Only root may make one there.
    let Ok(temporary) = tempfile::tempdir_in("/opt") else { return };
    let home = temporary.path().join("hart");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("hart.db"), "database").unwrap();
    std::fs::write(temporary.path().join("tool"), "a tool").unwrap();
    std::os::unix::fs::symlink(&home, temporary.path().join("alias")).unwrap();
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.clone(), None).unwrap();
    assert_eq!(provider.tier().tier, Tier::Landlock, "{}", provider.tier());
    let other = provider.acquire(&ThreadId::from("other"), &UserId::from("u")).await.unwrap();
    other.write(&path("f"), b"of another thread", WriteMode::Overwrite).await.unwrap();
    let sandbox = provider.acquire(&ThreadId::from("t"), &UserId::from("u")).await.unwrap();
    let command = format!(
        "for hidden in {0} {1}/alias; do ls -A $hidden; cat $hidden/hart.db; \
         cat $hidden/users/u/threads/other/user-data/workspace/f; done; \
         cat {1}/tool; echo; echo mine > f && cat f; /usr/bin/env true && echo ran",
        home.display(),
        temporary.path().display(),
    );
    let output = sandbox.exec(Exec::new(command), None, &Default::default()).await.unwrap();
    assert_eq!(output.stdout, "a tool\nmine\nran\n", "{output:?}");
}

/// Set only in the second process of the test below.
const AS_ROOT: &str = "HART_SANDBOX_TEST_ROOT_WITHOUT_NAMESPACES";

#[tokio::test]
async fn without_namespaces_a_root_hart_still_runs_commands_as_another_user() {
    if let Some(home) = std::env::var_os(AS_ROOT).map(PathBuf::from) {
        let skills = private_skills(&home, "u");
        let start = async |run_as: u32| {
            let config = SandboxConfig { run_as, ..SandboxConfig::default() };
            let provider = LocalSandboxProvider::new(config, home.clone(), Some(skills.clone())).unwrap();
            let sandbox = provider.acquire(&ThreadId::from("t"), &UserId::from("u")).await.unwrap();
            (provider.tier().to_string(), sandbox)
        };
        let (report, sandbox) = start(65_532).await;
        assert!(report.contains("landlock (no namespaces)"), "{report}");
        assert!(report.contains("user: uid 65532, files owned by it"), "{report}");
        sandbox.write(&path("d/f"), b"x", WriteMode::Overwrite).await.unwrap();
        let command =
            "echo y >> /mnt/user-data/workspace/d/f && cat d/f && id -u && echo z > /tmp/s && echo w > w";
        let output = sandbox.exec(Exec::new(command), None, &Default::default()).await.unwrap();
        assert_eq!(output.stdout, "xy\n65532\n", "{output:?}");
        let made = home.join("users/u/threads/t/user-data/workspace/w");
        assert_eq!(std::fs::metadata(made).unwrap().uid(), 65_532);
        assert_eq!(sandbox.read(&path("w")).await.unwrap(), b"w\n");
        skills_are_read(&*sandbox).await;
        only_skills_were_opened(&home);
        // Where that user cannot get to its files, commands stay root, and the report says why.
        std::fs::set_permissions(home.parent().unwrap(), PermissionsExt::from_mode(0o700)).unwrap();
        let (report, sandbox) = start(65_533).await;
        assert!(report.contains("root without privileges") && report.contains("pass through"), "{report}");
        let output =
            sandbox.exec(Exec::new("id -u; cat /etc/shadow"), None, &Default::default()).await.unwrap();
        assert_eq!(output.stdout, "0\n", "{output:?}");
        skills_are_read(&*sandbox).await;
        return;
    }
    let Some(place) = Place::isolated().await else { return };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::fs::set_permissions(place.home.parent().unwrap(), PermissionsExt::from_mode(0o711)).unwrap();
    std::fs::set_permissions(&place.home, PermissionsExt::from_mode(0o711)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "closed_kernel::without_namespaces_a_root_hart_still_runs_commands_as_another_user";
    command.args(["--nocapture", "--exact", test]).env(AS_ROOT, &place.home);
    #[expect(unsafe_code, reason = "runs between fork and exec")]
    // SAFETY: two system calls on data made before fork.
    unsafe {
        command.pre_exec(without(libc::SYS_unshare..=libc::SYS_unshare, libc::EPERM));
    }
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{output:?}");
}
