//! Springline's shipped plugin for Linux security: what a pod asks for under seccomp, AppArmor, SELinux, no-new-privileges, masked and
//! read-only paths, and what `privileged` means for them, said in the engine's words.
//!
//! Reading order: `context` (the request, typed), `configure` (what each hook does), `seccomp`, `apparmor`, `selinux`, `paths` (one concern
//! each), `outcome` (how it fails), `imports` (what it needs from outside), `guest` (the component around it, over the generated `bindings`).
//!
//! Everything but `guest` and `bindings` is plain Rust over the [`Imports`] trait and runs natively in `tests/cases.rs`.

pub mod apparmor;
mod bindings;
pub mod configure;
pub mod context;
#[cfg_attr(
    not(target_arch = "wasm32"),
    allow(dead_code, reason = "exported in the component only")
)]
mod guest;
pub mod imports;
pub mod outcome;
pub mod paths;
pub mod profile;
pub mod seccomp;
pub mod selinux;

pub use configure::{configure_container, configure_sandbox};
pub use imports::Imports;
pub use outcome::{Fault, Refusal};

/// Makes cargo build this anew for each clone that shares a target folder, see `.cargo/config.toml`.
const _CLONE: Option<&str> = option_env!("SPRINGLINE_CLONE");
