//! A network namespace per engine.
//!
//! Docker's bridge, its iptables chains and published ports then belong to
//! that namespace alone. It has a loopback and no way out.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{failure::Outcome, process};

/// A named network namespace, as `ip netns` shows it.
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    pub(crate) fn named(name: String) -> Self {
        Self { name }
    }

    /// Makes the namespace unless it exists and can be entered.
    pub(crate) fn ensure(&self) -> Outcome {
        if self.path().exists() {
            let entered = self.inside("true").stderr(Stdio::null()).status();
            if entered.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            self.remove()?;
        }
        process::run(Command::new("ip").args(["netns", "add", &self.name]))?;
        process::run(Command::new("ip").args(["-n", &self.name, "link", "set", "lo", "up"]))
    }

    /// Forgets the namespace; the kernel frees it with its last process.
    pub(crate) fn remove(&self) -> Outcome {
        if !self.path().exists() {
            return Ok(());
        }
        process::run(Command::new("ip").args(["netns", "del", &self.name]))
    }

    /// A command that will run inside. Only the network differs: `ip netns
    /// exec` would also make a mount namespace, and hide the engine's mounts
    /// from the daemon under test.
    pub(crate) fn inside(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", self.path().display()))
            .arg("--")
            .arg(program);
        command
    }

    fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }
}
