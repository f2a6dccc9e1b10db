//! System calls that a command may not make: what mounts and Landlock do not see. Rules S1–S6; everything else is
//! allowed, and a refused call fails with EPERM.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Bit of x32 system call numbers, which the filters for x86-64 do not look at.
const X32: u32 = 0x4000_0000;
/// MPTCP goes around Landlock's TCP rules (measured).
const MPTCP: u64 = 262;

/// An old way to packet sockets.
const SOCK_PACKET: libc::c_int = 10;

/// S2 and S3: other processes, and the kernel itself.
const REFUSED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// S4: namespaces by `clone`.
const CLONE_FLAGS: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80,
];

/// S5: terminal requests that type for the user or take over a console.
const IOCTLS: &[u64] = &[0x5412, 0x541C, 0x5423, 0x541D];

/// S6: personalities that are only a query or switch address randomisation off.
const PERSONALITIES: &[u64] = &[0, 0xffff_ffff, 0x0004_0000];

/// The programs, in the order in which they are installed.
///
/// # Errors
/// When this architecture is not supported.
pub fn programs() -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let main = SeccompFilter::new(
        rules()?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        arch,
    )?;
    // clone3 hides its flags in memory; without it the C library falls back to clone (measured with the usual tools).
    let clone3: Rules = [(libc::SYS_clone3, Vec::new())].into();
    let clone3 = SeccompFilter::new(
        clone3,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        arch,
    )?;
    let mut programs = vec![main.try_into()?, clone3.try_into()?];
    if cfg!(target_arch = "x86_64") {
        programs.push(refuse_x32());
    }
    Ok(programs)
}

fn rules() -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED
        .iter()
        .chain(REFUSED_HERE)
        .map(|call| (*call, Vec::new()))
        .collect();
    rules.insert(libc::SYS_socket, sockets()?);
    let datagram_pair = [
        dword(0, Eq, libc::AF_UNIX as u64)?,
        dword(1, Masked(0xf), libc::SOCK_DGRAM as u64)?,
    ];
    let other_pair = [dword(0, Ne, libc::AF_UNIX as u64)?];
    rules.insert(
        libc::SYS_socketpair,
        vec![
            SeccompRule::new(datagram_pair.to_vec())?,
            SeccompRule::new(other_pair.to_vec())?,
        ],
    );
    let clone = |flag: &libc::c_int| {
        let flag = u64::try_from(*flag).unwrap_or(0);
        SeccompRule::new(vec![SeccompCondition::new(
            0,
            SeccompCmpArgLen::Qword,
            Masked(flag),
            flag,
        )?])
    };
    rules.insert(
        libc::SYS_clone,
        CLONE_FLAGS.iter().map(clone).collect::<Result<_, _>>()?,
    );
    let ioctl = |request: &u64| SeccompRule::new(vec![dword(1, Eq, *request)?]);
    rules.insert(
        libc::SYS_ioctl,
        IOCTLS.iter().map(ioctl).collect::<Result<_, _>>()?,
    );
    let personality = PERSONALITIES
        .iter()
        .map(|value| dword(0, Ne, *value))
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_personality, vec![SeccompRule::new(personality)?]);
    Ok(rules)
}

/// S1: only internet sockets of the plain kinds, and netlink's routing family, which programs ask for addresses.
/// Unix sockets would reach services of the host through read-only mounts.
fn sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let (v4, v6, netlink) = (
        libc::AF_INET as u64,
        libc::AF_INET6 as u64,
        libc::AF_NETLINK as u64,
    );
    let families = [dword(0, Ne, v4)?, dword(0, Ne, v6)?, dword(0, Ne, netlink)?];
    let mut rules = vec![
        SeccompRule::new(families.to_vec())?,
        SeccompRule::new(vec![dword(0, Eq, netlink)?, dword(2, Ne, 0)?])?,
    ];
    for family in [v4, v6] {
        for kind in [libc::SOCK_RAW, SOCK_PACKET, libc::SOCK_RDM, libc::SOCK_DCCP] {
            rules.push(SeccompRule::new(vec![
                dword(0, Eq, family)?,
                dword(1, Masked(0xf), kind as u64)?,
            ])?);
        }
        rules.push(SeccompRule::new(vec![
            dword(0, Eq, family)?,
            dword(2, Eq, MPTCP)?,
        ])?);
    }
    Ok(rules)
}

use SeccompCmpOp::{Eq, MaskedEq as Masked, Ne};

fn dword(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// Loads the number; from bit 30 on it is an x32 call: ENOSYS.
fn refuse_x32() -> BpfProgram {
    /// `BPF_LD | BPF_W | BPF_ABS`
    const LOAD: u16 = 0x20;
    /// `BPF_JMP | BPF_JGE | BPF_K`
    const AT_LEAST: u16 = 0x35;
    /// `BPF_RET | BPF_K`
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        step(AT_LEAST, 0, 1, X32),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
        step(RETURN, 0, 0, ALLOW),
    ]
}
