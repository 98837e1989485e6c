//! Springline: a Kubernetes CRI v1 endpoint for Docker Engine whose platform parts are WebAssembly plugins.

pub mod cli;
pub mod config;
pub mod cri;
pub mod docker;
pub mod draft;
pub mod error;
pub mod logs;
pub mod model;
pub mod network;
pub mod plugin;
pub mod runtime;
pub mod shutdown;
pub mod store;
pub mod telemetry;
