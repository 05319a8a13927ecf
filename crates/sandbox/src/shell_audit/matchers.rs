//! What each rule looks for in a simple command.
//!
//! Invariant: a matcher looks at words and redirections as the shell would see them, never at raw text.

use super::parse::parse;
use super::simple::{SHELLS, Simple, base_name};

/// One simple command where it stands.
pub(super) struct Seen<'a> {
    pub(super) pipeline: &'a [Simple],
    pub(super) at: usize,
    pub(super) functions: &'a [String],
}

impl Seen<'_> {
    fn simple(&self) -> Option<&Simple> {
        self.pipeline.get(self.at)
    }

    fn program(&self) -> (&str, &[String]) {
        self.simple().and_then(Simple::program).unwrap_or(("", &[]))
    }

    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.program().0)
    }

    fn args(&self) -> impl Iterator<Item = &str> {
        self.program().1.iter().map(String::as_str)
    }

    /// A short flag such as `r` in `-rf`, or its long form.
    fn has_flag(&self, short: char, long: &str) -> bool {
        self.args().any(|arg| {
            arg == long
                || (arg.starts_with('-') && !arg.starts_with("--") && arg.chars().skip(1).any(|c| c == short))
        })
    }

    fn targets(&self) -> impl Iterator<Item = &str> {
        self.args().filter(|arg| !arg.starts_with('-'))
    }

    fn writes_to(&self, is: impl Fn(&str) -> bool) -> bool {
        let redirected = |simple: &Simple| {
            simple.redirects.iter().any(|redirect| redirect.writes() && is(&redirect.target))
        };
        self.simple().is_some_and(redirected)
            || (self.is(&["tee", "truncate", "install", "cp", "mv", "ln"])
                && self.targets().last().is_some_and(&is))
            || (self.is(&["tee"]) && self.targets().any(&is))
            || (self.is(&["sed"]) && self.has_flag('i', "--in-place") && self.targets().any(&is))
    }

    /// Words and the files it reads from.
    fn mentions(&self, is: impl Fn(&str) -> bool) -> bool {
        self.simple().is_some_and(|simple| {
            simple.words.iter().any(|word| is(word)) || simple.redirects.iter().any(|r| is(&r.target))
        })
    }

    /// What feeds it. Nobody means a pipeline of hundreds; looking at all of one would cost the square of its length.
    fn before(&self) -> &[Simple] {
        const LOOKED_AT: usize = 16;
        self.pipeline.get(self.at.saturating_sub(LOOKED_AT)..self.at).unwrap_or_default()
    }

    /// Whether it is a shell or interpreter that runs what it is fed.
    fn runs_its_input(&self) -> bool {
        const INTERPRETERS: [&str; 6] = ["python", "python3", "perl", "ruby", "node", "php"];
        let (name, args) = self.program();
        let plain = args.iter().all(|arg| arg.starts_with('-') || arg == "/dev/stdin");
        (SHELLS.contains(&name) || INTERPRETERS.contains(&name))
            && plain
            && !args.iter().any(|arg| arg == "-c" || arg == "-e")
    }

    /// Whether its text comes from a substitution: `sh -c "$(…)"`, `eval "$(…)"`, `bash <(…)`, `source <(…)`.
    fn runs_substitution(&self, of: fn(&str) -> bool) -> bool {
        let (name, args) = self.program();
        let runs = SHELLS.contains(&name) || ["eval", "source", "."].contains(&name);
        let direct = |word: &String| word.starts_with("$(");
        let starts = self.simple().is_some_and(|simple| simple.words.first().is_some_and(direct));
        (runs && args.iter().any(direct) || starts)
            && self.simple().is_some_and(|simple| simple.substitutions.iter().any(|text| of(text)))
    }
}

fn program_of(simple: &Simple) -> &str {
    simple.program().map_or("", |(name, _)| name)
}

const SYSTEM: [&str; 14] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin",
    "/usr", "/var",
];

/// The root, a directory of the system, the home, or all of the user's data.
fn is_system_dir(path: &str) -> bool {
    let path = path.trim_end_matches('*');
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    SYSTEM.contains(&path)
        || ["~", "$HOME", "${HOME}", "/mnt", "/mnt/user-data", "/sys", "/.", "/..", "//"].contains(&path)
}

pub(super) fn rm_root(seen: &Seen<'_>) -> bool {
    seen.is(&["rm"])
        && (seen.has_flag('r', "--recursive") || seen.has_flag('R', "--recursive"))
        && (seen.targets().any(is_system_dir) || seen.args().any(|arg| arg == "--no-preserve-root"))
}

pub(super) fn rm_here(seen: &Seen<'_>) -> bool {
    let all = [
        "*",
        ".",
        "./*",
        "./",
        ".*",
        "/mnt/user-data/workspace",
        "/mnt/user-data/outputs",
        "/mnt/user-data/uploads",
        "/mnt/user-data/workspace/*",
        "/mnt/user-data/outputs/*",
        "/mnt/user-data/uploads/*",
    ];
    seen.is(&["rm"])
        && (seen.has_flag('r', "--recursive") || seen.has_flag('R', "--recursive"))
        && seen.targets().any(|target| all.contains(&target.trim_end_matches('/')) || target == "./")
}

pub(super) fn find_delete_root(seen: &Seen<'_>) -> bool {
    let deletes = seen.args().any(|arg| arg == "-delete")
        || (seen.args().any(|arg| matches!(arg, "-exec" | "-execdir" | "-ok"))
            && seen.args().any(|arg| matches!(base_name(arg), "rm" | "shred" | "unlink")));
    let starts: Vec<&str> = seen.args().take_while(|arg| !arg.starts_with('-')).collect();
    seen.is(&["find"]) && deletes && starts.into_iter().any(is_system_dir)
}

const DOWNLOADERS: [&str; 6] = ["curl", "wget", "fetch", "aria2c", "http", "lwp-download"];

fn downloads(text: &str) -> bool {
    parse(text).pipelines.iter().flatten().any(|simple| DOWNLOADERS.contains(&program_of(simple)))
}

fn decodes_text(text: &str) -> bool {
    parse(text).pipelines.iter().flatten().any(decodes)
}

fn decodes(simple: &Simple) -> bool {
    let Some((name, args)) = simple.program() else { return false };
    let has = |wanted: &[&str]| args.iter().any(|arg| wanted.contains(&arg.as_str()));
    match name {
        "base64" | "base32" => has(&["-d", "-D", "--decode", "-di"]),
        "xxd" => args.iter().any(|arg| arg.starts_with('-') && arg.contains('r')),
        "openssl" => has(&["-d"]),
        "rev" | "uudecode" => true,
        _ => false,
    }
}

pub(super) fn download_to_shell(seen: &Seen<'_>) -> bool {
    let fed = || seen.before().iter().any(|simple| DOWNLOADERS.contains(&program_of(simple)));
    (seen.runs_its_input() && fed()) || seen.runs_substitution(downloads)
}

pub(super) fn decoded_to_shell(seen: &Seen<'_>) -> bool {
    (seen.runs_its_input() && seen.before().iter().any(decodes)) || seen.runs_substitution(decodes_text)
}

pub(super) fn fork_bomb(seen: &Seen<'_>) -> bool {
    let name = seen.simple().and_then(|simple| simple.words.iter().find(|word| *word != "{"));
    let again = |name: &String| {
        seen.before().iter().any(|simple| simple.words.iter().find(|word| *word != "{") == Some(name))
    };
    name.is_some_and(|name| seen.functions.contains(name) && again(name))
}

fn is_disk(path: &str) -> bool {
    const DISKS: [&str; 12] =
        ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "loop", "md", "dm-", "mapper/", "ram"];
    path.strip_prefix("/dev/").is_some_and(|name| {
        DISKS.iter().any(|disk| name.starts_with(disk)) || ["mem", "kmem", "port"].contains(&name)
    })
}

pub(super) fn device_write(seen: &Seen<'_>) -> bool {
    let dd = seen.is(&["dd"]) && seen.args().any(|arg| arg.strip_prefix("of=").is_some_and(is_disk));
    let shred = seen.is(&["shred", "badblocks"]) && seen.targets().any(is_disk);
    dd || shred || seen.writes_to(is_disk)
}

pub(super) fn format_disk(seen: &Seen<'_>) -> bool {
    let name = seen.program().0;
    let tool = name.starts_with("mkfs")
        || ["mkswap", "wipefs", "fdisk", "sfdisk", "parted", "mke2fs"].contains(&name);
    tool && seen.targets().any(is_disk)
}

pub(super) fn chmod_root(seen: &Seen<'_>) -> bool {
    seen.is(&["chmod", "chown", "chgrp", "setfacl"]) && seen.targets().skip(1).any(is_system_dir)
}

pub(super) fn chmod_777(seen: &Seen<'_>) -> bool {
    seen.is(&["chmod"])
        && seen.targets().next().is_some_and(|mode| ["777", "0777", "a+rwx", "666"].contains(&mode))
}

pub(super) fn shutdown(seen: &Seen<'_>) -> bool {
    let (name, args) = seen.program();
    let asks = |words: &[&str]| args.iter().any(|arg| words.contains(&arg.as_str()));
    match name {
        "shutdown" | "reboot" | "halt" | "poweroff" => !asks(&["--help", "--version"]),
        "init" | "telinit" => asks(&["0", "6"]),
        "systemctl" => asks(&["poweroff", "reboot", "halt", "kexec", "suspend", "hibernate"]),
        _ => seen.writes_to(|path| path == "/proc/sysrq-trigger"),
    }
}

pub(super) fn kill_all(seen: &Seen<'_>) -> bool {
    let (name, args) = seen.program();
    // `kill -1` alone is a signal; a second word that is -1 is everyone.
    name == "killall5" || (name == "kill" && args.iter().skip(1).any(|arg| arg == "-1"))
}

pub(super) fn crypto_miner(seen: &Seen<'_>) -> bool {
    const MINERS: [&str; 9] = [
        "xmrig",
        "minerd",
        "cpuminer",
        "ethminer",
        "nbminer",
        "cgminer",
        "bfgminer",
        "nanominer",
        "lolminer",
    ];
    let name = seen.program().0.to_ascii_lowercase();
    MINERS.iter().any(|miner| name.starts_with(miner))
        || seen.mentions(|word| word.contains("stratum+tcp://") || word.contains("stratum+ssl://"))
}

fn is_secret_file(path: &str) -> bool {
    const ANYWHERE: [&str; 10] = [
        ".aws/credentials",
        ".ssh/id_",
        ".git-credentials",
        ".netrc",
        ".docker/config.json",
        ".kube/config",
        ".config/gcloud",
        ".azure/accessTokens",
        ".config/gh/hosts",
        ".pgpass",
    ];
    let process = path.strip_prefix("/proc/").and_then(|rest| rest.strip_suffix("/environ"));
    ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/master.passwd"]
        .iter()
        .any(|file| path.starts_with(file))
        || ANYWHERE.iter().any(|part| path.contains(part))
        || process.is_some_and(|process| !["self", "$$", "thread-self"].contains(&process))
}

/// Who only names a file to say something about it does not read it.
fn is_talk(seen: &Seen<'_>) -> bool {
    seen.is(&["echo", "printf", ":", "true", "test", "["])
}

pub(super) fn read_secrets(seen: &Seen<'_>) -> bool {
    !is_talk(seen)
        && seen.mentions(|word| !word.contains("://") && !word.contains("$(") && is_secret_file(word))
}

pub(super) fn secrets_file(seen: &Seen<'_>) -> bool {
    let named = |path: &str| {
        let name = base_name(path);
        let example = [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end));
        (name == ".env" || name.starts_with(".env.")) && !example
            || name.ends_with(".pem")
            || name.ends_with(".p12")
            || name.ends_with(".pfx")
    };
    seen.is(&["cat", "less", "more", "head", "tail", "grep", "strings", "xxd", "base64", "sed", "awk", "cut"])
        && seen.targets().any(named)
}

pub(super) fn metadata_service(seen: &Seen<'_>) -> bool {
    const HOSTS: [&str; 4] =
        ["169.254.169.254", "metadata.google.internal", "100.100.100.200", "169.254.170.2"];
    !is_talk(seen)
        && !seen.is(&["grep", "rg"])
        && seen.mentions(|word| HOSTS.iter().any(|host| word.contains(host)))
}

pub(super) fn reverse_shell(seen: &Seen<'_>) -> bool {
    let netcat = seen.is(&["nc", "ncat", "netcat"])
        && (seen.has_flag('e', "--exec") || seen.has_flag('c', "--sh-exec"));
    let socat = seen.is(&["socat"])
        && seen.args().any(|arg| arg.to_ascii_lowercase().starts_with("exec:") || arg.starts_with("SYSTEM:"));
    let tcp = |simple: &Simple| {
        simple
            .redirects
            .iter()
            .any(|r| r.target.starts_with("/dev/tcp/") || r.target.starts_with("/dev/udp/"))
    };
    netcat || socat || seen.simple().is_some_and(tcp)
}

pub(super) fn plant_key(seen: &Seen<'_>) -> bool {
    seen.writes_to(|path| path.ends_with("authorized_keys"))
}

pub(super) fn system_file(seen: &Seen<'_>) -> bool {
    const TRUSTED: [&str; 9] = [
        "/etc/passwd",
        "/etc/group",
        "/etc/ld.so.preload",
        "/etc/cron",
        "/etc/sudoers",
        "/etc/pam.d",
        "/etc/hosts",
        "/proc/sys/",
        "/sys/",
    ];
    seen.writes_to(|path| TRUSTED.iter().any(|trusted| path.starts_with(trusted)))
        || seen.is(&["visudo", "useradd", "usermod", "passwd", "chpasswd"])
}

pub(super) fn kernel(seen: &Seen<'_>) -> bool {
    let (name, args) = seen.program();
    ["insmod", "rmmod", "modprobe", "kexec"].contains(&name)
        || (name == "sysctl" && args.iter().any(|arg| arg == "-w" || arg.contains('=')))
}

pub(super) fn escape(seen: &Seen<'_>) -> bool {
    seen.is(&["nsenter", "pivot_root", "chroot", "unshare", "mount", "umount"])
        && seen.args().next().is_some()
}

pub(super) fn container_socket(seen: &Seen<'_>) -> bool {
    let engine = seen.is(&["docker", "podman", "nerdctl", "ctr", "crictl"]);
    let mounts_root =
        seen.args().any(|arg| arg == "--privileged" || arg.starts_with("/:") || arg.contains("=/:"));
    (engine && mounts_root) || (!is_talk(seen) && seen.mentions(|word| word.contains("docker.sock")))
}

pub(super) fn sudo(seen: &Seen<'_>) -> bool {
    let first = seen.simple().and_then(|simple| simple.words.first());
    first.is_some_and(|word| matches!(base_name(word), "sudo" | "doas" | "su" | "pkexec"))
}

pub(super) fn git_destructive(seen: &Seen<'_>) -> bool {
    let args: Vec<&str> = seen.args().collect();
    let has = |flags: &[&str]| args.iter().any(|arg| flags.contains(arg));
    seen.is(&["git"])
        && match args.iter().find(|arg| !arg.starts_with('-')) {
            Some(&"push") => has(&["--force", "-f", "--mirror", "--delete"]),
            Some(&"reset") => has(&["--hard"]),
            Some(&"clean") => args.iter().any(|arg| arg.starts_with('-') && arg.contains('f')),
            Some(&"checkout" | &"restore") => has(&["."]),
            Some(&"branch") => has(&["-D"]),
            _ => false,
        }
}

pub(super) fn preload(seen: &Seen<'_>) -> bool {
    let sets = |word: &str| word.starts_with("LD_PRELOAD=") || word.starts_with("LD_AUDIT=");
    seen.simple().is_some_and(|simple| simple.assignments().any(sets))
        || (seen.is(&["export"]) && seen.args().any(sets))
}

pub(super) fn scheduled_job(seen: &Seen<'_>) -> bool {
    let (name, args) = seen.program();
    match name {
        "crontab" => !args.iter().any(|arg| arg == "-l"),
        "at" | "batch" => true,
        "systemctl" => args.iter().any(|arg| arg == "enable"),
        _ => false,
    }
}

pub(super) fn cover_tracks(seen: &Seen<'_>) -> bool {
    let (name, args) = seen.program();
    (name == "history" && args.iter().any(|arg| arg == "-c"))
        || (name == "unset" && args.iter().any(|arg| arg == "HISTFILE"))
        || seen.writes_to(|path| path.ends_with("_history") || path.starts_with("/var/log/"))
}
