//! The seccomp filter: kernel features no ordinary command needs and many escapes began with.
//!
//! Invariant: it only takes away; what it does not know stays as the namespaces left it.

mod program;
mod rules;

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, BPF_JEQ, BPF_JGE, BPF_JSET, EAFNOSUPPORT, EFBIG, ENOSYS, EPERM,
    SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_USER_NOTIF, c_long, sock_filter,
};
use program::{above, answer, any_is, argument, for_call, jump, keep, load, refuse};
pub(super) use rules::rule_of;

pub(super) type Filter = Vec<sock_filter>;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// On x86_64, calls by another numbering that would slip past the comparison by number.
const X32_BIT: u32 = 0x4000_0000;

const DENIED: [c_long; 39] = [
    libc::SYS_chroot,
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
pub(super) const NEW_NAMESPACE: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Offsets in the kernel's `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

/// What differs between the places a filter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) report: Report,
    /// Without namespaces: no local sockets either (those of the host are within reach), no looking into processes.
    pub(super) bare: bool,
    /// Whether sockets of the internet families may be made. In a network namespace of one's own they are harmless.
    pub(super) internet: bool,
    /// Whether the network is the command's own, so that most of what it connects to is not there.
    pub(super) own_network: bool,
    /// No file grows beyond it, in bytes.
    pub(super) file_limit: u64,
}

/// Which calls the kernel tells hart of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    None,
    /// Those that the filter refuses; hart answers them.
    Refused,
    /// Also those that another layer may refuse; hart takes note and lets the kernel decide.
    Watched,
}

/// The same filter, with fewer and fewer reports: what the kernel does not take, the next one replaces.
#[derive(Debug)]
pub(super) struct Filters {
    pub(super) watching: Filter,
    pub(super) reporting: Filter,
    pub(super) silent: Filter,
}

impl Filters {
    /// Empty where the architecture is not known.
    pub(super) fn new(options: Options) -> Self {
        let with = |report| build(Options { report, ..options });
        Self { watching: with(Report::Watched), reporting: with(Report::Refused), silent: with(Report::None) }
    }
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
pub(super) const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
/// Of an open: its mode means something only if the call may create; else it may be anything.
pub(super) const MAY_CREATE: u32 = (libc::O_CREAT | libc::O_TMPFILE) as u32 & !(libc::O_DIRECTORY as u32);
/// Of an open: it asks for more than reading.
const CHANGES: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u32;
pub(super) const HERE: u32 = libc::AT_FDCWD as u32;

fn build(options: Options) -> Filter {
    let Some(architecture) = ARCHITECTURE else { return Vec::new() };
    let reports = options.report != Report::None;
    let deny = |errno: i32| if reports { answer(SECCOMP_RET_USER_NOTIF) } else { refuse(errno) };
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
    let watched = options.report == Report::Watched;
    let absent = if watched { answer(SECCOMP_RET_USER_NOTIF) } else { refuse(ENOSYS) };
    filter.extend([jump(BPF_JEQ, libc::SYS_clone3 as u32, 0, 1), absent]);
    filter.extend([jump(BPF_JEQ, libc::SYS_openat2 as u32, 0, 1), refuse(ENOSYS)]);
    let clone = [load(argument(0)), jump(BPF_JSET, NEW_NAMESPACE as u32, 0, 1), deny(EPERM)];
    filter.extend(for_call(libc::SYS_clone, &clone));
    // Typing into a terminal that someone else reads.
    filter.extend(for_call(libc::SYS_ioctl, &any_is(&[1], libc::TIOCSTI as u32, deny(EPERM))));
    // Beyond the limit the kernel would also send a signal that ends the program; an error is enough.
    filter.extend(for_call(libc::SYS_ftruncate, &above(1, options.file_limit, deny(EFBIG))));
    filter.extend(for_call(libc::SYS_fallocate, &above(3, options.file_limit, deny(EFBIG))));
    set_id_files(&mut filter, deny(EPERM), watched);
    sockets(&mut filter, options, deny);
    if !options.bare {
        other_users(&mut filter, deny(EPERM));
    }
    if watched {
        watch(&mut filter, options.own_network);
    }
    filter.push(answer(SECCOMP_RET_ALLOW));
    filter
}

/// A file that a command makes belongs to hart's user on the host: set-id, it would lend that user to everyone.
fn set_id_files(filter: &mut Filter, deny: sock_filter, watched: bool) {
    let mode_at = |index| [load(argument(index)), jump(BPF_JSET, SET_ID, 0, 1), deny];
    let mut modes = vec![(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2)];
    let mut nodes = vec![(libc::SYS_mknodat, 2)];
    #[cfg(target_arch = "x86_64")]
    {
        modes.push((libc::SYS_chmod, 1));
        nodes.push((libc::SYS_mknod, 1));
    }
    for (number, index) in modes {
        filter.extend(for_call(number, &mode_at(index)));
    }
    for (number, index) in nodes {
        let mut body = mode_at(index).to_vec();
        for device in [libc::S_IFCHR, libc::S_IFBLK] {
            let kind = [load(argument(index)), keep(libc::S_IFMT), jump(BPF_JEQ, device, 0, 1), deny];
            body.extend(kind);
        }
        filter.extend(for_call(number, &body));
    }
    let open = |flags: u32, mode: u32, watch: &[sock_filter]| {
        let [load_mode, test, deny] = mode_at(mode);
        let mut body = vec![load(argument(flags)), jump(BPF_JSET, MAY_CREATE, 0, 3), load_mode, test, deny];
        if watched {
            let skip = u8::try_from(watch.len()).unwrap_or(u8::MAX);
            body.extend([load(argument(flags)), jump(BPF_JSET, CHANGES, 0, skip)]);
            body.extend_from_slice(watch);
        }
        body
    };
    let note = answer(SECCOMP_RET_USER_NOTIF);
    // Not watched, because programs that unpack and check out do nothing else: what must not exist yet, and what is
    // named relative to an open directory.
    let exclusive = libc::O_EXCL as u32;
    let from_here = [jump(BPF_JSET, exclusive, 3, 0), load(argument(0)), jump(BPF_JEQ, HERE, 0, 1), note];
    filter.extend(for_call(libc::SYS_openat, &open(2, 3, &from_here)));
    #[cfg(target_arch = "x86_64")]
    {
        filter.extend(for_call(libc::SYS_open, &open(1, 2, &[jump(BPF_JSET, exclusive, 1, 0), note])));
        let mut creat = mode_at(1).to_vec();
        creat.extend(watched.then_some(note));
        filter.extend(for_call(libc::SYS_creat, &creat));
    }
}

/// A network namespace does not cover every family: vsock, for one, reaches the host of a virtual machine.
fn sockets(filter: &mut Filter, options: Options, deny: impl Fn(i32) -> sock_filter) {
    let mut families: Vec<i32> = Vec::new();
    if !options.bare {
        families.push(AF_UNIX);
    }
    if options.internet {
        families.extend([AF_NETLINK, AF_INET, AF_INET6]);
    }
    let mut socket = vec![load(argument(0))];
    for (left, family) in (1..=families.len()).rev().zip(&families) {
        // Over the comparisons that follow and the refusal.
        socket.push(jump(BPF_JEQ, *family as u32, u8::try_from(left).unwrap_or_default(), 0));
    }
    socket.push(deny(EAFNOSUPPORT));
    if options.internet {
        // Raw packets need a capability; netlink calls its sockets raw too.
        const KIND: u32 = 0xf;
        // Of netlink only what tells of interfaces and routes; the rest is about firewalls, auditing and devices.
        socket.extend([
            jump(BPF_JEQ, AF_NETLINK as u32, 0, 3),
            load(argument(2)),
            jump(BPF_JEQ, libc::NETLINK_ROUTE as u32, 7, 0),
            deny(EAFNOSUPPORT),
            jump(BPF_JEQ, AF_INET as u32, 1, 0),
            jump(BPF_JEQ, AF_INET6 as u32, 0, 4),
            load(argument(1)),
            keep(KIND),
            jump(BPF_JEQ, libc::SOCK_RAW as u32, 0, 1),
            deny(EPERM),
        ]);
    }
    filter.extend(for_call(libc::SYS_socket, &socket));
}

/// Becoming root, giving files to root, reaching into pid 1: without a capability the kernel refuses it anyway.
fn other_users(filter: &mut Filter, deny: sock_filter) {
    const ROOT: u32 = 0;
    let mut calls: Vec<(c_long, &[u32])> = vec![
        (libc::SYS_setuid, &[0]),
        (libc::SYS_setgid, &[0]),
        (libc::SYS_setreuid, &[0, 1]),
        (libc::SYS_setregid, &[0, 1]),
        (libc::SYS_setresuid, &[0, 1, 2]),
        (libc::SYS_setresgid, &[0, 1, 2]),
        (libc::SYS_fchown, &[1, 2]),
        (libc::SYS_fchownat, &[2, 3]),
    ];
    #[cfg(target_arch = "x86_64")]
    for number in [libc::SYS_chown, libc::SYS_lchown] {
        calls.push((number, &[1, 2]));
    }
    for (number, arguments) in calls {
        filter.extend(for_call(number, &any_is(arguments, ROOT, deny)));
    }
    let first_process = any_is(&[1], 1, deny);
    filter.extend(for_call(libc::SYS_ptrace, &first_process));
}

/// `RLIMIT_CORE`, whose type differs between C libraries.
const CORE: u32 = 4;

/// Calls that are seldom made and often refused elsewhere.
fn watch(filter: &mut Filter, own_network: bool) {
    let note = answer(SECCOMP_RET_USER_NOTIF);
    for (number, directories) in CHANGING {
        // Each must be the working directory; see `set_id_files`.
        let mut body: Vec<sock_filter> = Vec::new();
        for (index, left) in directories.iter().zip((0..directories.len()).rev()) {
            let skip = u8::try_from(2 * left + 1).unwrap_or(u8::MAX);
            body.extend([load(argument(*index)), jump(BPF_JEQ, HERE, 0, skip)]);
        }
        body.push(note);
        filter.extend(for_call(*number, &body));
    }
    let mut calls = vec![libc::SYS_kill];
    if own_network {
        calls.push(libc::SYS_connect);
        // Only with an address.
        let addressed = [load(argument(4)), jump(BPF_JEQ, 0, 1, 0), note];
        filter.extend(for_call(libc::SYS_sendto, &addressed));
    }
    for number in calls {
        filter.extend([jump(BPF_JEQ, number as u32, 0, 1), note]);
    }
    let set = [load(argument(1)), jump(BPF_JEQ, CORE, 0, 3), load(argument(2)), jump(BPF_JEQ, 0, 1, 0), note];
    filter.extend(for_call(libc::SYS_prlimit64, &set));
    filter.extend(for_call(libc::SYS_setrlimit, &any_is(&[0], CORE, note)));
}

/// Calls that change what is at a path, with the arguments that are open directories. The old ones without such an
/// argument (`unlink`, `rename`, `link`) are what programs make by the thousand; the shell's tools use these.
#[cfg(target_arch = "x86_64")]
const CHANGING: &[(c_long, &[u32])] = &[
    (libc::SYS_mkdirat, &[0]),
    (libc::SYS_unlinkat, &[0]),
    (libc::SYS_renameat2, &[0, 2]),
    (libc::SYS_linkat, &[0, 2]),
    (libc::SYS_symlinkat, &[1]),
    (libc::SYS_truncate, &[]),
    (libc::SYS_mkdir, &[]),
    (libc::SYS_symlink, &[]),
];
#[cfg(not(target_arch = "x86_64"))]
const CHANGING: &[(c_long, &[u32])] = &[
    (libc::SYS_mkdirat, &[0]),
    (libc::SYS_unlinkat, &[0]),
    (libc::SYS_renameat2, &[0, 2]),
    (libc::SYS_linkat, &[0, 2]),
    (libc::SYS_symlinkat, &[1]),
    (libc::SYS_truncate, &[]),
];

pub(super) const SYS_FCHMODAT2: c_long = 452;
