//! Which compiler makes WebAssembly here: the pinned Rust toolchain where it has the target, else Debian's own packages, which it installs
//! where apt is. Nothing else is ever downloaded. Where neither can be had, the failure says both ways out.
//!
//! Debian ships the standard library's source and no build of it for this target, so its cargo builds it: about a minute, once. The linker is the
//! LLVM one inside the pinned toolchain, because Debian's is a package more.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Context, Failure, Outcome},
    paths,
    process::{self, capture},
};

const TARGET: &str = "wasm32-unknown-unknown";
const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const APT: &str = "/usr/bin/apt-get";
/// Debian's names for the linker, should the pinned toolchain have none; the first is a dangling link without its package.
const LINKERS: [&str; 2] = ["/usr/bin/rust-lld", "/usr/bin/wasm-ld"];

/// A way to compile for WebAssembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Toolchain {
    /// The toolchain of the workspace has the target.
    Pinned,
    /// Debian's rustc-web and cargo-web with the standard library's source.
    Debian {
        /// The LLVM linker for the target.
        linker: PathBuf,
    },
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pinned => "the workspace's toolchain",
            Self::Debian { .. } => {
                "Debian's toolchain (the first time builds the standard library: about a minute)"
            }
        })
    }
}

impl Toolchain {
    /// Finds a toolchain; installs Debian's when there is none and apt is there.
    pub(super) fn find_or_install(repo_root: &Path) -> Outcome<Self> {
        let pinned = Sysroot::of(Command::new("rustc").current_dir(repo_root))?;
        if pinned.has_target() {
            return Ok(Self::Pinned);
        }
        if !debian_is_there() {
            install()?;
        }
        if !debian_is_there() {
            return Err(Failure::new(format!(
                "{RUSTC}, {CARGO} and the standard library's source are not all there after installing {}; \
                 is another Rust installed in /usr?",
                PACKAGES.join(" ")
            )));
        }
        Ok(Self::Debian {
            linker: pinned.linker()?,
        })
    }

    /// `cargo build` for the target, to be given packages and a profile.
    pub(super) fn cargo(&self, repo_root: &Path) -> Outcome<Command> {
        let mut command = match self {
            Self::Pinned => {
                let mut command = Command::new(paths::cargo());
                command.arg("build");
                command
            }
            Self::Debian { linker } => {
                let mut command = Command::new(CARGO);
                command
                    .args(["build", "-Zbuild-std=std,panic_abort"])
                    .env("RUSTC", RUSTC)
                    // Building the standard library counts as unstable; the plugins themselves use nothing that is.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                    // `cargo run` points it at the libraries of the toolchain that built this program.
                    .env_remove("LD_LIBRARY_PATH");
                command
            }
        };
        command
            .args(["--target", TARGET])
            .current_dir(repo_root)
            .env("CARGO_ENCODED_RUSTFLAGS", remap(repo_root)?);
        for setting in [
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_BUILD_TARGET",
        ] {
            command.env_remove(setting);
        }
        Ok(command)
    }
}

/// Compiler flags that keep this machine's folders out of the component, so that its digest does not depend on them.
fn remap(repo_root: &Path) -> Outcome<String> {
    let repository = repo_root
        .canonicalize()
        .context(format!("finding {}", repo_root.display()))?;
    let mut flags = vec![format!(
        "--remap-path-prefix={}=/springline",
        repository.display()
    )];
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    if let Some(home) = cargo_home {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    // The separator that cargo defines for this variable.
    Ok(flags.join("\u{1f}"))
}

/// Where a compiler keeps its libraries and tools.
struct Sysroot {
    folder: PathBuf,
    host: String,
}

impl Sysroot {
    fn of(rustc: &mut Command) -> Outcome<Self> {
        let about = capture(rustc.args(["--print", "sysroot", "--print", "host-tuple"]));
        let about = about.context("looking for the Rust toolchain")?;
        Self::read(&about).context("rustc does not say where its toolchain is")
    }

    /// From what rustc prints: a line for each thing asked for.
    fn read(about: &str) -> Option<Self> {
        let mut lines = about.lines();
        let (folder, host) = (lines.next()?, lines.next()?);
        Some(Self {
            folder: PathBuf::from(folder),
            host: host.to_owned(),
        })
    }

    fn has_target(&self) -> bool {
        self.folder
            .join("lib/rustlib")
            .join(TARGET)
            .join("lib")
            .is_dir()
    }

    fn linker(&self) -> Outcome<PathBuf> {
        let own = self
            .folder
            .join("lib/rustlib")
            .join(&self.host)
            .join("bin/rust-lld");
        [own]
            .into_iter()
            .chain(LINKERS.map(PathBuf::from))
            // Follows links: a dangling one does not count.
            .find(|linker| linker.is_file())
            .context("there is no linker for WebAssembly: `apt-get install lld`, or use a Rust toolchain of rustup's")
    }
}

fn debian_is_there() -> bool {
    let compiler = Path::new(RUSTC);
    compiler.is_file()
        && Path::new(CARGO).is_file()
        && Sysroot::of(&mut Command::new(compiler)).is_ok_and(|sysroot| {
            sysroot
                .folder
                .join("lib/rustlib/src/rust/library/std/Cargo.toml")
                .is_file()
        })
}

fn install() -> Outcome {
    let packages = PACKAGES.join(" ");
    let ways = format!(
        "building plugins needs a Rust compiler for {TARGET}: run `rustup target add {TARGET}`, or on Debian, as root, `apt-get install {packages}`"
    );
    if !Path::new(APT).is_file() || !rustix::process::geteuid().is_root() {
        return Err(Failure::new(ways));
    }
    process::step(&format!("installing Debian packages {packages}"), || {
        let log = paths::target()?.join("wasm/apt.log");
        let apt = || {
            let mut command = Command::new(APT);
            command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qy");
            command
        };
        process::quietly(apt().arg("update"), &log)
            .and_then(|()| {
                process::quietly(
                    apt()
                        .args(["install", "--no-install-recommends"])
                        .args(PACKAGES),
                    &log,
                )
            })
            .map_err(|failure| Failure::new(format!("{ways}\n{failure}")))?;
        fs::remove_file(&log).context(format!("removing {}", log.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysroot_is_read_from_what_rustc_prints() {
        let sysroot = Sysroot::read("/opt/toolchain\nx86_64-unknown-linux-gnu\n").unwrap();
        assert_eq!(sysroot.folder, PathBuf::from("/opt/toolchain"));
        assert_eq!(sysroot.host, "x86_64-unknown-linux-gnu");
        assert!(!sysroot.has_target());
        assert!(Sysroot::read("/opt/toolchain\n").is_none());
    }
}
