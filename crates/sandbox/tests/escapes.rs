//! Ways out, each tried: a table of attempts with the rule that stops them.
//!
//! A command "escapes" by ending with 0. Each attempt must also leave a line with the id of a rule that the guide lists.
//! Every attempt is written so that, were it to succeed, the machine would stay as it is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use hart_sandbox::{
    Denied, Exec, LocalSandboxProvider, OutputSink, Sandbox, SandboxConfig, SandboxProvider, Stream, Tier,
    WriteMode,
};
use hart_types::{ThreadId, UserId};
use tokio_util::sync::CancellationToken;

use crate::closed_kernel::in_a_closed_kernel;
use crate::support::{PATIENCE, path};

/// Where an attempt makes sense.
#[derive(Clone, Copy, PartialEq)]
enum In {
    All,
    Namespaces,
}
use In::{All, Namespaces};

/// Of an attempt that tries nothing against a rule: what it looks for is simply not there. The guide names them.
const NOTHING_TRIED: &str = "";

/// Rules (one of them must be heard), where, attempt. `{outside}` is a directory beside hart's home with a file `secret`, `{home}` hart's home,
/// `{other}` the workspace of another thread, `{port}` a TCP port and `{name}` an abstract socket of the host.
const TABLE: &[(&str, In, &str)] = &[
    // Writing outside.
    ("file.write|text.hidden-path", All, "echo x > {outside}/new"),
    ("file.write|text.hidden-path", All, "echo x >> {outside}/secret"),
    ("file.write|text.hidden-path", All, "mkdir {home}/config.d"),
    ("file.write|text.hidden-path", All, "echo x > {home}/config.yaml"),
    ("file.write|text.hidden-path", All, "echo x > {other}/planted"),
    ("file.write|text.hidden-path", All, "touch {outside}/../planted"),
    ("file.write", All, "echo x > /usr/hart-test"),
    ("file.write", All, "echo x > /etc/hart-test"),
    ("file.write", All, "echo x > /etc/ld.so.preload"),
    ("file.write", All, "mkdir /opt/hart-test"),
    ("file.write", All, "echo x > /hart-test"),
    ("file.write", All, "echo x > /var/hart-test"),
    ("file.write", All, "echo x > /run/hart-test"),
    ("file.write", All, "echo x > /dev/hart-test"),
    ("file.write", Namespaces, "echo x > /mnt/user-data/hart-test"),
    ("file.write|text.hidden-path", All, "mkdir -p /root/hart-test && rmdir /root/hart-test"),
    // Reading outside.
    ("text.hidden-path", All, "cat {outside}/secret"),
    ("text.hidden-path", All, "ls {home}/users"),
    ("text.hidden-path", All, "cat {other}/private"),
    ("text.hidden-path", All, "ls /root/.ssh || ls /home/*/.ssh"),
    ("text.hidden-path", All, "cat /etc/shadow"),
    ("text.hidden-path", All, "cat /etc/sudoers"),
    ("text.hidden-path", All, "ls /etc/ssl/private"),
    ("text.hidden-path", All, "ls /var/lib"),
    ("text.hidden-path", All, "ls /sys/kernel"),
    ("text.hidden-path", All, "ls /boot"),
    // Links.
    ("file.link|text.hidden-path", All, "ln -s {outside}/secret l1 && cat l1"),
    ("file.link|text.hidden-path", All, "ln -s {outside} l2 && echo x > l2/new"),
    ("file.link|text.hidden-path", All, "ln {outside}/secret l3"),
    ("file.link", Namespaces, "ln /etc/passwd l4"),
    ("text.hidden-path", All, "cat /proc/self/cwd/../../../../../../../..{outside}/secret"),
    // Through processes.
    ("text.process", Namespaces, "[ -d /proc/{pid} ] && cat /proc/{pid}/cmdline | grep -q ."),
    ("text.process", All, "cat /proc/1/environ | grep -q ."),
    ("text.process", All, "head -c1 /proc/1/mem"),
    ("text.process", All, "ls /proc/1/root/"),
    ("text.process", All, "readlink /proc/1/fd/0"),
    ("text.process", All, "ls /proc/1/cwd/"),
    ("text.process", All, "cat /proc/$PPID/environ | grep -q ."),
    ("text.process", All, "head -c1 /proc/$PPID/mem"),
    ("text.process", All, "cat /proc/{pid}/environ | grep -q ."),
    ("process.signal", All, "kill -0 {pid}"),
    ("seccomp.process", Namespaces, "perl -e 'exit(syscall(101, 16, 1, 0, 0) == 0 ? 0 : 1)'"),
    (NOTHING_TRIED, All, "env | grep -qi 'secret\\|token\\|cargo'"),
    (NOTHING_TRIED, All, "ls -l /proc/self/fd | grep -q 'secret\\|socket:\\|/home/'"),
    // Kernel settings; opened, never written.
    ("file.write", All, "exec 3>>/proc/sys/kernel/core_pattern"),
    ("file.write", All, "exec 3>>/proc/sys/vm/drop_caches"),
    ("file.write", All, "exec 3>>/proc/sysrq-trigger"),
    ("file.write", All, "exec 3>>/sys/kernel/uevent_helper"),
    ("file.write", All, "exec 3>>/sys/fs/cgroup/cgroup.procs"),
    ("text.hidden-path", All, "exec 3</dev/mem || exec 3</dev/kmsg || exec 3</dev/vda || exec 3</dev/sda"),
    ("file.write", All, "exec 3<>/dev/kvm || exec 3<>/dev/net/tun || exec 3<>/dev/fuse"),
    // Calls.
    ("seccomp.mount", All, "perl -e 'exit(syscall(165, 0, 0, 0, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.mount", All, "mount -t tmpfs none /tmp"),
    ("seccomp.mount", All, "mount --bind /proc/self/fd /tmp"),
    ("seccomp.mount", All, "perl -e 'exit(syscall(166, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.mount", All, "perl -e 'exit(syscall(155, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.mount", All, "perl -e 'exit(syscall(428, -100, 0, 1) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.namespace", All, "unshare -U true"),
    ("seccomp.namespace", All, "unshare -Urm true"),
    ("seccomp.namespace", All, "nsenter -t $$ -m true"),
    (
        "seccomp.namespace",
        All,
        "perl -e 'exit(syscall(56, 0x10000011, 0, 0, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'",
    ),
    (
        "seccomp.namespace",
        All,
        "perl -e '$a = pack(\"Q8\", 0x10000000, 0, 0, 0, 17, 0, 0, 0); exit(syscall(435, $a, 64) == -1 && $!+0 == 38 ? 1 : 0)'",
    ),
    ("seccomp.kernel-api", All, "perl -e 'exit(syscall(321, 0, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.kernel-api", All, "perl -e 'exit(syscall(298, 0, 0, -1, -1, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.kernel-api", All, "perl -e 'exit(syscall(323, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.io-uring", All, "perl -e 'exit(syscall(425, 1, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.keyring", All, "perl -e 'exit(syscall(250, 0, 0, 0, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.keyring", All, "perl -e 'exit(syscall(248, 0, 0, 0, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.file-handle", All, "perl -e 'exit(syscall(304, -1, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.administration", All, "perl -e 'exit(syscall(175, 0, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.administration", All, "perl -e 'exit(syscall(170, 0, -1) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.administration", All, "perl -e 'exit(syscall(103, 3, 0, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("seccomp.set-id", All, "echo x > s && chmod 4755 s"),
    (
        "seccomp.set-id",
        All,
        "perl -e '$f = \"made\"; exit(syscall(257, -100, $f, 0x41, 04755) == -1 ? 1 : 0)'",
    ),
    // Capabilities and users.
    (NOTHING_TRIED, All, "grep -q 'CapEff.*[1-9a-f]' /proc/self/status"),
    ("seccomp.privilege", All, "chroot / true"),
    ("seccomp.privilege", Namespaces, ": > f; perl -e 'exit(chown(0, 0, \"f\") ? 0 : 1)'"),
    ("seccomp.privilege", Namespaces, "perl -e '$< = 0; exit($< == 0 ? 0 : 1)'"),
    ("text.become-user", Namespaces, "su -c true root </dev/null || sudo -n true"),
    ("seccomp.privilege", All, "mknod disk b 254 0"),
    (
        "file.write",
        All,
        "[ $(($(cat /proc/self/oom_score_adj))) -lt 800 ] || echo -1000 > /proc/self/oom_score_adj",
    ),
    // Network.
    ("net.loopback|seccomp.socket", All, "exec 3<>/dev/tcp/127.0.0.1/{port}"),
    ("net.loopback|seccomp.socket", All, "exec 3<>/dev/tcp/::1/{port}"),
    ("net.off|seccomp.socket", All, "exec 3<>/dev/tcp/169.254.169.254/80"),
    ("net.loopback|seccomp.socket", All, "getent hosts example.org"),
    (
        "net.local|seccomp.socket",
        All,
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack(\"Sa*\", 1, \"\\0{name}\")) or exit 1'",
    ),
    (
        "net.local|seccomp.socket",
        All,
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un(\"{outside}/socket\")) or exit 1'",
    ),
    ("text.hidden-path", Namespaces, "ls /var/run/docker.sock || ls /run/dbus || ls /run/user"),
    ("seccomp.socket", All, "perl -e 'socket(S, 40, 1, 0) or exit 1'"),
    ("seccomp.socket", All, "perl -e 'socket(S, 17, 3, 0) or exit 1'"),
    ("seccomp.socket", All, "perl -e 'socket(S, 38, 5, 0) or exit 1'"),
    // Of netlink: the audit log, the firewall, kernel modules' own protocols, what devices come and go.
    ("seccomp.socket", All, "perl -e 'socket(S, 16, 3, 9) or exit 1'"),
    ("seccomp.socket", All, "perl -e 'socket(S, 16, 3, 12) or exit 1'"),
    ("seccomp.socket", All, "perl -e 'socket(S, 16, 2, 16) or exit 1'"),
    ("seccomp.socket", All, "perl -e 'socket(S, 16, 2, 15) or exit 1'"),
    ("seccomp.privilege", All, "perl -e 'socket(S, 2, 3, 1) or exit 1'"),
    // Bombs' fuses, and what stays.
    ("rlimit.core", All, "ulimit -c unlimited"),
    ("rlimit.file-size", All, "truncate -s 9G big"),
    ("seccomp.terminal", All, "perl -e 'exit(syscall(16, 0, 0x5412, 0) == -1 && $!+0 == 1 ? 1 : 0)'"),
    ("text.hidden-path", Namespaces, "[ -e /dev/shm/{name} ] || [ -e /tmp/{name} ]"),
];

#[derive(Default)]
struct Heard(Mutex<Vec<&'static str>>);

impl OutputSink for Heard {
    fn output(&self, _: Stream, _: &str) {}

    fn denied(&self, denied: &Denied) {
        self.0.lock().unwrap().push(denied.rule);
    }
}

/// Tries all that make sense in this tier; returns how many.
async fn attempt_all(home: &Path, tier: Tier) -> usize {
    let outside = tempfile::tempdir().unwrap();
    std::fs::set_permissions(outside.path(), PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.to_owned(), None).unwrap();
    let user = UserId::from("u");
    let other = provider.acquire(&ThreadId::from("other"), &user).await.unwrap();
    other.write(&path("private"), b"secret", WriteMode::Overwrite).await.unwrap();
    let sandbox: Arc<dyn Sandbox> = provider.acquire(&ThreadId::from("mine"), &user).await.unwrap();
    assert_eq!(sandbox.capabilities().tier, tier, "{}", provider.tier());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("hart-escape-{}", std::process::id());
    let _socket = std::os::unix::net::UnixListener::bind(outside.path().join("socket")).unwrap();
    let abstract_name =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name)
            .unwrap();
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&abstract_name).unwrap();
    let shared = [Path::new("/dev/shm").join(&name), Path::new("/tmp").join(&name)];
    shared.iter().for_each(|file| std::fs::write(file, "").unwrap());
    let workspace = provider.host_path(&ThreadId::from("other"), &UserId::from("u"), &path("x")).unwrap();
    let fill = [
        ("{outside}", outside.path().display().to_string()),
        ("{home}", home.display().to_string()),
        ("{other}", workspace.as_path().parent().unwrap().display().to_string()),
        ("{port}", listener.local_addr().unwrap().port().to_string()),
        ("{pid}", std::process::id().to_string()),
        ("{name}", name),
    ];
    let mut failures = Vec::new();
    let mut tried = 0;
    for (rule, place, attempt) in TABLE {
        if *place == Namespaces && tier != Tier::Isolated {
            continue;
        }
        tried += 1;
        let command =
            fill.iter().fold((*attempt).to_owned(), |text, (name, value)| text.replace(name, value));
        let heard = Heard::default();
        let exec = Exec::new(format!("({command}) 2>&1")).timeout(PATIENCE);
        let output = sandbox.exec(exec, Some(&heard), &CancellationToken::new()).await.unwrap();
        let heard = heard.0.into_inner().unwrap();
        if output.exit.success() {
            failures.push(format!("ESCAPED {rule}: {attempt}\n  {output:?}"));
        }
        let logged = *rule == NOTHING_TRIED || rule.split('|').any(|rule| heard.contains(&rule));
        if !logged {
            failures.push(format!("NOT LOGGED {rule}: {attempt}\n  heard {heard:?}, {output:?}"));
        }
    }
    shared.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    assert!(failures.is_empty(), "{} of {tried}:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    tried
}

fn supported() -> bool {
    let here = cfg!(target_arch = "x86_64") && Path::new("/usr/bin/perl").exists();
    if !here {
        crate::support::skipped("the table needs x86_64 and perl");
    }
    here
}

#[tokio::test]
async fn no_way_out_of_namespaces() {
    let home = tempfile::tempdir().unwrap();
    if !supported() {
        return;
    }
    let report = hart_sandbox::probe();
    if report.tier != Tier::Isolated {
        return crate::support::skipped(report);
    }
    let tried = attempt_all(home.path(), Tier::Isolated).await;
    assert!(tried >= 60, "{tried}");
}

#[tokio::test]
async fn no_way_out_of_landlock() {
    let Some(home) = in_a_closed_kernel("escapes::no_way_out_of_landlock", true).await else { return };
    if supported() {
        let tried = attempt_all(&home, Tier::Landlock).await;
        assert!(tried >= 60, "{tried}");
    }
}

const AS_USER: &str = "HART_SANDBOX_TEST_AS_USER";

/// What matters once more, without root: the same binary as another user.
#[test]
fn the_same_holds_for_an_ordinary_user() {
    if std::env::var_os(AS_USER).is_some() || !rustix::process::geteuid().is_root() {
        return;
    }
    if !Path::new("/usr/bin/setpriv").exists() {
        crate::support::skipped("needs /usr/bin/setpriv");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let binary = place.path().join("tests");
    // By another process: while this one had it open for writing, a test that forks would keep it from being run.
    let copied = Command::new("/bin/cp").arg(std::env::current_exe().unwrap()).arg(&binary).status().unwrap();
    assert!(copied.success());
    let output = Command::new("/usr/bin/setpriv")
        .args(["--reuid", "61234", "--regid", "61234", "--clear-groups"])
        .arg(&binary)
        .args(["escapes::", "conformance::", "confinement::", "identity::", "egress::", "bombs::a_"])
        .env(AS_USER, "1")
        .current_dir("/tmp")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("test result: ok"),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_guide_lists_every_rule_and_every_attempt_without_one() {
    let guide = include_str!("../../../docs/guide/sandbox.md");
    let (prefix, nothing) =
        (|rule: &str| format!("`{rule}`"), |row: &&(&str, In, &str)| row.0 == NOTHING_TRIED);
    for rule in TABLE.iter().flat_map(|(rules, ..)| rules.split('|')).filter(|rule| !rule.is_empty()) {
        assert!(guide.contains(&prefix(rule)), "{rule} is not in the guide");
    }
    let unlogged: Vec<&str> = TABLE.iter().filter(nothing).map(|(_, _, attempt)| *attempt).collect();
    assert_eq!(unlogged.len(), 3, "{unlogged:?}");
    for attempt in unlogged {
        assert!(guide.contains(&prefix(attempt)), "{attempt} is not in the guide");
    }
}

#[tokio::test]
async fn ordinary_work_leaves_no_line() {
    let Some(place) = crate::support::Place::isolated().await else { return };
    for work in [
        "mkdir -p /mnt/user-data/workspace/a/b && touch a/b/c && echo x > /tmp/y && cp -r a z && mv z w && rm -rf w",
        "ln -s a/b link && ln -s /usr/bin/env env && ln a/b/c hard && cat link/c; ls -la / /etc /usr /mnt/user-data",
        "cd /tmp && for i in 1 2 3; do echo $i > $i 2>/dev/null; done; cat * | sort > all; sleep 0.01 & kill $!; wait",
        "echo 'see /etc/shadow' > note; printf '%s' /root; sed -n '/x/p' note; awk '/see/ {print $1}' note; ulimit -c 0",
        "[ ! -x /usr/bin/python3 ] || python3 -c 'import json, tempfile, threading; \
         threading.Thread(target=int).start(); open(\"j\", \"w\").write(json.dumps([1])); tempfile.mkdtemp()'",
        // Interfaces are listed through netlink.
        "[ ! -x /usr/bin/perl ] || perl -e 'socket(S, 16, 3, 0) or exit 1'",
        "[ ! -x /usr/bin/git ] || (git init -q g && cd g && echo x > f && git add f && git -c user.name=a -c user.email=b \
         commit -qm x && git clone -q . ../h)",
    ] {
        let heard = Heard::default();
        let exec = Exec::new(work).timeout(PATIENCE);
        let output = place.sandbox.exec(exec, Some(&heard), &CancellationToken::new()).await.unwrap();
        assert!(output.exit.success(), "{work}: {output:?}");
        assert_eq!(heard.0.into_inner().unwrap(), [] as [&str; 0], "{work}: {output:?}");
    }
}
