//! The back: Docker Engine over its HTTP API, the real [`crate::runtime::ports::ContainerEngine`].
