//! Security settings that the host translates itself: users, groups, capabilities, namespaces, privilege.
//!
//! What differs from platform to platform (seccomp, AppArmor, SELinux, …) is not here: plugins read it from the request
//! document and the host only knows which such fields are *set* (see `runtime::platform_fields`).

use super::sandbox::NamespaceMode;

/// Security settings of a sandbox, the host's share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxSecurity {
    /// Network, PID and IPC namespaces.
    pub namespaces: Namespaces,
    /// Who the sandbox's own process runs as.
    pub user: User,
    /// Read-only root filesystem.
    pub readonly_rootfs: bool,
    /// Whether privileged containers may follow in this sandbox (CRI's meaning; the pause process gains nothing by it).
    pub privileged: bool,
}

/// Security settings of a container, the host's share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerSecurity {
    /// Network, PID and IPC namespaces.
    pub namespaces: Namespaces,
    /// Who the container's process runs as.
    pub user: User,
    /// Capabilities to add, as the caller wrote them.
    pub add_capabilities: Vec<String>,
    /// Capabilities to drop, as the caller wrote them.
    pub drop_capabilities: Vec<String>,
    /// Read-only root filesystem.
    pub readonly_rootfs: bool,
    /// All capabilities and devices.
    pub privileged: bool,
}

/// Namespaces asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// Network namespace: `Pod` or `Node`.
    pub network: NamespaceMode,
    /// PID namespace.
    pub pid: NamespaceMode,
    /// IPC namespace: `Pod` or `Node`.
    pub ipc: NamespaceMode,
    /// The container whose PID namespace to join when `pid` is `Target`.
    pub target_id: String,
}

/// Who a process runs as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Numeric user; wins over nothing, and excludes `name`.
    pub uid: Option<i64>,
    /// Numeric primary group; only with `uid` or `name` (CRI).
    pub gid: Option<i64>,
    /// User name, to be found in the image.
    pub name: String,
    /// Further groups.
    pub supplemental_groups: Vec<i64>,
}

impl User {
    /// The engine's `user[:group]` form; empty = the image's user.
    pub fn spec(&self) -> String {
        let user = match self.uid {
            Some(uid) => uid.to_string(),
            None => self.name.clone(),
        };
        match self.gid {
            Some(gid) if !user.is_empty() => format!("{user}:{gid}"),
            _ => user,
        }
    }
}
