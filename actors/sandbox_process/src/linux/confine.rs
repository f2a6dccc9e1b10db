//! What binds a process for good: limits, no capabilities, no new privileges, Landlock, seccomp. Prepared once in the
//! init, applied in each process after the fork.

use std::path::{Path, PathBuf};

use interpreter_messages::process::SpawnFailure;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use seccompiler::BpfProgram;

use super::{seccomp, sys};
use crate::plan::{Plan, boundary};

/// The newest Landlock that this was tested with; 6 (Linux 6.12) has the scopes that keep signals inside.
const LANDLOCK: ABI = ABI::V6;

const LANDLOCK_HINT: &str =
    "boot a kernel from 6.12 on with lsm=landlock, or use --sandbox danger-full-access";

/// Everything that is prepared before a fork.
pub struct Confinement {
    landlock: Option<RulesetCreated>,
    seccomp: Vec<BpfProgram>,
    bounded: bool,
}

impl Confinement {
    /// Prepares the layers of a plan, in the view that they hold in.
    pub fn prepare(plan: &Plan) -> Result<Self, SpawnFailure> {
        if !plan.bounded {
            return Ok(Self {
                landlock: None,
                seccomp: Vec::new(),
                bounded: false,
            });
        }
        let landlock = landlock(plan)
            .map_err(|error| boundary("landlock", error.to_string(), LANDLOCK_HINT))?;
        let seccomp = seccomp::programs().map_err(|error| {
            boundary(
                "seccomp",
                error.to_string(),
                "use an x86-64 or ARM64 machine",
            )
        })?;
        Ok(Self {
            landlock: Some(landlock),
            seccomp,
            bounded: true,
        })
    }

    /// Binds the calling process. It is single-threaded, and execs or serves right after.
    pub fn apply(self) -> Result<(), SpawnFailure> {
        limits().map_err(|error| {
            boundary(
                "limits",
                error.to_string(),
                "raise the hard limits of this session",
            )
        })?;
        if !self.bounded {
            return Ok(());
        }
        let failed = |layer: &'static str| {
            move |error: std::io::Error| {
                boundary(layer, error.to_string(), "use --sandbox danger-full-access")
            }
        };
        sys::drop_capabilities().map_err(failed("capabilities"))?;
        sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(failed("no_new_privs"))?;
        if let Some(ruleset) = self.landlock {
            let status = ruleset.restrict_self();
            let status =
                status.map_err(|error| boundary("landlock", error.to_string(), LANDLOCK_HINT))?;
            enforced(&status)?;
        }
        for program in &self.seccomp {
            seccompiler::apply_filter(program).map_err(|error| {
                boundary(
                    "seccomp",
                    error.to_string(),
                    "use a kernel with CONFIG_SECCOMP_FILTER",
                )
            })?;
        }
        Ok(())
    }
}

fn enforced(status: &RestrictionStatus) -> Result<(), SpawnFailure> {
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err(boundary(
            "landlock",
            "the kernel enforces it only in part",
            LANDLOCK_HINT,
        )),
    }
}

fn limits() -> std::io::Result<()> {
    const GIB: u64 = 1024 * 1024 * 1024;
    sys::limit(libc::RLIMIT_CORE, 0)?;
    // A lower hard limit of the session stays; it cannot be raised, and need not be.
    for (resource, value) in [
        (libc::RLIMIT_FSIZE, 64 * GIB),
        (libc::RLIMIT_MEMLOCK, 8 * 1024 * 1024),
        (libc::RLIMIT_RTPRIO, 0),
    ] {
        match sys::limit(resource, value) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
            result => result?,
        }
    }
    Ok(())
}

/// Reads and programs everywhere; writes, but no devices, in the writable trees and the private directories.
fn landlock(plan: &Plan) -> Result<RulesetCreated, RulesetError> {
    let all: BitFlags<AccessFs> = AccessFs::from_all(LANDLOCK);
    let read = AccessFs::from_read(LANDLOCK) | AccessFs::IoctlDev;
    let write = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .set_compatibility(CompatLevel::HardRequirement)
        .add_rule(PathBeneath::new(open(Path::new("/"))?, read))?;
    let mut writable: Vec<PathBuf> = plan.roots.clone();
    writable.extend(["/tmp", "/var/tmp", "/dev"].map(PathBuf::from));
    for path in writable.iter().filter(|path| path.is_dir()) {
        ruleset = ruleset.add_rule(PathBeneath::new(open(path)?, write))?;
    }
    Ok(ruleset)
}

fn open(path: &Path) -> Result<PathFd, RulesetError> {
    PathFd::new(path).map_err(|error| {
        // The crate has no variant for this; a rule that cannot be added is what it amounts to.
        let _ = error;
        RulesetError::CreateRuleset(landlock::CreateRulesetError::MissingHandledAccess)
    })
}
