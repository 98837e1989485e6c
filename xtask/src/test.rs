//! Everything that CI runs: the checks, then end-to-end tests and the public
//! CRI suite on real engines, one engine after the other.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;

use crate::{
    CI_ENGINES, build, check, conformance,
    failure::{Failure, Outcome},
    lab::{
        self,
        engines::{Engine, Version},
        packages,
    },
    paths, plugins,
    process::{run, step},
};

#[derive(Args)]
pub(crate) struct Options {
    /// Engines 20, 26, 28 and 28c, and not only those that CI covers.
    #[arg(long)]
    all_engines: bool,
    /// Leave out formatting, lints, docs and licences.
    #[arg(long)]
    no_check: bool,
    /// Leave out the public CRI suite.
    #[arg(long)]
    no_conformance: bool,
}

/// Runs all of it; what was started is ended even when something fails.
pub(crate) fn test(options: &Options) -> Outcome {
    let mut failures = Vec::new();
    if !options.no_check {
        // One run tells all: what the checks find does not hide what the engines show.
        failures.extend(check::check().err().map(|failure| failure.to_string()));
    }
    let binary = build::build(false)?;
    let fixtures = paths::target()?.join("fixture-plugins");
    plugins::build_fixtures(&paths::repository(), &fixtures)?;
    step("building the tests on engines", || {
        run(&mut on_engines(&["--no-run"]))
    })?;
    let built = Built {
        binary,
        // Cargo builds a package's programs for its integration tests.
        plain: paths::target()?.join("debug/springline"),
        fixtures,
    };
    // The contract brings an image of its own, made of this.
    if !["/bin/busybox", "/usr/bin/busybox"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        packages::ensure_installed(&["busybox-static"])?;
    }
    let engines: &[Version] = if options.all_engines {
        &Version::ALL
    } else {
        &CI_ENGINES
    };
    for version in engines {
        if let Err(failure) = on_engine(*version, &built, options) {
            println!("    engine {version}: {failure}");
            failures.push(format!("engine {version}: {failure}"));
        }
    }
    if failures.is_empty() {
        println!("\nall passed");
        return Ok(());
    }
    Err(Failure::new(failures.join("\n")))
}

/// What the tests on an engine are given.
struct Built {
    /// The daemon as it is shipped.
    binary: PathBuf,
    /// The daemon without plugins.
    plain: PathBuf,
    /// The folder of hostile plugins.
    fixtures: PathBuf,
}

fn on_engine(version: Version, built: &Built, options: &Options) -> Outcome {
    let was_running = Engine::new(version).runs();
    let engine = lab::start(version)?;
    println!("{}", engine.report());
    let ours = step(&format!("our own tests on engine {version}"), || {
        let mut tests = engine.inside(paths::cargo());
        tests.current_dir(paths::repository());
        tests.args(on_engines(&["--", "--include-ignored"]).get_args());
        tests
            .envs(engine.environment())
            .env("SPRINGLINE_BIN", &built.binary)
            .env("SPRINGLINE_PLAIN_BIN", &built.plain)
            .env("SPRINGLINE_TEST_PLUGINS", &built.fixtures)
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("SPRINGLINE_COMPONENTS_DIR");
        run(&mut tests)
    });
    let public = if options.no_conformance || !CI_ENGINES.contains(&version) {
        Ok(())
    } else {
        conformance::on(&engine, &built.binary, None)
    };
    if !was_running {
        engine.stop(false)?;
    }
    let failures: Vec<String> = [ours, public]
        .into_iter()
        .filter_map(|result| result.err().map(|failure| failure.to_string()))
        .collect();
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::new(failures.join("; ")))
}

/// The end-to-end suites, and the contract that holds the engine's port.
fn on_engines(more: &[&str]) -> Command {
    let mut command = Command::new(paths::cargo());
    command
        .current_dir(paths::repository())
        .env_remove("SPRINGLINE_COMPONENTS_DIR")
        .args(["test", "--locked", "--no-fail-fast"])
        .arg("--workspace")
        .args(["--test", "suites", "--test", "engine_contract"])
        .args(more);
    command
}
