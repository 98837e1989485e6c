//! Servers that a chore starts: found again through a pid file by the next
//! chore, ended by pid and never by name.
//!
//! A pid file holds pid and start time, so that a pid used again by another
//! program is never taken for ours.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    failure::{Context, Outcome},
    process,
};

/// A program that outlives the chore that started it.
pub(crate) struct Server {
    pid_file: PathBuf,
}

impl Server {
    pub(crate) fn at(pid_file: PathBuf) -> Self {
        Self { pid_file }
    }

    /// Starts the program in a session of its own, so that Ctrl-C at the chore spares it.
    pub(crate) fn start(&self, command: &Command, log: &Path) -> Outcome {
        let mut detached = Command::new("setsid");
        detached.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => detached.env(key, value),
                None => detached.env_remove(key),
            };
        }
        // setsid becomes the program itself: it forks only when it leads a group already.
        let child = process::spawn_logged(&mut detached, log)?;
        let pid = child.id();
        let record = format!("{pid} {}", start_time(pid).unwrap_or_default());
        fs::write(&self.pid_file, record).context(format!("writing {}", self.pid_file.display()))
    }

    /// The pid, if the very process that was started still runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        let record = fs::read_to_string(&self.pid_file).ok()?;
        let (pid, started) = record.split_once(' ')?;
        let pid = pid.parse().ok()?;
        (start_time(pid)? == started).then_some(pid)
    }

    pub(crate) fn runs(&self) -> bool {
        self.pid().is_some()
    }

    /// Asks the program to end and waits; does nothing if it does not run.
    pub(crate) fn stop(&self, patience: Duration) -> Outcome {
        if let Some(pid) = self.pid() {
            signal(pid, Signal::TERM);
            let ended = process::wait_until(&format!("the end of process {pid}"), patience, || {
                !self.runs()
            });
            if ended.is_err() {
                signal(pid, Signal::KILL);
                process::wait_until(&format!("the end of process {pid}"), patience, || {
                    !self.runs()
                })?;
            }
        }
        let _ = fs::remove_file(&self.pid_file);
        Ok(())
    }
}

/// Sends a signal to a process that a chore started.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// The start time in clock ticks, as text; `None` when there is no such process or it is a zombie.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields after it are plain.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    (state != "Z").then_some(())?;
    fields.nth(18).map(String::from)
}
