//! What is known of the engine behind us: its version, its abilities and the node it runs on.

use std::path::PathBuf;

/// An engine API version, `1.41`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Before the dot.
    pub major: u16,
    /// After the dot.
    pub minor: u16,
}

impl Version {
    /// The version `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What is known of the engine and the node below it, learnt once per connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFacts {
    /// Negotiated API version.
    pub api: Version,
    /// The engine's own version, `28.5.2+dfsg3`.
    pub version: String,
    /// `linux` or `windows`.
    pub os: String,
    /// The engine's word for the architecture, `x86_64`.
    pub arch: String,
    /// Kernel release.
    pub kernel: String,
    /// The node's name as the engine knows it.
    pub node_name: String,
    /// 1 or 2.
    pub cgroup_version: u8,
    /// `cgroupfs`, `systemd` or `none`.
    pub cgroup_driver: String,
    /// `overlay2`, `overlayfs`, …
    pub storage_driver: String,
    /// Images live in containerd's store: IDs are manifest digests.
    pub containerd_images: bool,
    /// The engine confines by seccomp unless told otherwise.
    pub seccomp: bool,
    /// The engine confines by AppArmor unless told otherwise.
    pub apparmor: bool,
    /// The engine labels for SELinux.
    pub selinux: bool,
    /// The engine runs without root's rights.
    pub rootless: bool,
    /// Where the engine keeps its data on this node.
    pub root_dir: PathBuf,
    /// Names of the OCI runtimes it knows.
    pub runtimes: Vec<String>,
    /// The one it uses unless told otherwise.
    pub default_runtime: String,
    /// Log driver it uses unless told otherwise.
    pub log_driver: String,
    /// The lowest oom_score_adj that its containers can have: 0 or more where its process lacks CAP_SYS_RESOURCE.
    pub min_oom_score_adj: i64,
    /// CPU CFS quotas can be set.
    pub cpu_quota: bool,
    /// Swap limits can be set.
    pub swap_limit: bool,
    /// Warnings that it gives about itself.
    pub warnings: Vec<String>,
}

impl EngineFacts {
    /// A plain Linux engine of the newest kind, for tests to change in places.
    #[doc(hidden)]
    pub fn for_tests() -> Self {
        Self {
            api: Version::new(1, 51),
            version: "28.5.2".into(),
            os: "linux".into(),
            arch: "x86_64".into(),
            kernel: "6.12.0".into(),
            node_name: "node".into(),
            cgroup_version: 2,
            cgroup_driver: "cgroupfs".into(),
            storage_driver: "overlay2".into(),
            containerd_images: false,
            seccomp: true,
            apparmor: false,
            selinux: false,
            rootless: false,
            root_dir: "/var/lib/docker".into(),
            runtimes: vec!["runc".into()],
            default_runtime: "runc".into(),
            log_driver: "json-file".into(),
            min_oom_score_adj: -1000,
            cpu_quota: true,
            swap_limit: true,
            warnings: Vec::new(),
        }
    }
}
