//! The instructions a filter is made of.
//!
//! Invariant: a block for one call leaves the number loaded for all others.

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGT, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO, c_long, sock_filter,
};

/// Offset of an argument's low half in the kernel's `struct seccomp_data`; it comes first on both architectures.
pub(super) const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// Runs `body` for one call only, then allows it; for others the number stays loaded.
pub(super) fn for_call(number: c_long, body: &[sock_filter]) -> Vec<sock_filter> {
    let skip = u8::try_from(body.len() + 1).unwrap_or(u8::MAX);
    let mut block = vec![jump(BPF_JEQ, number as u32, 0, skip)];
    block.extend_from_slice(body);
    block.push(answer(SECCOMP_RET_ALLOW));
    block
}

pub(super) fn load(offset: u32) -> sock_filter {
    sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

pub(super) fn jump(comparison: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | comparison | BPF_K) as u16, jt: if_true, jf: if_false, k: value }
}

pub(super) fn answer(verdict: u32) -> sock_filter {
    sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k: verdict }
}

pub(super) fn refuse(errno: i32) -> sock_filter {
    answer(SECCOMP_RET_ERRNO | errno as u32)
}

/// Keeps these bits of what is loaded.
pub(super) fn keep(bits: u32) -> sock_filter {
    sock_filter { code: (BPF_ALU | BPF_AND | BPF_K) as u16, jt: 0, jf: 0, k: bits }
}

/// `verdict` if one of the arguments is `value`.
pub(super) fn any_is(arguments: &[u32], value: u32, verdict: sock_filter) -> Vec<sock_filter> {
    let test = |index: &u32| [load(argument(*index)), jump(BPF_JEQ, value, 0, 1), verdict];
    arguments.iter().flat_map(test).collect()
}

/// `verdict` if an argument of 64 bits is above `limit`.
pub(super) fn above(index: u32, limit: u64, verdict: sock_filter) -> [sock_filter; 6] {
    let (high, low) = ((limit >> 32) as u32, limit as u32);
    [
        load(argument(index) + 4),
        jump(BPF_JGT, high, 3, 0),
        jump(BPF_JEQ, high, 0, 3),
        load(argument(index)),
        jump(BPF_JGT, low, 0, 1),
        verdict,
    ]
}
