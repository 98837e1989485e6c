//! The host functions that a plugin may call, one module per interface of the contract.
//!
//! Each counts the call first and does one small thing on the call's [`HookContext`]. What a
//! guest does wrong is a refusal that it sees; a quota that it exceeds stops it.

mod draft;
mod files;
mod log;
mod node;
mod request;

pub(super) use log::plain;

use super::bindings::types;
use super::context::HookContext;

impl types::Host for HookContext {}
