//! Reads the memory of a process that waits for an answer.
//!
//! Invariant: a read that fails is nothing found; nothing is ever written.

/// The size of a path at most, with its closing NUL.
pub(super) const LONGEST: usize = 4096;
const PAGE: u64 = 4096;

/// Bytes from `address` on, as many as are there and fit.
pub(super) fn read(pid: u32, address: u64, into: &mut [u8]) -> usize {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return 0 };
    // A string may end just before a page that is not there: the kernel gives what lies in the parts that are.
    let first = usize::try_from(PAGE - address % PAGE).unwrap_or_default().min(into.len());
    let part = |from: u64, len| libc::iovec {
        iov_base: std::ptr::without_provenance_mut(from as usize),
        iov_len: len,
    };
    let remote = [part(address, first), part(address.wrapping_add(first as u64), into.len() - first)];
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: `local` is one live, writable buffer of the stated length; the remote addresses mean nothing here, and the
    // kernel checks them against the other process.
    #[expect(unsafe_code, reason = "system call")]
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, remote.as_ptr(), 2, 0) };
    usize::try_from(read).unwrap_or_default()
}

/// A NUL-terminated text; `None` if it has no end or is no UTF-8.
pub(super) fn text(pid: u32, address: u64) -> Option<String> {
    // Most are short, and the buffer is on the stack either way.
    let mut buffer = [0; LONGEST];
    let read = read(pid, address, &mut buffer);
    let bytes = buffer.get(..read)?;
    let end = memchr::memchr(0, bytes)?;
    std::str::from_utf8(bytes.get(..end)?).ok().map(str::to_owned)
}

pub(super) fn word(pid: u32, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (read(pid, address, &mut bytes) == 8).then(|| u64::from_ne_bytes(bytes))
}
