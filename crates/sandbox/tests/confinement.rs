//! What a command cannot see, reach or change.

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsRawFd;

use hart_sandbox::{Mount, SandboxProvider, WriteMode};
use hart_types::{ThreadId, UserId};

use crate::support::{Place, path};

#[tokio::test]
async fn the_host_has_no_other_files() {
    let Some(place) = Place::isolated().await else { return };
    std::fs::write(place.outside.join("secret"), "secret").unwrap();
    let top = place.stdout("ls -A /").await;
    let allowed = [
        "bin",
        "conversation_history",
        "dev",
        "etc",
        "large_tool_results",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "mnt",
        "opt",
        "proc",
        "run",
        "sbin",
        "tmp",
        "usr",
        "var",
    ];
    assert!(top.lines().all(|name| allowed.contains(&name)), "{top}");
    for hidden in
        [place.home.to_str().unwrap(), place.outside.to_str().unwrap(), "/root", "/home", "/sys", "/.host"]
    {
        let output = place.run(&format!("ls {hidden}")).await;
        assert!(!output.exit.success(), "{hidden} is visible: {output:?}");
    }
    assert_eq!(
        place.stdout("ls /mnt /mnt/user-data | xargs").await,
        "/mnt: user-data /mnt/user-data: outputs uploads workspace"
    );
}

#[tokio::test]
async fn secrets_of_the_system_are_not_there() {
    let Some(place) = Place::isolated().await else { return };
    for secret in
        ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/ssl/private", "/etc/machine-id"]
    {
        assert!(!place.run(&format!("ls {secret}")).await.exit.success(), "{secret} is visible");
    }
    assert_eq!(place.stdout("cut -d: -f1 /etc/passwd | xargs").await, "root user nobody");
}

#[tokio::test]
async fn other_threads_are_not_there() {
    let Some(place) = Place::isolated().await else { return };
    let other = place.provider.acquire(&ThreadId::from("other"), &UserId::from("user")).await.unwrap();
    other.write(&path("private.txt"), b"needle", WriteMode::Overwrite).await.unwrap();
    let found = place.run("grep -rl needle /mnt /tmp /run /var 2>/dev/null").await;
    assert_eq!(found.stdout, "");
}

#[tokio::test]
async fn the_system_is_read_only() {
    let Some(place) = Place::isolated().await else { return };
    for target in
        ["/usr/x", "/usr/bin/x", "/x", "/etc/x", "/dev/x", "/mnt/x", "/mnt/user-data/x", "/opt/x", "/run/x"]
    {
        let output = place.run(&format!("touch {target}")).await;
        assert!(!output.exit.success(), "{target} could be written");
    }
    assert!(!place.run("echo x >> /etc/passwd").await.exit.success());
    assert_eq!(place.stdout("echo kept > /tmp/f && cat /tmp/f").await, "kept");
    assert!(!place.run("cat /tmp/f").await.exit.success(), "/tmp outlives its command");
}

#[tokio::test]
async fn kernel_settings_are_out_of_reach_even_for_root() {
    let Some(place) = Place::isolated().await else { return };
    for knob in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
        "/proc/1/oom_score_adj",
    ] {
        // Opened, never written: should confinement fail here, the host must stay as it is.
        let output = place.run(&format!("exec 3>>{knob}")).await;
        assert!(!output.exit.success(), "{knob} could be written");
    }
}

#[tokio::test]
async fn there_is_no_network() {
    let Some(place) = Place::isolated().await else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let output = place.run(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
    assert!(!output.exit.success());
    assert!(output.stderr.contains("refused"), "{output:?}");
    assert_eq!(
        place.stdout("ls /proc/net/dev >/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1 | xargs").await,
        "lo"
    );
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "a connection came through");
}

#[tokio::test]
async fn only_own_processes_are_there() {
    let Some(place) = Place::isolated().await else { return };
    let pids = place.stdout("echo /proc/[0-9]*").await;
    assert!(pids.split(' ').count() <= 3, "{pids}");
    // Only where the shell is the second process there is: should confinement fail, the host must stay as it is.
    let output = place.run("[ $$ = 2 ] || exit 3; kill -9 -1").await;
    assert_ne!(output.exit, hart_sandbox::Exit::Code(3), "not in a pid namespace");
    assert_eq!(
        place.stdout("[ $$ = 2 ] || exit 3; kill -9 1; kill -STOP 1; echo pid 1 lives").await,
        "pid 1 lives"
    );
}

#[tokio::test]
async fn pid_1_shows_nothing_of_the_memory_it_came_from() {
    let Some(place) = Place::isolated().await else { return };
    for window in ["environ", "mem", "maps", "auxv"] {
        let output = place.run(&format!("head -c 1 /proc/1/{window}")).await;
        assert!(!output.exit.success() && output.stdout.is_empty(), "{window}: {output:?}");
    }
    assert!(!place.run("ls /proc/1/root/ && ls /proc/1/fd/").await.exit.success());
    assert!(!place.run("ls /proc/1/cwd/").await.exit.success());
}

#[tokio::test]
async fn pid_1_does_not_say_how_hart_was_called() {
    // This test's own arguments stand for hart's: they name this very test or its filter, and the binary's path.
    let Some(place) = Place::isolated().await else { return };
    let shown = place.stdout("tr '\\0' ' ' < /proc/1/cmdline; cat /proc/1/comm").await;
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), ["sandbox-init", "sandbox-init"], "{shown:?}");
    let own = std::fs::read("/proc/self/cmdline").unwrap();
    let own = String::from_utf8_lossy(&own).into_owned();
    assert!(own.contains("/main-") || own.contains("/tests"), "hart's own line is untouched: {own:?}");
    let home = place.home.to_str().unwrap();
    for window in
        ["cmdline", "environ", "fd", "exe", "maps", "cwd", "stat", "status", "comm", "task/1/cmdline"]
    {
        let seen = place.run(&format!("cat /proc/1/{window}; ls -l /proc/1/{window}")).await;
        for part in own.split('\0').chain([home, "HART_", "CARGO"]).filter(|part| part.len() > 2) {
            assert!(!seen.stdout.contains(part), "{window} shows {part}: {seen:?}");
        }
    }
    let fds = place.stdout("ls -l /proc/[0-9]*/fd 2>/dev/null; true").await;
    assert!(!fds.contains(home), "{fds}");
}

#[tokio::test]
async fn there_is_no_privilege_and_no_way_to_one() {
    let Some(place) = Place::isolated().await else { return };
    let status =
        place.stdout("grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid)' /proc/self/status | tr -s '\\t' ' '").await;
    for line in status.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        match name {
            "NoNewPrivs" => assert_eq!(value, "1"),
            "Seccomp" => assert_eq!(value, "2"),
            "Uid" if rustix::process::geteuid().is_root() => assert_eq!(value, "65532 65532 65532 65532"),
            "Uid" => assert_eq!(value, "1000 1000 1000 1000"),
            _ => assert_eq!(value, "0000000000000000", "{name}"),
        }
    }
    for attempt in [
        "unshare -U true",
        "unshare -Ur true",
        "mount -t tmpfs x /tmp",
        "nsenter -t 1 -m true",
        "chroot / true",
    ] {
        assert!(!place.run(attempt).await.exit.success(), "`{attempt}` worked");
    }
}

#[tokio::test]
async fn dangerous_calls_are_filtered() {
    let Some(place) = Place::isolated().await else { return };
    if !std::path::Path::new("/usr/bin/python3").exists() || !cfg!(target_arch = "x86_64") {
        return;
    }
    // bpf, perf_event_open, userfaultfd, io_uring_setup, keyctl, open_by_handle_at, unshare; then clone3, then vsock.
    let script = "import ctypes, socket, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0)
    libc.syscall(*args)
    return errno.errorcode.get(ctypes.get_errno(), 'OK')
print(*[call(n, 0, 0, 0, 0, 0) for n in (321, 298, 323, 425, 250, 304, 272)], call(435, 0, 0))
print(call(56, 0x10000000 | 17, 0, 0, 0, 0))
for family in (40, 38, 17):
    try:
        socket.socket(family, socket.SOCK_STREAM)
        print('OPEN')
    except OSError as error:
        print(errno.errorcode[error.errno])
";
    place.sandbox.write(&path("calls.py"), script.as_bytes(), WriteMode::Overwrite).await.unwrap();
    assert_eq!(
        place.stdout("/usr/bin/python3 calls.py").await,
        "EPERM EPERM EPERM EPERM EPERM EPERM EPERM ENOSYS\nEPERM\nEAFNOSUPPORT\nEAFNOSUPPORT\nEAFNOSUPPORT"
    );
}

#[tokio::test]
async fn open_files_of_hart_are_not_inherited() {
    let Some(place) = Place::isolated().await else { return };
    let secret = place.outside.join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let open = File::open(&secret).unwrap();
    rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
    let fds = place.stdout("ls -l /proc/self/fd").await;
    // Standard streams, and the directory `ls` is reading.
    assert_eq!(fds.lines().filter(|line| line.contains("->")).count(), 4, "{fds}");
    assert!(!place.run(&format!("cat <&{}", open.as_raw_fd())).await.exit.success());
}

#[tokio::test]
async fn skills_are_shown_read_only_and_mounts_as_configured() {
    let Some(place) = Place::isolated_with(|config, outside| {
        for name in ["skills", "data", "reference"] {
            std::fs::create_dir(outside.join(name)).unwrap();
            std::fs::write(outside.join(name).join("file"), name).unwrap();
        }
        let mount = |name: &str, read_only| Mount {
            host_path: outside.join(name),
            container_path: format!("/mnt/{name}"),
            read_only,
        };
        config.mounts = vec![mount("data", false), mount("reference", true)];
        Some(outside.join("skills"))
    })
    .await
    else {
        return;
    };
    assert_eq!(
        place.stdout("cat /mnt/skills/file /mnt/data/file /mnt/reference/file").await,
        "skillsdatareference"
    );
    assert!(
        !place
            .run("touch /mnt/skills/x || touch /mnt/reference/x || rm -f /mnt/skills/file")
            .await
            .exit
            .success()
    );
    place.stdout("touch /mnt/data/x").await;
    assert!(place.outside.join("data/x").exists());
    let data = place.sandbox.path("/mnt/data/file").unwrap();
    assert_eq!(place.sandbox.read_text(&data).await.unwrap(), "data");
    let reference = place.sandbox.path("/mnt/reference/file").unwrap();
    let error = place.sandbox.write(&reference, b"", WriteMode::Overwrite).await.unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[tokio::test]
async fn a_home_inside_the_visible_system_is_covered() {
    let Ok(temporary) = tempfile::tempdir_in("/opt") else { return };
    let home = temporary.path().join("hart");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("config.yaml"), "api_key: secret").unwrap();
    let Some(_) = Place::isolated().await else { return };
    let provider = hart_sandbox::LocalSandboxProvider::new(Default::default(), home.clone(), None).unwrap();
    let sandbox = provider.acquire(&ThreadId::from("t"), &UserId::from("u")).await.unwrap();
    let command = format!("ls -A {0}; cat {0}/config.yaml; echo mine > f && cat f", home.display());
    let output = sandbox.exec(hart_sandbox::Exec::new(command), None, &Default::default()).await.unwrap();
    assert_eq!(output.stdout, "mine\n", "{output:?}");
}

#[tokio::test]
async fn a_home_that_is_a_directory_of_the_system_is_not_shown() {
    // In a mount namespace of its own, where `/opt` is empty and may be filled.
    const AS_HOME: &str = "HART_SANDBOX_TEST_OPT_IS_HOME";
    if std::env::var_os(AS_HOME).is_some() {
        std::fs::write("/opt/hart.db", "database").unwrap();
        let provider = hart_sandbox::LocalSandboxProvider::new(Default::default(), "/opt".into(), None);
        let sandbox = provider.unwrap().acquire(&ThreadId::from("t"), &UserId::from("u")).await.unwrap();
        let exec = hart_sandbox::Exec::new("ls -A /opt; cat /opt/hart.db; echo mine > f && cat f");
        let output = sandbox.exec(exec, None, &Default::default()).await.unwrap();
        assert_eq!(output.stdout, "mine\n", "{output:?}");
        return;
    }
    let Some(_) = Place::isolated().await else { return };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let test = "confinement::a_home_that_is_a_directory_of_the_system_is_not_shown";
    let mount = "mount -t tmpfs tmpfs /opt && exec \"$@\"";
    let output = std::process::Command::new("/usr/bin/unshare")
        .args(["-m", "--propagation", "private", "/bin/sh", "-c", mount, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact", test])
        .env(AS_HOME, "1")
        .output()
        .unwrap();
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "{output:?}"
    );
}

#[tokio::test]
async fn limits_are_in_force() {
    let Some(place) = Place::isolated().await else { return };
    let processes = if rustix::process::geteuid().is_root() { 16_384 } else { 512 };
    assert_eq!(place.stdout("ulimit -c; ulimit -u; ulimit -Hc").await, format!("0\n{processes}\n0"));
    assert!(!place.run("ulimit -c 1").await.exit.success());
}
