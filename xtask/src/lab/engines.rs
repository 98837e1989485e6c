//! Docker Engines of several ages from Debian's packages, each in folders and
//! a network namespace of its own.
//!
//! A start is quick when the engine runs already and is safe to repeat. What
//! was started is ended by pid; data stays until `stop --wipe`.

use std::{
    ffi::OsStr,
    fmt, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use clap::ValueEnum;

use super::{network::Namespace, packages, registry};
use crate::{
    failure::{Context, Failure, Outcome},
    process,
    server::Server,
    wire,
};

const START_PATIENCE: Duration = Duration::from_secs(60);
const STOP_PATIENCE: Duration = Duration::from_secs(40);
/// The names under which the registry is reached; all of them over plain HTTP.
const INSECURE: [&str; 4] = ["registry.k8s.io", "gcr.io", "k8s.gcr.io", "127.0.0.0/8"];

/// An engine that the lab knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Version {
    /// 20.10 (API 1.41), of Debian 12.
    #[value(name = "20")]
    V20,
    /// 26.1 (API 1.45), of Debian 13.
    #[value(name = "26")]
    V26,
    /// 28.5 (API 1.51), of Debian 14.
    #[value(name = "28")]
    V28,
    /// 28.5 with the containerd image store, where image IDs are manifest digests.
    #[value(name = "28c")]
    V28Containerd,
}

impl Version {
    pub(crate) const ALL: [Self; 4] = [Self::V20, Self::V26, Self::V28, Self::V28Containerd];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V20 => "20",
            Self::V26 => "26",
            Self::V28 => "28",
            Self::V28Containerd => "28c",
        }
    }

    fn debian_release(self) -> &'static str {
        match self {
            Self::V20 => "bookworm",
            Self::V26 => "trixie",
            Self::V28 | Self::V28Containerd => "forky",
        }
    }

    fn daemon_json(self) -> &'static str {
        match self {
            Self::V28Containerd => r#"{"features":{"containerd-snapshotter":true}}"#,
            Self::V20 | Self::V26 | Self::V28 => "{}",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One engine of the lab, running or not.
pub(crate) struct Engine {
    version: Version,
    network: Namespace,
}

impl Engine {
    pub(crate) fn new(version: Version) -> Self {
        Self {
            version,
            network: Namespace::named(format!("springline-{version}")),
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The engine's API.
    pub(crate) fn socket(&self) -> PathBuf {
        self.run_folder().join("docker.sock")
    }

    /// Sockets and pid files, gone after a reboot.
    pub(crate) fn run_folder(&self) -> PathBuf {
        Path::new("/run/springline-lab").join(self.version.name())
    }

    /// Data and logs; on a disk, because the engine keeps layers there.
    pub(crate) fn state_folder(&self) -> PathBuf {
        Path::new("/var/lib/springline-lab").join(self.version.name())
    }

    pub(crate) fn runs(&self) -> bool {
        self.server().runs()
    }

    /// A command that will run in the engine's network namespace.
    pub(crate) fn inside(&self, program: impl AsRef<OsStr>) -> Command {
        self.network.inside(program)
    }

    /// What end-to-end tests read from their environment.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("SPRINGLINE_TEST_ENGINE", self.version.to_string()),
            (
                "SPRINGLINE_TEST_ENGINE_SOCKET",
                self.socket().display().to_string(),
            ),
            ("SPRINGLINE_REGISTRY", registry::ADDRESS.to_owned()),
        ]
    }

    /// Installs what is missing, starts registry and engine, and waits until the engine answers.
    pub(crate) fn start(&self) -> Outcome {
        if self.runs() && self.answers() {
            return Ok(());
        }
        let programs = self.install()?;
        process::step(&format!("starting Docker Engine {}", self.version), || {
            let run = self.run_folder();
            fs::create_dir_all(&run).context(format!("making {}", run.display()))?;
            self.network.ensure()?;
            registry::start(&self.network, &run, &self.state_folder())?;
            self.launch(&programs)?;
            process::wait_until("the engine's first answer", START_PATIENCE, || {
                self.answers()
            })
            .map_err(|failure| {
                let log = process::tail(&self.log(), 15);
                Failure::new(format!("{failure}\n{log}"))
            })
        })
    }

    fn launch(&self, programs: &Path) -> Outcome {
        let state = self.state_folder();
        fs::create_dir_all(&state).context(format!("making {}", state.display()))?;
        let config = state.join("daemon.json");
        fs::write(&config, self.version.daemon_json()).context("writing daemon.json")?;
        // Left over when an engine was killed; its pid may be another program's by now.
        let pid_file = self.run_folder().join("dockerd.pid");
        let _ = fs::remove_file(&pid_file);
        let path = std::env::var("PATH").unwrap_or_default();
        let mut dockerd = self.inside(programs.join("dockerd"));
        dockerd
            .arg(format!("--host=unix://{}", self.socket().display()))
            .arg(format!("--config-file={}", config.display()))
            .arg(format!("--data-root={}", state.join("data").display()))
            .arg(format!(
                "--exec-root={}",
                self.run_folder().join("exec").display()
            ))
            .arg(format!("--pidfile={}", pid_file.display()))
            .args(INSECURE.map(|name| format!("--insecure-registry={name}")))
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("HTTP_PROXY", format!("http://{}", registry::ADDRESS))
            .env("HTTPS_PROXY", format!("http://{}", registry::DECOY_ADDRESS))
            .env_remove("NO_PROXY");
        self.server().start(&dockerd, &self.log())
    }

    /// Ends the engine (which ends its containers) and its registry.
    pub(crate) fn stop(&self, wipe: bool) -> Outcome {
        self.server().stop(STOP_PATIENCE)?;
        registry::stop(&self.run_folder())?;
        self.network.remove()?;
        // What is still mounted in there stays; the next start does not mind.
        let _ = fs::remove_dir_all(self.run_folder());
        if wipe && self.state_folder().exists() {
            let state = self.state_folder();
            fs::remove_dir_all(&state).context(format!("removing {}", state.display()))?;
        }
        Ok(())
    }

    /// One line for a person.
    pub(crate) fn report(&self) -> String {
        if !self.runs() {
            return format!("engine {:<4} not running", self.version.name());
        }
        let answer = wire::call(&self.socket(), "GET", "/version", &[], &[])
            .ok()
            .and_then(|reply| serde_json::from_slice::<serde_json::Value>(&reply.body).ok());
        let field = |name: &str| {
            let value = answer.as_ref().and_then(|version| version.get(name));
            value
                .and_then(|value| value.as_str())
                .unwrap_or("unknown")
                .to_owned()
        };
        format!(
            "engine {:<4} Docker {} API {}  unix://{}  log {}",
            self.version.name(),
            field("Version"),
            field("ApiVersion"),
            self.socket().display(),
            self.log().display()
        )
    }

    fn answers(&self) -> bool {
        wire::call(&self.socket(), "GET", "/_ping", &[], &[]).is_ok_and(|reply| reply.status == 200)
    }

    fn server(&self) -> Server {
        Server::at(self.run_folder().join("engine.pid"))
    }

    fn log(&self) -> PathBuf {
        self.state_folder().join("engine.log")
    }

    /// The folder with the engine's programs, unpacked on first use.
    fn install(&self) -> Outcome<PathBuf> {
        packages::ensure_installed(&["iptables", "iproute2", "util-linux"])?;
        let release = self.version.debian_release();
        let folder = super::cache()?.join("engines").join(release);
        let programs = folder.join("bin");
        if programs.exists() {
            return Ok(programs);
        }
        super::announce(
            &format!("fetching Docker Engine of Debian {release}"),
            || {
                packages::unpack_from(release, &["docker.io", "containerd"], &folder)?;
                // A newer runc asks for a newer libc, so this machine's own it is.
                packages::unpack(&["runc"], &folder)?;
                link_programs(&folder.join("root"), &programs)
            },
        )?;
        Ok(programs)
    }
}

/// Gathers the programs of unpacked packages in one folder, which appears only when complete.
fn link_programs(root: &Path, programs: &Path) -> Outcome {
    let unfinished = programs.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished).context("making the folder for programs")?;
    for folder in ["usr/sbin", "usr/bin"] {
        let folder = root.join(folder);
        for entry in fs::read_dir(&folder).context(format!("reading {}", folder.display()))? {
            let entry = entry.context("reading an unpacked package")?;
            let link = unfinished.join(entry.file_name());
            if !link.exists() {
                symlink(entry.path(), &link).context(format!("linking {}", link.display()))?;
            }
        }
    }
    fs::rename(&unfinished, programs).context("completing the folder for programs")
}
