//! Compiles `pause/pause.rs`, the first process of every sandbox, into `OUT_DIR/pause`, from where it is embedded.
//!
//! Uses the compiler and the linker that build the daemon, for the daemon's target, with the same flags always, so that one
//! source and one compiler give one program. Fails the build with the compiler's own words.

#![allow(
    clippy::print_stdout,
    reason = "a build script speaks to cargo through its output"
)]

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "pause/pause.rs";

/// Compiles the program.
pub fn build() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SOURCE}");
    let target = env::var("TARGET")?;
    let known = ["x86_64", "aarch64"].contains(&env::var("CARGO_CFG_TARGET_ARCH")?.as_str());
    if !known || env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Err(format!(
            "{SOURCE} knows the system calls of Linux on x86_64 and aarch64, not those of {target}: add them there"
        )
        .into());
    }
    let output = PathBuf::from(env::var("OUT_DIR")?).join("pause");
    let mut rustc = Command::new(env::var("RUSTC")?);
    rustc
        .args(["--edition", "2024", "--crate-type", "bin", "--crate-name"])
        .args(["pause", "--target", &target])
        .args(["-C", "opt-level=s", "-C", "panic=abort", "-C", "lto=fat"])
        .args(["-C", "relocation-model=static", "-C", "strip=symbols"])
        .args(["-C", "target-feature=+crt-static"])
        // No start code and no library: the program has its own entry. No build ID and small pages: few bytes, the same ones.
        .args(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-nostdlib"])
        .args([
            "-C",
            "link-arg=-static",
            "-C",
            "link-arg=-Wl,--build-id=none",
        ])
        .args(["-C", "link-arg=-Wl,-z,max-page-size=4096,-z,noexecstack"])
        .arg("-o")
        .arg(&output)
        .arg(SOURCE);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let done = rustc.output()?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{SOURCE} did not compile:\n{words}").into());
    }
    Ok(())
}
