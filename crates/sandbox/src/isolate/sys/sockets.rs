//! Calls on sockets: the loopback device, the proxy's ear, descriptors handed out.
//!
//! Invariant: see the module above: system calls only, on what is given.

use std::os::fd::RawFd;

use libc::{c_int, c_long};

use super::{Errno, check};

/// A new network namespace has `lo`, but down: servers a command starts for itself would not be reachable.
pub(in crate::isolate) fn bring_up_loopback() -> Result<(), Errno> {
    #[repr(C)]
    struct InterfaceRequest {
        name: [u8; libc::IFNAMSIZ],
        flags: i16,
        padding: [u8; 22],
    }
    let mut name = [0; libc::IFNAMSIZ];
    for (slot, letter) in name.iter_mut().zip(*b"lo") {
        *slot = letter;
    }
    let request = InterfaceRequest { name, flags: libc::IFF_UP as i16, padding: [0; 22] };
    // SAFETY: takes no pointer.
    #[expect(unsafe_code, reason = "system call")]
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(socket.into())?;
    // SAFETY: `request` has the layout and size of `struct ifreq`, of which this call reads name and flags.
    #[expect(unsafe_code, reason = "system call")]
    let result = check(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) }.into());
    // SAFETY: the socket was opened above and nobody else knows it.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        libc::close(socket);
    }
    result
}

/// A socket that listens on the loopback device of the network namespace the caller is in.
pub(in crate::isolate) fn listen_on_loopback(port: u16) -> Result<RawFd, Errno> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no pointer.
    #[expect(unsafe_code, reason = "system call")]
    let socket = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    check(socket.into())?;
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: `address` is a live `struct sockaddr_in` and `size` its length.
    #[expect(unsafe_code, reason = "system call")]
    unsafe {
        check(libc::bind(socket, (&raw const address).cast(), size).into())?;
        check(libc::listen(socket, 64).into())?;
    }
    Ok(socket)
}

/// Hands a descriptor to the other end of a socket pair, with one byte that says what it is.
pub(in crate::isolate) fn send_descriptor(socket: RawFd, what: u8, fd: RawFd) -> Result<(), Errno> {
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        fd: c_int,
        padding: c_int,
    }
    let mut byte = [what];
    let mut data = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: both structures are plain integers and pointers, for which all zeroes is valid.
    #[expect(unsafe_code, reason = "the C structures have private padding on some systems")]
    let (mut control, mut message) =
        unsafe { (std::mem::zeroed::<Control>(), std::mem::zeroed::<libc::msghdr>()) };
    let length = size_of::<libc::cmsghdr>() + size_of::<c_int>();
    control.header.cmsg_len = length as _;
    control.header.cmsg_level = libc::SOL_SOCKET;
    control.header.cmsg_type = libc::SCM_RIGHTS;
    control.fd = fd;
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the message points to one live byte and one live control message of the stated lengths.
    #[expect(unsafe_code, reason = "system call")]
    check(unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) } as c_long)
}
