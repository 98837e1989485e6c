//! The host's own translation: from CRI's platform-neutral fields (and those Linux ones that are the host's) to a create
//! body in normal form, every value owned by core.
//!
//! Pure and synchronous: no I/O, no clock. What neither we nor this engine can do is refused with an error that names the
//! field as CRI does; what platform plugins own (seccomp, AppArmor, SELinux, …) does not pass here at all.
//! docs/translation.md is the table of it; `host/tests/goldens/` holds the cases.

mod container;
mod mounts;
mod resources;
mod sandbox;

use serde_json::Value;

use super::{Draft, Pointer};
use crate::error::Error;
use crate::model::engine::{EngineFacts, Version};

pub use container::{ContainerInput, container};
pub use resources::update;
pub use sandbox::{SandboxInput, sandbox};

/// A translated body and what had to be bent for this engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Translated {
    /// The body, owned by core.
    pub draft: Draft,
    /// An oom_score_adj below what the engine can set: (asked for, set instead).
    pub clamped_oom: Option<(i64, i64)>,
}

/// API version that has `BindOptions.ReadOnlyNonRecursive` and `ReadOnlyForceRecursive`.
pub const API_RECURSIVE_READ_ONLY: Version = Version::new(1, 44);
/// API version that has `BindOptions.CreateMountpoint`.
const API_CREATE_MOUNTPOINT: Version = Version::new(1, 42);
/// API version that has CDI device requests.
const API_CDI: Version = Version::new(1, 44);
/// API version that has mounts of type `image`.
const API_IMAGE_MOUNT: Version = Version::new(1, 48);

/// Writes core's values: at the top, in `HostConfig`, or as an entry of a keyed list.
struct Body {
    draft: Draft,
}

impl Body {
    fn new() -> Self {
        Self {
            draft: Draft::default(),
        }
    }

    fn top(&mut self, name: &str, value: impl Into<Value>) {
        self.draft.put(&Pointer::of([name]), value.into());
    }

    fn top_entry(&mut self, list: &str, key: &str, value: impl Into<Value>) {
        self.draft.put(&Pointer::of([list, key]), value.into());
    }

    fn host(&mut self, name: &str, value: impl Into<Value>) {
        self.draft
            .put(&Pointer::of(["HostConfig", name]), value.into());
    }

    fn host_entry(&mut self, list: &str, key: &str, value: impl Into<Value>) {
        self.draft
            .put(&Pointer::of(["HostConfig", list, key]), value.into());
    }

    /// One CDI device, owned by itself: a plugin may add others.
    fn cdi_device(&mut self, id: &str) {
        let path = ["HostConfig", "DeviceRequests", "cdi", "DeviceIDs", id];
        self.draft.put(&Pointer::of(path), true.into());
    }

    /// Writes a number or text that means "not said" when it is 0 or empty.
    fn host_unless_default<T: Into<Value> + Default + PartialEq>(&mut self, name: &str, value: T) {
        if value != T::default() {
            self.host(name, value);
        }
    }

    fn oom_score_adj(&mut self, asked: i64, facts: &EngineFacts) -> Option<(i64, i64)> {
        let set = asked.max(facts.min_oom_score_adj);
        self.host_unless_default("OomScoreAdj", set);
        (set != asked).then_some((asked, set))
    }
}

/// Refuses a field for an engine below `needs`.
fn require(facts: &EngineFacts, needs: Version, field: &str, what: &str) -> Result<(), Error> {
    if facts.api >= needs {
        return Ok(());
    }
    Err(Error::unsupported(
        field,
        format!(
            "{what} needs engine API {needs}, this engine ({}) has {}",
            facts.version, facts.api
        ),
    ))
}

/// The engine's form of a parent cgroup.
///
/// With the systemd driver the engine wants the slice alone (`kubepods-burstable.slice`), while the kubelet names the whole
/// path; with cgroupfs both speak of paths.
fn cgroup_parent(parent: &str, facts: &EngineFacts) -> String {
    if facts.cgroup_driver == "systemd" {
        parent.rsplit('/').next().unwrap_or_default().to_owned()
    } else {
        parent.to_owned()
    }
}
