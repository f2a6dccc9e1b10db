//! System calls as safe functions. Each takes and returns plain values; descriptors are owned.

use std::ffi::{CStr, CString};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Descriptors that one packet may carry.
const FDS: usize = 8;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn check_long(result: libc::c_long) -> io::Result<RawFd> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(RawFd::try_from(result).unwrap_or(-1))
    }
}

/// A path for the kernel.
pub fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

/// Two connected packet sockets, closed on exec.
pub fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    pair(libc::SOCK_SEQPACKET)
}

/// Two connected stream sockets, closed on exec.
pub fn stream_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    pair(libc::SOCK_STREAM)
}

fn pair(kind: libc::c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the array has room for the two descriptors that the call writes.
    check(unsafe {
        libc::socketpair(
            libc::AF_UNIX,
            kind | libc::SOCK_CLOEXEC,
            0,
            fds.as_mut_ptr(),
        )
    })?;
    // SAFETY: both are new and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// A pipe, closed on exec: its reading and its writing end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the array has room for the two descriptors that the call writes.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both are new and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// A pseudo-terminal: master and slave, closed on exec.
pub fn open_pty(rows: u16, columns: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (mut master, mut slave) = (0, 0);
    // SAFETY: the call writes the two descriptors, and only reads the size; the name and the settings are left out.
    check(unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        )
    })?;
    // SAFETY: both are new and belong to nobody else.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    for fd in [&master, &slave] {
        // SAFETY: sets a flag of a descriptor that we own.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) })?;
    }
    Ok((master, slave))
}

/// Sets a terminal's size.
pub fn set_size(terminal: BorrowedFd<'_>, rows: u16, columns: u16) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the request reads one winsize.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }).map(drop)
}

/// Reads or writes at once or not at all from now on.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: reads the flags of a descriptor that the caller holds.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: sets them, with one more.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// A file in memory with this content, read from its beginning.
pub fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    use std::io::{Seek, Write};
    // SAFETY: the name is a C string; the result is a new descriptor.
    let fd = check(unsafe { libc::memfd_create(c"interpreter".as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: it is new and belongs to nobody else.
    let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

/// Sends a packet with descriptors.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[RawFd]) -> io::Result<()> {
    debug_assert!(
        fds.len() <= FDS,
        "a packet carries at most {FDS} descriptors"
    );
    let slice = [IoSlice::new(bytes)];
    let mut control = [0_u64; 16];
    // SAFETY: a zeroed header is a valid empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = slice.as_ptr().cast_mut().cast();
    message.msg_iovlen = 1;
    if !fds.is_empty() {
        let length = u32::try_from(std::mem::size_of_val(fds)).unwrap_or(0);
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE only computes; the buffer (128 bytes, aligned) holds a header and 8 descriptors.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(length) } as usize;
        // SAFETY: the control buffer is set above and large enough for one header with `fds`.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(length) as usize;
            std::ptr::copy_nonoverlapping(fds.as_ptr(), libc::CMSG_DATA(header).cast(), fds.len());
        }
    }
    loop {
        // SAFETY: the header and everything it points to live until the call returns.
        let sent =
            unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Receives a packet with its descriptors; an empty packet means that the other side is gone.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut buffer = vec![0; 4096];
    let mut slice = [IoSliceMut::new(&mut buffer)];
    let mut control = [0_u64; 16];
    // SAFETY: a zeroed header is a valid empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = slice.as_mut_ptr().cast();
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = std::mem::size_of_val(&control);
    let received = loop {
        // SAFETY: the header and the buffers it points to live until the call returns.
        let received =
            unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        if received >= 0 {
            break usize::try_from(received).unwrap_or(0);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    let mut fds = Vec::new();
    // SAFETY: the kernel filled the control buffer and set its length; headers are walked with the macros made for it,
    // and each descriptor in an SCM_RIGHTS header is new and ours.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                for at in 0..bytes / size_of::<RawFd>() {
                    let fd = libc::CMSG_DATA(header)
                        .cast::<RawFd>()
                        .add(at)
                        .read_unaligned();
                    fds.push(OwnedFd::from_raw_fd(fd));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    buffer.truncate(received);
    Ok((buffer, fds))
}

/// Closes a connection for both sides, whoever else holds the socket.
pub fn shut_down(socket: BorrowedFd<'_>) {
    // SAFETY: takes a descriptor and a number. A socket that is closed already needs no more.
    let _ = unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Leaves namespaces of the caller for new ones.
pub fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: changes only the caller's namespaces; the process has one thread.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Forks; `None` in the child.
pub fn fork() -> io::Result<Option<libc::pid_t>> {
    // SAFETY: the process has one thread, so the child may do anything.
    match check(unsafe { libc::fork() })? {
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Forks into new namespaces (`CLONE_NEW*`); `None` in the child.
pub fn clone_into(flags: libc::c_int) -> io::Result<Option<libc::pid_t>> {
    // SAFETY: without CLONE_VM this is a fork: no stack is given, the child runs on its copy of ours; one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
    match check_long(pid)? {
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Waits for any child; the pid and the raw status.
pub fn wait_any() -> io::Result<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    loop {
        // SAFETY: the call writes one status.
        match check(unsafe { libc::waitpid(-1, &raw mut status, 0) }) {
            Ok(pid) => return Ok((pid, status)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Ends the process at once, without clean-up of the parent's copies.
pub fn exit(code: i32) -> ! {
    // SAFETY: never returns and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Sends a signal; a process that is gone is no error.
pub fn kill(pid: libc::pid_t, signal: i32) {
    // SAFETY: sends a signal only. The result says whether somebody was there, which does not matter.
    let _ = unsafe { libc::kill(pid, signal) };
}

/// `prctl` with numbers only.
pub fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the options used in this crate take a number and touch no memory.
    check(unsafe { libc::prctl(option, value, 0, 0, 0) }).map(drop)
}

/// `mount(2)`.
pub fn mount(
    source: &CStr,
    target: &Path,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    data: Option<&CStr>,
) -> io::Result<()> {
    let target = c_path(target)?;
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all texts are C strings that live until the call returns.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            pointer(kind),
            flags,
            pointer(data).cast(),
        )
    })
    .map(drop)
}

/// A detached copy of the mounts below a path.
pub fn clone_tree(path: &Path, recursive: bool) -> io::Result<OwnedFd> {
    const OPEN_TREE_CLONE: libc::c_uint = 1;
    const AT_RECURSIVE: libc::c_uint = 0x8000;
    let path = c_path(path)?;
    let flags = OPEN_TREE_CLONE
        | libc::O_CLOEXEC as libc::c_uint
        | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a C string; the result is a new descriptor.
    let fd = check_long(unsafe {
        libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags)
    })?;
    // SAFETY: it is new and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Puts a detached tree at a path.
pub fn attach_tree(tree: &OwnedFd, target: &Path) -> io::Result<()> {
    const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
    let target = c_path(target)?;
    // SAFETY: both texts are C strings that live until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    check_long(result).map(drop)
}

/// Makes a detached tree, or everything below a path, read-only and without setuid programs.
pub fn make_read_only(tree: Option<&OwnedFd>, path: &Path, recursive: bool) -> io::Result<()> {
    set_attributes(
        tree,
        path,
        recursive,
        libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID,
    )
}

/// Takes setuid programs and devices away from a detached tree that stays writable.
pub fn make_harmless(tree: &OwnedFd) -> io::Result<()> {
    set_attributes(
        Some(tree),
        Path::new(""),
        true,
        libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
    )
}

fn set_attributes(
    tree: Option<&OwnedFd>,
    path: &Path,
    recursive: bool,
    set: u64,
) -> io::Result<()> {
    const AT_RECURSIVE: libc::c_int = 0x8000;
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let path = c_path(path)?;
    let flags = if recursive { AT_RECURSIVE } else { 0 }
        | if tree.is_some() {
            libc::AT_EMPTY_PATH
        } else {
            0
        };
    let at = tree.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
    // SAFETY: the path is a C string, and the call reads one mount_attr of the size given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    check_long(result).map(drop)
}

/// Closes every descriptor from `first` on.
pub fn close_from(first: RawFd) -> io::Result<()> {
    let first = libc::c_uint::try_from(first).unwrap_or(0);
    // SAFETY: the caller owns nothing at or above `first` that it will use again.
    check_long(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) })
        .map(drop)
}

/// Makes `to` a copy of `from`, kept over an exec.
pub fn duplicate_to(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: replaces a standard descriptor of this process, which nothing else in it owns.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }).map(drop)
}

/// Sets a limit, soft and hard.
pub fn limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: the call reads one rlimit.
    check(unsafe { libc::setrlimit(resource, &raw const limit) }).map(drop)
}

/// Drops every capability for good: the bounding set, those held, and what root would get at an exec.
pub fn drop_capabilities() -> io::Result<()> {
    /// Newer kernels may have more than we know; an unknown number ends the loop.
    const HIGHEST: libc::c_ulong = 63;
    /// NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off, NO_CAP_AMBIENT_RAISE, each locked.
    const SECUREBITS: libc::c_ulong = 0b1110_1111;
    for capability in 0..=HIGHEST {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    prctl(libc::PR_SET_SECUREBITS, SECUREBITS)?;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: libc::c_int,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`: two words of three masks.
    const VERSION: u32 = 0x2008_0522;
    let header = Header {
        version: VERSION,
        pid: 0,
    };
    let none = [0_u32; 6];
    // SAFETY: the call reads a header and, for this version, two times three words.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) })
        .map(drop)
}

/// Brings the loopback interface of the current network namespace up.
pub fn loopback_up() -> io::Result<()> {
    // SAFETY: the result is a new descriptor.
    let fd =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: it is new and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: a zeroed ifreq is valid; the name is set below and ends in a zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::try_from(*from).unwrap_or(0);
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    // SAFETY: the request reads one ifreq.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })
        .map(drop)
}

/// Begins a session; the process must not lead a group.
pub fn new_session() -> io::Result<()> {
    // SAFETY: takes nothing.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Makes stdin the controlling terminal of the session.
pub fn take_terminal() -> io::Result<()> {
    // SAFETY: the request takes a number.
    check(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }).map(drop)
}

/// What a signal does from now on.
pub fn on_signal(signal: i32, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: the handlers of this crate are SIG_IGN, SIG_DFL, or a function that only calls async-signal-safe ones.
    let before = unsafe { libc::signal(signal, handler) };
    if before == libc::SIG_ERR {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Lets every signal through again: a parent may have blocked some.
pub fn unblock_signals() -> io::Result<()> {
    // SAFETY: an empty set is built in place, then read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&raw mut none))?;
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const none,
            std::ptr::null_mut(),
        ))
        .map(drop)
    }
}

/// Becomes another program; returns only the reason why not.
pub fn exec(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts
            .iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both lists end in a null, and all texts live until the call returns, if it does.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Locks a file: shared, or exclusive if nobody else has it.
pub fn lock(fd: BorrowedFd<'_>, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: takes a descriptor and a number.
    check(unsafe { libc::flock(fd.as_raw_fd(), operation) }).map(drop)
}

/// Our user and group.
pub fn ids() -> (u32, u32) {
    // SAFETY: both only return a number.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
