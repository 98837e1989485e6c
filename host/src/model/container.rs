//! The container: what a caller may ask of it, its life, and what we tell of it.
//!
//! ```text
//!             StartContainer            process ends
//!  CREATED ───────────────▶ RUNNING ───────────────▶ EXITED
//!     │                      (paused: RUNNING, reason Paused)
//!     └── the engine could not run it ──────────────▶ EXITED, reason ContainerCannotRun,
//!                                                      started = finished = time of the failure
//! ```
//!
//! State is derived from structured facts of the engine ([`life`]), never from its human text. Unset times are 0.

use super::ids::{ContainerId, ImageId, ImageReference, SandboxId};
use super::labels::Metadata;
use super::mount::Mount;
use super::resources::LinuxResources;
use super::security::ContainerSecurity;

/// Identity of a container within its pod.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct ContainerMetadata {
    /// Name within the pod.
    pub name: String,
    /// Counts the containers that the kubelet made under this name, from 0.
    pub attempt: u32,
}

/// What CreateContainer is asked to make.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerConfig {
    /// Identity.
    pub metadata: ContainerMetadata,
    /// The image to run.
    pub image: ImageReference,
    /// The image as the user wrote it.
    pub image_requested: String,
    /// Entrypoint; empty = the image's.
    pub command: Vec<String>,
    /// Arguments; empty = the image's, unless `command` is given.
    pub args: Vec<String>,
    /// Working directory; empty = the image's.
    pub working_dir: String,
    /// Environment in order; a later value of a name wins.
    pub envs: Vec<(String, String)>,
    /// Mounts.
    pub mounts: Vec<Mount>,
    /// Devices.
    pub devices: Vec<Device>,
    /// Fully qualified names of CDI devices.
    pub cdi_devices: Vec<String>,
    /// Labels and annotations.
    pub meta: Metadata,
    /// Log path relative to the sandbox's log directory; empty = no log.
    pub log_path: String,
    /// Keep stdin open.
    pub stdin: bool,
    /// Close stdin after the first attach ends.
    pub stdin_once: bool,
    /// Give it a terminal.
    pub tty: bool,
    /// Signal that asks it to stop (`SIGTERM`, `SIGRTMIN+3`); empty = the image's or the engine's.
    pub stop_signal: String,
    /// Limits.
    pub resources: LinuxResources,
    /// Security settings that the host translates.
    pub security: ContainerSecurity,
}

/// A device of the node to show inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Path inside.
    pub container_path: String,
    /// Path on the node.
    pub host_path: String,
    /// Any of `r`, `w`, `m`.
    pub permissions: String,
}

/// CRI's container states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerState {
    /// Made, never started.
    Created,
    /// Its process runs (or is paused).
    Running,
    /// Its process has ended, or could not be run.
    Exited,
    /// The engine tells nothing usable.
    Unknown,
}

/// What the engine says of a container's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineState {
    /// Made; possibly a start that failed.
    Created,
    /// Process runs.
    Running,
    /// Process is frozen.
    Paused,
    /// Between two runs (restart policy; not ours).
    Restarting,
    /// Being removed.
    Removing,
    /// Process ended.
    Exited,
    /// Half-removed: the engine gave up on it.
    Dead,
    /// A word we do not know.
    Other,
}

/// The facts a state is derived from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeFacts {
    /// The engine's own state.
    pub engine_state: EngineState,
    /// Nanoseconds since the epoch.
    pub created_at: i64,
    /// Nanoseconds since the epoch; 0 = never started.
    pub started_at: i64,
    /// Nanoseconds since the epoch; 0 = not ended.
    pub finished_at: i64,
    /// Exit code; meaningful once it has ended.
    pub exit_code: i32,
    /// The kernel's OOM killer ended it.
    pub oom_killed: bool,
    /// The engine's message about a failed start; empty = none.
    pub error: String,
}

/// A container's life in CRI's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// State.
    pub state: ContainerState,
    /// Nanoseconds since the epoch; 0 = unset.
    pub started_at: i64,
    /// Nanoseconds since the epoch; 0 = unset.
    pub finished_at: i64,
    /// Exit code.
    pub exit_code: i32,
    /// A CamelCase word, empty while nothing is to be said.
    pub reason: &'static str,
    /// The engine's words behind it.
    pub message: String,
}

/// Reason of a container that the OOM killer ended.
pub const REASON_OOM_KILLED: &str = "OOMKilled";
/// Reason of a container that ended with 0.
pub const REASON_COMPLETED: &str = "Completed";
/// Reason of a container that ended with anything else.
pub const REASON_ERROR: &str = "Error";
/// Reason of a container whose process could not be started.
pub const REASON_CANNOT_RUN: &str = "ContainerCannotRun";
/// Reason of a frozen container, which still is RUNNING: the kubelet kills what is UNKNOWN.
pub const REASON_PAUSED: &str = "Paused";

/// Derives CRI's view from the engine's facts.
///
/// A start that failed leaves the engine's state at `created` (or `exited` on some engines) with an error and no start
/// time. CRI has no state for it: it is EXITED, and both times are the time of the failure, never 0, since the kubelet
/// computes its restart back-off from them. `failed_at` is when we learnt of the failure, for engines that keep no time.
pub fn life(facts: &LifeFacts, failed_at: Option<i64>) -> Life {
    let ended = |reason, exit_code, started_at, finished_at| Life {
        state: ContainerState::Exited,
        started_at,
        finished_at,
        exit_code,
        reason,
        message: facts.error.clone(),
    };
    match facts.engine_state {
        EngineState::Running | EngineState::Paused | EngineState::Restarting => Life {
            state: ContainerState::Running,
            started_at: facts.started_at,
            finished_at: 0,
            exit_code: 0,
            reason: if facts.engine_state == EngineState::Paused {
                REASON_PAUSED
            } else {
                ""
            },
            message: String::new(),
        },
        EngineState::Created | EngineState::Exited | EngineState::Dead | EngineState::Removing
            if facts.started_at == 0 =>
        {
            if cannot_run(facts) {
                let at = [facts.finished_at, failed_at.unwrap_or(0), facts.created_at]
                    .into_iter()
                    .find(|at| *at > 0)
                    .unwrap_or(0);
                let exit_code = if facts.exit_code == 0 {
                    128
                } else {
                    facts.exit_code
                };
                ended(REASON_CANNOT_RUN, exit_code, at, at)
            } else if facts.engine_state == EngineState::Created {
                Life {
                    state: ContainerState::Created,
                    started_at: 0,
                    finished_at: 0,
                    exit_code: 0,
                    reason: "",
                    message: String::new(),
                }
            } else {
                ended(
                    REASON_ERROR,
                    facts.exit_code,
                    facts.created_at,
                    facts.created_at,
                )
            }
        }
        EngineState::Created | EngineState::Exited | EngineState::Dead | EngineState::Removing => {
            let reason = if facts.oom_killed {
                REASON_OOM_KILLED
            } else if cannot_run(facts) && facts.finished_at <= facts.started_at {
                REASON_CANNOT_RUN
            } else if facts.exit_code == 0 {
                REASON_COMPLETED
            } else {
                REASON_ERROR
            };
            // Engines take the end of a very short life a moment before its start.
            let finished = facts.finished_at.max(facts.started_at);
            ended(reason, facts.exit_code, facts.started_at, finished)
        }
        EngineState::Other => Life {
            state: ContainerState::Unknown,
            started_at: facts.started_at,
            finished_at: facts.finished_at,
            exit_code: facts.exit_code,
            reason: "",
            message: String::new(),
        },
    }
}

fn cannot_run(facts: &LifeFacts) -> bool {
    !facts.error.is_empty() || (facts.engine_state == EngineState::Created && facts.exit_code != 0)
}

/// A container as lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerSummary {
    /// Its ID.
    pub id: ContainerId,
    /// The sandbox it belongs to.
    pub sandbox_id: SandboxId,
    /// Its identity.
    pub metadata: ContainerMetadata,
    /// The image as the user asked for it.
    pub image: String,
    /// A repo digest where there is one, else the image ID.
    pub image_ref: String,
    /// The image's ID.
    pub image_id: ImageId,
    /// State.
    pub state: ContainerState,
    /// Nanoseconds since the epoch.
    pub created_at: i64,
    /// Labels and annotations as the caller gave them.
    pub meta: Metadata,
}

/// A container in full.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerStatus {
    /// What lists show too.
    pub summary: ContainerSummary,
    /// Its life.
    pub life: Life,
    /// Its mounts as they are in force.
    pub mounts: Vec<Mount>,
    /// Absolute path of its log; empty = none.
    pub log_path: String,
    /// Limits in force.
    pub resources: LinuxResources,
    /// Who its first process runs as, where that is a number.
    pub user: Option<(i64, i64, Vec<i64>)>,
    /// Signal that asks it to stop; empty = the engine's default.
    pub stop_signal: String,
    /// Its first process on the node; 0 when it does not run.
    pub pid: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(engine_state: EngineState) -> LifeFacts {
        LifeFacts {
            engine_state,
            created_at: 10,
            started_at: 0,
            finished_at: 0,
            exit_code: 0,
            oom_killed: false,
            error: String::new(),
        }
    }

    #[test]
    fn life_follows_from_facts() {
        let ran = |exit_code, oom_killed| LifeFacts {
            started_at: 20,
            finished_at: 30,
            exit_code,
            oom_killed,
            ..facts(EngineState::Exited)
        };
        let failed = LifeFacts {
            error: "exec: \"x\": not found".into(),
            exit_code: 127,
            ..facts(EngineState::Created)
        };
        use ContainerState::{Created, Exited, Running, Unknown};
        for (name, facts, failed_at, want) in [
            (
                "created",
                facts(EngineState::Created),
                None,
                (Created, 0, 0, 0, ""),
            ),
            (
                "running",
                LifeFacts {
                    started_at: 20,
                    ..facts(EngineState::Running)
                },
                None,
                (Running, 20, 0, 0, ""),
            ),
            (
                "paused",
                LifeFacts {
                    started_at: 20,
                    ..facts(EngineState::Paused)
                },
                None,
                (Running, 20, 0, 0, "Paused"),
            ),
            (
                "completed",
                ran(0, false),
                None,
                (Exited, 20, 30, 0, "Completed"),
            ),
            ("error", ran(3, false), None, (Exited, 20, 30, 3, "Error")),
            (
                "ended before it began, says the engine",
                LifeFacts {
                    finished_at: 19,
                    ..ran(0, false)
                },
                None,
                (Exited, 20, 20, 0, "Completed"),
            ),
            (
                "oom",
                ran(137, true),
                None,
                (Exited, 20, 30, 137, "OOMKilled"),
            ),
            (
                "cannot run, time known to us",
                failed.clone(),
                Some(15),
                (Exited, 15, 15, 127, "ContainerCannotRun"),
            ),
            (
                "cannot run, time not known",
                failed.clone(),
                None,
                (Exited, 10, 10, 127, "ContainerCannotRun"),
            ),
            (
                "cannot run, engine's time",
                LifeFacts {
                    finished_at: 14,
                    ..failed
                },
                Some(15),
                (Exited, 14, 14, 127, "ContainerCannotRun"),
            ),
            (
                "unknown word",
                facts(EngineState::Other),
                None,
                (Unknown, 0, 0, 0, ""),
            ),
        ] {
            let life = life(&facts, failed_at);
            let got = (
                life.state,
                life.started_at,
                life.finished_at,
                life.exit_code,
                life.reason,
            );
            assert_eq!(got, want, "{name}");
        }
    }
}
