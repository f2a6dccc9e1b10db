//! The view: what a command can see and where it can write, by namespaces and mounts. Built once per init.
//!
//! Order matters: writable trees are cloned before everything becomes read-only and before /tmp is hidden; what is
//! protected or denied is laid over them last.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use interpreter_messages::process::SpawnFailure;

use super::sys;
use crate::plan::{Plan, boundary};

/// Device files of the private /dev.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links of the private /dev.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Processes of one init and all its commands, together; it also holds for root, for whom RLIMIT_NPROC does not.
const PID_MAX: &str = "4096";

const USER_HINT: &str = "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
    kernel.apparmor_restrict_unprivileged_userns=0), or use --sandbox danger-full-access in a container of your own";
const MOUNT_HINT: &str = "run on Linux 6.10 or newer outside of restricted containers, or use --sandbox danger-full-access";

/// Enters a user namespace in which the caller keeps its ids, and decides that its next child begins a pid namespace.
pub fn enter_user_namespace() -> Result<(), SpawnFailure> {
    let failed = |what: &str, error: io::Error| {
        boundary("user namespaces", format!("{what}: {error}"), USER_HINT)
    };
    let (user, group) = sys::ids();
    sys::unshare(libc::CLONE_NEWUSER).map_err(|error| failed("cannot make one", error))?;
    let write = |file: &str, text: String| {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| failed(&format!("cannot write {file}"), error))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;
    sys::unshare(libc::CLONE_NEWPID).map_err(|error| failed("cannot make a pid namespace", error))
}

/// Enters all other namespaces.
pub fn enter_namespaces(plan: &Plan) -> Result<(), SpawnFailure> {
    let network = if plan.network { 0 } else { libc::CLONE_NEWNET };
    let flags = libc::CLONE_NEWNS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP
        | network;
    sys::unshare(flags).map_err(|error| boundary("namespaces", error.to_string(), USER_HINT))?;
    if !plan.network {
        sys::loopback_up().map_err(|error| {
            boundary("network namespace", format!("loopback: {error}"), USER_HINT)
        })?;
    }
    Ok(())
}

/// Builds the view of a plan.
pub fn build(plan: &Plan) -> Result<(), SpawnFailure> {
    let step = |what: String| {
        move |error: io::Error| boundary("mounts", format!("{what}: {error}"), MOUNT_HINT)
    };
    let root = Path::new("/");
    sys::mount(c"none", root, None, libc::MS_REC | libc::MS_PRIVATE, None)
        .map_err(step("private".to_owned()))?;
    let mut kept = Vec::new();
    let mut roots = plan.roots.clone();
    if plan.share_tmp {
        roots.extend(
            ["/tmp", "/var/tmp"]
                .map(PathBuf::from)
                .into_iter()
                .filter(|path| path.is_dir()),
        );
    }
    for path in roots {
        let tree =
            sys::clone_tree(&path, true).map_err(step(format!("clone {}", path.display())))?;
        sys::make_harmless(&tree).map_err(step(format!("nosuid {}", path.display())))?;
        kept.push((path, tree));
    }
    for path in &plan.visible {
        let tree =
            sys::clone_tree(path, true).map_err(step(format!("clone {}", path.display())))?;
        sys::make_read_only(Some(&tree), Path::new(""), true)
            .map_err(step(format!("read-only {}", path.display())))?;
        kept.push((path.clone(), tree));
    }
    let devices = clone_devices().map_err(step("devices".to_owned()))?;
    sys::make_read_only(None, root, true).map_err(step("read-only /".to_owned()))?;
    private_dev(&devices).map_err(step("private /dev".to_owned()))?;
    fresh_proc(true).map_err(step("fresh /proc".to_owned()))?;
    if !plan.share_tmp {
        private_tmp().map_err(step("private /tmp".to_owned()))?;
    }
    for (path, tree) in &kept {
        mount_point(path).map_err(step(format!("mount point {}", path.display())))?;
        sys::attach_tree(tree, path).map_err(step(format!("attach {}", path.display())))?;
    }
    for path in plan
        .protected
        .iter()
        .chain(&plan.missing)
        .filter(|path| path.symlink_metadata().is_ok())
    {
        protect(path).map_err(step(format!("protect {}", path.display())))?;
    }
    // What the private directories hide already has no place to be covered at.
    let visible = |path: &&PathBuf| path.symlink_metadata().is_ok();
    for path in plan.denied_dirs.iter().filter(visible) {
        deny_dir(path).map_err(step(format!("deny {}", path.display())))?;
    }
    for path in plan.denied_files.iter().filter(visible) {
        deny_file(path).map_err(step(format!("deny {}", path.display())))?;
    }
    Ok(())
}

fn clone_devices() -> io::Result<Vec<(&'static str, OwnedFd)>> {
    let there = |name: &&str| Path::new("/dev").join(name).exists();
    DEVICES
        .into_iter()
        .filter(|name| there(name))
        .map(|name| Ok((name, sys::clone_tree(&Path::new("/dev").join(name), false)?)))
        .collect()
}

fn private_dev(devices: &[(&str, OwnedFd)]) -> io::Result<()> {
    let dev = Path::new("/dev");
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    sys::mount(
        c"tmpfs",
        dev,
        Some(c"tmpfs"),
        flags,
        Some(c"mode=755,size=1m"),
    )?;
    for (name, tree) in devices {
        let path = dev.join(name);
        File::create(&path)?;
        sys::attach_tree(tree, &path)?;
    }
    for name in ["pts", "shm"] {
        std::fs::create_dir(dev.join(name))?;
    }
    let data = c"newinstance,ptmxmode=0666,mode=620";
    sys::mount(
        c"devpts",
        &dev.join("pts"),
        Some(c"devpts"),
        flags,
        Some(data),
    )?;
    sys::mount(
        c"tmpfs",
        &dev.join("shm"),
        Some(c"tmpfs"),
        libc::MS_NOSUID | libc::MS_NODEV,
        Some(c"mode=1777,size=50%"),
    )?;
    for (name, target) in DEVICE_LINKS {
        std::os::unix::fs::symlink(target, dev.join(name))?;
    }
    Ok(())
}

/// A /proc of the current pid namespace, read-only: /proc/sys and its like judge by the user id outside, which for root
/// is root (measured), and nothing a command needs is written there.
pub fn fresh_proc(with_limit: bool) -> io::Result<()> {
    let proc = Path::new("/proc");
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    sys::mount(c"proc", proc, Some(c"proc"), flags, None)?;
    if with_limit {
        // Kernels before 6.14 have one limit for the whole system, which refuses us; then RLIMIT_NPROC is what there is.
        let _ = std::fs::write("/proc/sys/kernel/pid_max", PID_MAX);
    }
    sys::mount(
        c"none",
        proc,
        None,
        flags | libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY,
        None,
    )
}

fn private_tmp() -> io::Result<()> {
    let tmp = Path::new("/tmp");
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount(
        c"tmpfs",
        tmp,
        Some(c"tmpfs"),
        flags,
        Some(c"mode=1777,size=50%"),
    )?;
    let var = Path::new("/var/tmp");
    if var.is_dir() {
        sys::attach_tree(&sys::clone_tree(tmp, false)?, var)?;
    }
    Ok(())
}

/// A root below the hidden /tmp needs its directory back; elsewhere it is there.
fn mount_point(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        Ok(())
    } else {
        std::fs::create_dir_all(path)
    }
}

fn protect(path: &Path) -> io::Result<()> {
    let tree = sys::clone_tree(path, true)?;
    sys::make_read_only(Some(&tree), Path::new(""), true)?;
    sys::attach_tree(&tree, path)
}

fn deny_dir(path: &Path) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
    sys::mount(
        c"tmpfs",
        path,
        Some(c"tmpfs"),
        flags,
        Some(c"mode=000,size=4k"),
    )
}

/// An empty file without any right, laid over the file.
fn deny_file(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let empty = Path::new("/dev/.denied");
    if !empty.exists() {
        File::create(empty)?;
        std::fs::set_permissions(empty, std::fs::Permissions::from_mode(0o0))?;
    }
    let tree = sys::clone_tree(empty, false)?;
    sys::make_read_only(Some(&tree), Path::new(""), false)?;
    sys::attach_tree(&tree, path)
}
