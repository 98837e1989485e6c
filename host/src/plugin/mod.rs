//! The WebAssembly host: loads components and runs their hooks; the real [`crate::runtime::ports::Plugins`].
