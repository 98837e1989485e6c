//! The public CRI validation suite against the daemon on a lab engine.
//!
//! The suite is a Go program, pinned in `tests/conformance/go.mod`, built into
//! the cache and pointed at our daemon's socket. `expected-failures-N.txt`
//! beside it lists the cases that may fail on engine N, each with its reason.
//! The chore fails on a failure that is not listed and on a listed case that
//! passes, so the lists stay true.

mod expected;
mod report;
mod suite;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Args;
use expected::Expected;
use report::{Fate, Report};

use crate::{
    build,
    daemon::{self, Daemon, Setup},
    failure::{Context, Failure, Outcome},
    lab::{
        self,
        engines::{Engine, Version},
    },
    paths, process,
};

/// The cases with live streams, and what makes the suite's clients use WebSocket instead of SPDY for them.
const STREAMING: &str = "Streaming runtime";
const WEBSOCKET: [&str; 3] = [
    "--websocket-exec",
    "--websocket-attach",
    "--websocket-portforward",
];

#[derive(Args)]
pub(crate) struct Options {
    /// The lab engine to run on.
    #[arg(long, default_value = "28")]
    engine: Version,
    /// Only the cases whose name matches; what is listed is then not asked to fail.
    #[arg(long)]
    focus: Option<String>,
    /// A daemon that is built already (default: build one, unoptimised).
    #[arg(long, env = "SPRINGLINE_BIN")]
    binary: Option<PathBuf>,
    /// Leave the engine running.
    #[arg(long)]
    keep: bool,
}

/// Sets up an engine and a daemon, runs the suite, judges it, and cleans up.
pub(crate) fn conformance(options: &Options) -> Outcome {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build::build(true)?,
    };
    let was_running = Engine::new(options.engine).runs();
    let engine = lab::start(options.engine)?;
    let result = on(&engine, &binary, options.focus.as_deref());
    if !options.keep && !was_running {
        engine.stop(false)?;
    }
    result
}

/// Where `crictl` is, built if need be.
pub(crate) fn crictl() -> Outcome<PathBuf> {
    suite::crictl()
}

/// Runs the suite on an engine that runs, with the given daemon.
pub(crate) fn on(engine: &Engine, binary: &Path, focus: Option<&str>) -> Outcome {
    let suite = suite::build(&lab::registry::digest_of_test_image()?)?;
    let version = engine.version();
    let folder = engine.state_folder().join("conformance");
    let _ = fs::remove_dir_all(&folder);
    let daemon = Setup {
        program: engine.inside(binary),
        engine_socket: &engine.socket(),
        folder: &folder,
        log_level: "debug",
    }
    .start()?;
    let mut result = process::step(&format!("public CRI suite on engine {version}"), || {
        let report = run(engine, &daemon, &suite, &folder, focus, &[])?;
        judge(&report, version, focus.is_some())
    });
    if focus.is_none() {
        let title = format!("its streaming cases over WebSocket on engine {version}");
        let again = process::step(&title, || {
            let report = run(
                engine,
                &daemon,
                &suite,
                &folder,
                Some(STREAMING),
                &WEBSOCKET,
            )?;
            if !report.cases.iter().any(|case| case.fate == Fate::Passed) {
                return Err(Failure::new("no streaming case ran"));
            }
            judge(&report, version, true)
        });
        result = result.and(again);
    }
    keep_logs(&daemon, &folder)?;
    let stopped = daemon.stop();
    let left = daemon::remove_leftovers(&engine.socket())?;
    if left > 0 {
        println!("    removed {left} containers that the suite left behind");
    }
    result.and(stopped)
}

fn run(
    engine: &Engine,
    daemon: &Daemon,
    suite: &Path,
    folder: &Path,
    focus: Option<&str>,
    flags: &[&str],
) -> Outcome<Report> {
    // The suite writes its Localhost profiles into its TMPDIR.
    let scratch = Setup::seccomp_root(folder).join("suite");
    fs::create_dir_all(&scratch).context("making the suite's temporary folder")?;
    let [json, log] = if flags.is_empty() {
        ["report.json", "critest.log"]
    } else {
        ["report-websocket.json", "critest-websocket.log"]
    }
    .map(|name| folder.join(name));
    let endpoint = format!("unix://{}", daemon.socket().display());
    let mut critest = engine.inside(suite);
    critest
        .env("TMPDIR", &scratch)
        .current_dir(&scratch)
        .arg(format!("--runtime-endpoint={endpoint}"))
        .arg(format!("--image-endpoint={endpoint}"))
        .args([
            "--config=/nonexistent",
            "--ginkgo.no-color",
            "--ginkgo.seed=1",
        ])
        .args(["--ginkgo.timeout=40m", "--ginkgo.poll-progress-after=90s"])
        .arg(format!("--ginkgo.json-report={}", json.display()))
        .args(flags);
    if let Some(focus) = focus {
        critest.arg(format!("--ginkgo.focus={focus}"));
    }
    let began = Instant::now();
    process::logged(&mut critest, &log, suite::progress)?;
    println!("    the suite took {}", process::elapsed(began));
    let bytes = fs::read(&json).map_err(|error| {
        Failure::new(format!(
            "the suite left no report ({error})\n{}",
            process::tail(&log, 20)
        ))
    })?;
    Report::parse(&bytes)
}

fn judge(report: &Report, version: Version, partly: bool) -> Outcome {
    let list = paths::repository()
        .join("tests/conformance")
        .join(format!("expected-failures-{version}.txt"));
    let text = fs::read_to_string(&list).unwrap_or_default();
    let expected = Expected::parse(&text, has_sys_resource()).context(list.display())?;
    let verdict = expected.compare(report, partly);
    print!("{verdict}");
    if verdict.holds() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the public CRI suite on engine {version} differs from {}",
        list.display()
    )))
}

/// Keeps what a failure is looked into with, beyond the next run's wipe.
fn keep_logs(daemon: &Daemon, folder: &Path) -> Outcome {
    let kept = paths::target()?.join("conformance");
    fs::create_dir_all(&kept).context(format!("making {}", kept.display()))?;
    let engine = folder
        .parent()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let logs = [
        (daemon.log().to_path_buf(), "springline.log"),
        (folder.join("critest.log"), "critest.log"),
        (folder.join("report.json"), "report.json"),
        (
            folder.join("critest-websocket.log"),
            "critest-websocket.log",
        ),
    ];
    for (from, name) in logs {
        let _ = fs::copy(from, kept.join(format!("{engine}-{name}")));
    }
    println!("    logs: {}/{engine}-*", kept.display());
    Ok(())
}

/// Whether what is started from here, the engines too, has CAP_SYS_RESOURCE.
fn has_sys_resource() -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> CAP_SYS_RESOURCE & 1 == 1)
}
