//! What needs no engine: formatting, lints, documentation, tests, licences.

use std::{path::PathBuf, process::Command};

use crate::{
    failure::{Failure, Outcome},
    paths,
    process::{quietly, run, step},
};

const CARGO_DENY: &str = "0.20.2";

/// Runs every check; the first that fails ends it.
pub(crate) fn check() -> Outcome {
    step("formatting", || cargo(&["fmt", "--all", "--check"], &[]))?;
    let lints = [
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    step("lints", || cargo(&lints, &[]))?;
    let docs = [
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    // The pages are for those who work on the code, so private items are in them and may be linked to.
    let flags = "-D warnings -A rustdoc::private_intra_doc_links";
    step("documentation", || cargo(&docs, &[("RUSTDOCFLAGS", flags)]))?;
    step("tests that need no engine", || {
        cargo(&["test", "--locked", "--workspace", "--no-fail-fast"], &[])
    })?;
    licences()
}

/// Bans, licences and sources of what we depend on; known flaws where the list can be had.
fn licences() -> Outcome {
    let deny = cargo_deny()?;
    let run_deny = |what: &[&str]| {
        run(Command::new(&deny)
            .current_dir(paths::repository())
            .args(["--locked", "--offline", "check", "--hide-inclusion-graph"])
            .args(what))
    };
    step("licences, bans and sources of dependencies", || {
        run_deny(&["bans", "licenses", "sources"])
    })?;
    step("known flaws of dependencies", || advisories(&deny))
}

/// A machine without a way to the advisory database says so and goes on.
fn advisories(deny: &PathBuf) -> Outcome {
    let log = paths::cache()?.join("advisories.log");
    let fetched = quietly(
        Command::new(deny)
            .current_dir(paths::repository())
            .args(["fetch", "db"]),
        &log,
    );
    if fetched.is_err() {
        println!("    NOT CHECKED: the advisory database cannot be fetched from here");
        return Ok(());
    }
    run(Command::new(deny).current_dir(paths::repository()).args([
        "--locked",
        "check",
        "--disable-fetch",
        "advisories",
    ]))
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    run(Command::new(paths::cargo())
        .current_dir(paths::repository())
        .args(arguments)
        .envs(environment.iter().copied()))
}

/// cargo-deny of the pinned version, built into the cache on first use.
fn cargo_deny() -> Outcome<PathBuf> {
    let root = paths::cache()?
        .join("tools")
        .join(format!("cargo-deny-{CARGO_DENY}"));
    let program = root.join("bin/cargo-deny");
    if !program.exists() {
        step("building cargo-deny (some minutes, once)", || {
            let mut install = Command::new(paths::cargo());
            install
                .current_dir(std::env::temp_dir())
                .env_remove("RUSTUP_TOOLCHAIN")
                .env_remove("CARGO_TARGET_DIR")
                .args([
                    "install",
                    "--locked",
                    "cargo-deny",
                    "--version",
                    CARGO_DENY,
                    "--root",
                ])
                .arg(&root);
            quietly(&mut install, &root.join("build.log"))
        })?;
    }
    if program.exists() {
        return Ok(program);
    }
    Err(Failure::new(
        "cargo-deny was built but is not where it should be",
    ))
}
