//! Records on disk, one small file each; the real [`crate::runtime::ports::SandboxStore`].
