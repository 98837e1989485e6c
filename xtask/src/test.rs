//! Everything that CI runs: the checks, hostile plugins, then our own tests
//! and the public CRI suite on real engines, one engine after the other, and
//! the shipped plugin's cases through its component.

use std::{fs, path::PathBuf, process::Command};

use clap::Args;

use crate::{
    CI_ENGINES, build, check, conformance,
    failure::{Context, Failure, Outcome},
    lab::{
        self,
        engines::{Engine, Version},
    },
    paths, plugins,
    process::{quietly, run, step},
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

/// What the tests are given.
struct Built {
    /// The daemon with the shipped plugins inside.
    daemon: PathBuf,
    /// The daemon without plugins.
    plain: PathBuf,
    /// The folder with the hostile plugins.
    fixtures: PathBuf,
    /// crictl, a client of exec, attach and port-forward that others wrote.
    crictl: PathBuf,
    /// A static busybox for the contract suite's image.
    busybox: PathBuf,
}

/// Runs all of it; what was started is ended even when something fails.
pub(crate) fn test(options: &Options) -> Outcome {
    // One run tells all: what the checks find does not hide what the engines show.
    let mut verdicts = Vec::new();
    if !options.no_check {
        verdicts.push(check::check());
    }
    let built = build_all()?;
    verdicts.push(hostile_plugins(&built));
    let engines: &[Version] = if options.all_engines {
        &Version::ALL
    } else {
        &CI_ENGINES
    };
    for version in engines {
        verdicts.push(on_engine(*version, &built, options).map_err(|failure| {
            println!("    engine {version}: {failure}");
            Failure::new(format!("engine {version}: {failure}"))
        }));
    }
    // Last, since it builds the host's tests with other contents, and the next plain build does so again.
    verdicts.push(shipped_plugins());
    all_of(verdicts, "\n")?;
    println!("\nall passed");
    Ok(())
}

fn build_all() -> Outcome<Built> {
    let daemon = build::build(false)?;
    let fixtures = paths::target()?.join("fixture-plugins");
    plugins::build_fixtures(&paths::repository(), &fixtures)?;
    step("building the tests on engines", || {
        run(&mut on_engines(&["--no-run"]))
    })?;
    Ok(Built {
        daemon,
        // Cargo builds a package's programs for its integration tests.
        plain: paths::target()?.join("debug/springline"),
        fixtures,
        crictl: conformance::crictl()?,
        busybox: lab::static_busybox()?,
    })
}

fn hostile_plugins(built: &Built) -> Outcome {
    step("hostile plugins in the plugin host", || {
        run(tests(&["--test", "hostile_plugins", "--", "--ignored"])
            .env("SPRINGLINE_TEST_PLUGINS", &built.fixtures))
    })
}

/// The shipped plugin's own cases, through the component that the release build has inside.
fn shipped_plugins() -> Outcome {
    const CASES: &str = "plugin::tests::shipped::its_own_cases_hold_through_the_real_component";
    let target = paths::target()?;
    let log = target.join("shipped-plugins.log");
    step("the shipped plugin's cases through its component", || {
        let mut cases = tests(&["--lib", "--", "--exact", CASES, "--include-ignored"]);
        cases.env("SPRINGLINE_COMPONENTS_DIR", target.join("plugins"));
        quietly(&mut cases, &log)?;
        let told = fs::read_to_string(&log).context("reading what the cases told")?;
        // A filter that fits no test passes too.
        if told.contains(&format!("{CASES} ... ok")) {
            return Ok(());
        }
        Err(Failure::new(format!("{CASES} did not run")))
    })
}

fn on_engine(version: Version, built: &Built, options: &Options) -> Outcome {
    let was_running = Engine::new(version).runs();
    let engine = lab::start(version)?;
    println!("{}", engine.report());
    let ours = step(&format!("our own tests on engine {version}"), || {
        let tests = on_engines(&["--", "--include-ignored"]);
        run(engine
            .inside(paths::cargo())
            .current_dir(paths::repository())
            .args(tests.get_args())
            .envs(engine.environment())
            .env("SPRINGLINE_BIN", &built.daemon)
            .env("SPRINGLINE_PLAIN_BIN", &built.plain)
            .env("SPRINGLINE_CRICTL", &built.crictl)
            .env("SPRINGLINE_TEST_BUSYBOX", &built.busybox)
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("SPRINGLINE_COMPONENTS_DIR"))
    });
    let mut verdicts = vec![ours];
    if !options.no_conformance && CI_ENGINES.contains(&version) {
        verdicts.push(conformance::on(&engine, &built.daemon, None));
    }
    if !was_running {
        verdicts.push(engine.stop(false));
    }
    all_of(verdicts, "; ")
}

/// The end-to-end suites, and the contract that holds the engine's port.
fn on_engines(more: &[&str]) -> Command {
    let mut command = tests(&["--test", "suites", "--test", "engine_contract"]);
    command.args(more);
    command
}

/// Always of the whole workspace: with the same choice of features, cargo builds dependencies once.
fn tests(which: &[&str]) -> Command {
    let mut command = Command::new(paths::cargo());
    command
        .current_dir(paths::repository())
        .env_remove("SPRINGLINE_COMPONENTS_DIR")
        .args(["test", "--locked", "--no-fail-fast", "--workspace"])
        .args(which);
    command
}

/// All failures in one, or none.
fn all_of(verdicts: Vec<Outcome>, between: &str) -> Outcome {
    let failures: Vec<String> = verdicts
        .into_iter()
        .filter_map(|verdict| verdict.err().map(|failure| failure.to_string()))
        .collect();
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::new(failures.join(between)))
}
