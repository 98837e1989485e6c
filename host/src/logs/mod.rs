//! Container logs: follows the engine's json-file logs and writes CRI-format ones; the real [`crate::runtime::ports::ContainerLogs`].
