//! The seccomp filter: kernel features no ordinary command needs and many escapes began with.
//!
//! Invariant: it only takes away; what it does not know stays as the namespaces left it.

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD,
    BPF_RET, BPF_W, EAFNOSUPPORT, ENOSYS, EPERM, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SECCOMP_RET_KILL_PROCESS, c_long, sock_filter,
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

/// Empty where the architecture is not known.
pub(super) fn build() -> Filter {
    let Some(architecture) = ARCHITECTURE else { return Vec::new() };
    let mut filter = vec![
        load(ARCH),
        jump(BPF_JEQ, architecture, 1, 0),
        answer(SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(BPF_JGE, X32_BIT, 0, 1),
        refuse(EPERM),
    ];
    for number in DENIED {
        filter.extend([jump(BPF_JEQ, number as u32, 0, 1), refuse(EPERM)]);
    }
    // Its flags are behind a pointer, where a filter cannot look; without it programs fall back to `clone`.
    filter.extend([jump(BPF_JEQ, libc::SYS_clone3 as u32, 0, 1), refuse(ENOSYS)]);
    let clone = [load(ARG0), jump(BPF_JSET, NEW_NAMESPACE as u32, 0, 1), refuse(EPERM)];
    filter.extend(for_call(libc::SYS_clone, &clone));
    // Typing into a terminal that someone else reads.
    let ioctl = [load(ARG1), jump(BPF_JEQ, libc::TIOCSTI as u32, 0, 1), refuse(EPERM)];
    filter.extend(for_call(libc::SYS_ioctl, &ioctl));
    // A network namespace does not cover every family: vsock, for one, reaches the host of a virtual machine.
    let socket = [
        load(ARG0),
        jump(BPF_JEQ, AF_UNIX as u32, 4, 0),
        jump(BPF_JEQ, AF_INET as u32, 3, 0),
        jump(BPF_JEQ, AF_INET6 as u32, 2, 0),
        jump(BPF_JEQ, AF_NETLINK as u32, 1, 0),
        refuse(EAFNOSUPPORT),
    ];
    filter.extend(for_call(libc::SYS_socket, &socket));
    filter.push(answer(SECCOMP_RET_ALLOW));
    filter
}

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
