//! Which rule a refused system call falls under.
//!
//! Invariant: what no rule knows is still refused, under `seccomp.other`.

use libc::{EAFNOSUPPORT, EFBIG, ENOSYS, EPERM, c_long};

use super::SYS_FCHMODAT2;

/// What a reported call is refused by, and with.
pub(in crate::isolate) fn rule_of(number: c_long) -> (&'static str, i32) {
    let known = RULES.iter().find(|(numbers, _)| numbers.contains(&number)).map(|(_, rule)| *rule);
    match known {
        Some("seccomp.socket") => ("seccomp.socket", EAFNOSUPPORT),
        Some("rlimit.file-size") => ("rlimit.file-size", EFBIG),
        Some(rule) if number == libc::SYS_clone3 => (rule, ENOSYS),
        Some(rule) => (rule, EPERM),
        None => ("seccomp.other", EPERM),
    }
}

const RULES: [(&[c_long], &str); 13] = [
    (
        &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_move_mount,
            libc::SYS_open_tree,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_mount_setattr,
        ],
        "seccomp.mount",
    ),
    (&[libc::SYS_unshare, libc::SYS_setns, libc::SYS_clone, libc::SYS_clone3], "seccomp.namespace"),
    (&[libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd], "seccomp.kernel-api"),
    (&[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register], "seccomp.io-uring"),
    (&[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key], "seccomp.keyring"),
    (
        &[
            libc::SYS_kexec_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_reboot,
            libc::SYS_swapon,
            libc::SYS_swapoff,
            libc::SYS_acct,
            libc::SYS_quotactl,
            libc::SYS_syslog,
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_adjtimex,
            libc::SYS_clock_adjtime,
            libc::SYS_sethostname,
            libc::SYS_setdomainname,
        ],
        "seccomp.administration",
    ),
    (&[libc::SYS_open_by_handle_at], "seccomp.file-handle"),
    (&[libc::SYS_socket], "seccomp.socket"),
    (&[libc::SYS_ioctl], "seccomp.terminal"),
    (
        &[
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_kcmp,
            libc::SYS_process_madvise,
        ],
        "seccomp.process",
    ),
    (SET_ID_CALLS, "seccomp.set-id"),
    (PRIVILEGED_CALLS, "seccomp.privilege"),
    (&[libc::SYS_ftruncate, libc::SYS_fallocate], "rlimit.file-size"),
];

#[cfg(target_arch = "x86_64")]
const SET_ID_CALLS: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_mknodat,
    libc::SYS_openat,
    libc::SYS_chmod,
    libc::SYS_creat,
    libc::SYS_mknod,
    libc::SYS_open,
];
#[cfg(not(target_arch = "x86_64"))]
const SET_ID_CALLS: &[c_long] =
    &[libc::SYS_fchmod, libc::SYS_fchmodat, SYS_FCHMODAT2, libc::SYS_mknodat, libc::SYS_openat];

/// Taking a place or a user that a command does not have. Some are refused for some arguments only.
#[cfg(target_arch = "x86_64")]
const PRIVILEGED_CALLS: &[c_long] = &[
    libc::SYS_chroot,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_chown,
    libc::SYS_lchown,
];
#[cfg(not(target_arch = "x86_64"))]
const PRIVILEGED_CALLS: &[c_long] = &[
    libc::SYS_chroot,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_fchown,
    libc::SYS_fchownat,
];

#[cfg(test)]
mod tests {
    use super::super::{DENIED, DENIED_BARE};
    use super::*;

    #[test]
    fn every_refused_call_has_a_rule_and_every_rule_is_in_the_guide() {
        for number in DENIED.iter().chain(&DENIED_BARE).chain(SET_ID_CALLS).chain(PRIVILEGED_CALLS) {
            assert_ne!(rule_of(*number).0, "seccomp.other", "call {number}");
        }
        let guide = include_str!("../../../../../docs/guide/sandbox.md");
        for rule in RULES.map(|(_, rule)| rule).into_iter().chain(["seccomp.other"]) {
            assert!(guide.contains(&format!("`{rule}`")), "{rule}");
        }
    }
}
