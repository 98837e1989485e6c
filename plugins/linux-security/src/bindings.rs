//! The code generated from the contract, alone in its file: nobody else meets it but `guest`. It has nothing to say for itself; what the
//! functions mean stands in `wit/`.
#![allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    reason = "generated code, lowered to the component ABI"
)]

wit_bindgen::generate!({
    path: "../../wit/0.1",
    world: "linux-security",
});

// The exported symbols' names are no names for a native linker.
#[cfg(target_arch = "wasm32")]
export!(LinuxSecurity with_types_in self);

#[cfg(target_arch = "wasm32")]
use crate::guest::LinuxSecurity;
