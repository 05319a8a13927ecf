//! The seccomp filter: kernel features no ordinary command needs and many escapes began with.
//!
//! Invariant: it only takes away; what it does not know stays as the namespaces left it.

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD,
    BPF_RET, BPF_W, EAFNOSUPPORT, ENOSYS, EPERM, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_USER_NOTIF, c_long, sock_filter,
};

pub(super) type Filter = Vec<sock_filter>;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// On x86_64, calls by another numbering that would slip past the comparison by number.
const X32_BIT: u32 = 0x4000_0000;

const DENIED: [c_long; 38] = [
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
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_open_by_handle_at,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];
const NEW_NAMESPACE: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Offsets in the kernel's `struct seccomp_data`; the low half of an argument comes first on both architectures.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARG0: u32 = 16;
const ARG1: u32 = 24;
const ARG2: u32 = 32;
const ARG3: u32 = 40;

/// What differs between the places a filter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// Refused calls are reported to hart, which answers them.
    pub(super) report: bool,
    /// Without namespaces: no local sockets either (those of the host are within reach), no looking into processes.
    pub(super) bare: bool,
    /// Whether sockets of the internet families may be made. In a network namespace of one's own they are harmless.
    pub(super) internet: bool,
}

/// Refused only where there are no namespaces.
const DENIED_BARE: [c_long; 6] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
];

/// Set-user-id and set-group-id.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

/// Empty where the architecture is not known.
pub(super) fn build(options: Options) -> Filter {
    let Some(architecture) = ARCHITECTURE else { return Vec::new() };
    let deny = |errno: i32| if options.report { answer(SECCOMP_RET_USER_NOTIF) } else { refuse(errno) };
    let mut filter = vec![
        load(ARCH),
        jump(BPF_JEQ, architecture, 1, 0),
        answer(SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(BPF_JGE, X32_BIT, 0, 1),
        refuse(EPERM),
    ];
    let bare: &[c_long] = if options.bare { &DENIED_BARE } else { &[] };
    for number in DENIED.iter().chain(bare) {
        filter.extend([jump(BPF_JEQ, *number as u32, 0, 1), deny(EPERM)]);
    }
    // Their flags are behind a pointer, where a filter cannot look; without them programs fall back to `clone`, `open`.
    for number in [libc::SYS_clone3, libc::SYS_openat2] {
        filter.extend([jump(BPF_JEQ, number as u32, 0, 1), refuse(ENOSYS)]);
    }
    let clone = [load(ARG0), jump(BPF_JSET, NEW_NAMESPACE as u32, 0, 1), deny(EPERM)];
    filter.extend(for_call(libc::SYS_clone, &clone));
    // Typing into a terminal that someone else reads.
    let ioctl = [load(ARG1), jump(BPF_JEQ, libc::TIOCSTI as u32, 0, 1), deny(EPERM)];
    filter.extend(for_call(libc::SYS_ioctl, &ioctl));
    set_id_files(&mut filter, deny(EPERM));
    // A network namespace does not cover every family: vsock, for one, reaches the host of a virtual machine.
    let mut families: Vec<i32> = Vec::new();
    if !options.bare {
        families.push(AF_UNIX);
    }
    if options.internet {
        families.extend([AF_INET, AF_INET6, AF_NETLINK]);
    }
    let mut socket = vec![load(ARG0)];
    for (left, family) in (1..=families.len()).rev().zip(&families) {
        // Over the comparisons that follow and the refusal.
        socket.push(jump(BPF_JEQ, *family as u32, u8::try_from(left).unwrap_or_default(), 0));
    }
    socket.push(deny(EAFNOSUPPORT));
    filter.extend(for_call(libc::SYS_socket, &socket));
    filter.push(answer(SECCOMP_RET_ALLOW));
    filter
}

/// A file that a command makes belongs to hart's user on the host: set-id, it would lend that user to everyone.
fn set_id_files(filter: &mut Filter, deny: sock_filter) {
    let mode_at = |argument| [load(argument), jump(BPF_JSET, SET_ID, 0, 1), deny];
    let mut modes = vec![
        (libc::SYS_fchmod, ARG1),
        (libc::SYS_fchmodat, ARG2),
        (SYS_FCHMODAT2, ARG2),
        (libc::SYS_mknodat, ARG2),
    ];
    #[cfg(target_arch = "x86_64")]
    modes.extend([(libc::SYS_chmod, ARG1), (libc::SYS_creat, ARG1), (libc::SYS_mknod, ARG1)]);
    for (number, argument) in modes {
        filter.extend(for_call(number, &mode_at(argument)));
    }
    // The mode of an open means something only if the call may create; else it may be anything.
    let may_create = |flags, mode| {
        let [load_mode, test, deny] = mode_at(mode);
        let create = (libc::O_CREAT | libc::O_TMPFILE) as u32 & !(libc::O_DIRECTORY as u32);
        [load(flags), jump(BPF_JSET, create, 0, 3), load_mode, test, deny]
    };
    filter.extend(for_call(libc::SYS_openat, &may_create(ARG2, ARG3)));
    #[cfg(target_arch = "x86_64")]
    filter.extend(for_call(libc::SYS_open, &may_create(ARG1, ARG2)));
}

/// What a reported call is refused by, and with.
pub(super) fn rule_of(number: c_long) -> (&'static str, i32) {
    let known = RULES.iter().find(|(numbers, _)| numbers.contains(&number)).map(|(_, rule)| *rule);
    match known {
        Some("seccomp.socket") => ("seccomp.socket", EAFNOSUPPORT),
        Some(rule) => (rule, EPERM),
        None => ("seccomp.other", EPERM),
    }
}

const RULES: [(&[c_long], &str); 11] = [
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
    (&[libc::SYS_unshare, libc::SYS_setns, libc::SYS_clone], "seccomp.namespace"),
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
];

const SYS_FCHMODAT2: c_long = 452;
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

/// Runs `body` for one call only, then allows it; for others the number stays loaded.
fn for_call(number: c_long, body: &[sock_filter]) -> Vec<sock_filter> {
    let skip = u8::try_from(body.len() + 1).unwrap_or(u8::MAX);
    let mut block = vec![jump(BPF_JEQ, number as u32, 0, skip)];
    block.extend_from_slice(body);
    block.push(answer(SECCOMP_RET_ALLOW));
    block
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

fn jump(comparison: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | comparison | BPF_K) as u16, jt: if_true, jf: if_false, k: value }
}

fn answer(verdict: u32) -> sock_filter {
    sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k: verdict }
}

fn refuse(errno: i32) -> sock_filter {
    answer(SECCOMP_RET_ERRNO | errno as u32)
}
