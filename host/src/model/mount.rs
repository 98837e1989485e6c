//! Mounts that a container asks for.

use super::ids::ImageReference;

/// Where a mount's content comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountSource {
    /// A file or folder of the node.
    Host(String),
    /// An image's content (image volume), and the path inside it (empty = all).
    Image {
        /// The image.
        reference: ImageReference,
        /// Path inside the image, relative, empty = its root.
        sub_path: String,
    },
}

/// How mounts made later travel between node and container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Propagation {
    /// Not at all.
    #[default]
    Private,
    /// From the node to the container.
    HostToContainer,
    /// Both ways.
    Bidirectional,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Absolute path inside the container.
    pub container_path: String,
    /// What is mounted.
    pub source: MountSource,
    /// Read-only.
    pub readonly: bool,
    /// Read-only down to mounts below it; only with `readonly` and `Private`.
    pub recursive_read_only: bool,
    /// Relabel the source for SELinux.
    pub selinux_relabel: bool,
    /// Propagation.
    pub propagation: Propagation,
}
