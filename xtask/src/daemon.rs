//! The daemon as a chore runs it: on a socket of its own beside a lab engine,
//! in that engine's network namespace, ended when the chore is done with it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    failure::{Context, Failure, Outcome},
    process, server, wire,
};

const START_PATIENCE: Duration = Duration::from_secs(30);
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// A running daemon; ended when dropped.
pub(crate) struct Daemon {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

/// What a daemon is started with. All folders lie under `folder`.
pub(crate) struct Setup<'a> {
    /// The `springline` binary, wrapped so that it runs where the engine does.
    pub(crate) program: Command,
    pub(crate) engine_socket: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) log_level: &'a str,
}

impl Setup<'_> {
    /// The folder whose files pods may name as Localhost seccomp profiles.
    pub(crate) fn seccomp_root(folder: &Path) -> PathBuf {
        folder.join("seccomp")
    }

    /// Starts the daemon and waits until its socket takes connections.
    pub(crate) fn start(mut self) -> Outcome<Daemon> {
        let seccomp_root = Self::seccomp_root(self.folder);
        let root = self.folder.join("root");
        for folder in [&seccomp_root, &root] {
            fs::create_dir_all(folder).context(format!("making {}", folder.display()))?;
        }
        let config = self.folder.join("springline.toml");
        fs::write(&config, "").context(format!("writing {}", config.display()))?;
        let socket = self.folder.join("springline.sock");
        let log = self.folder.join("springline.log");
        let flag = |name: &str, value: &str| format!("--{name}={value}");
        let unix = |path: &Path| format!("unix://{}", path.display());
        self.program
            .arg("serve")
            .arg(flag("config", &config.display().to_string()))
            .arg(flag("container-runtime-endpoint", &unix(&socket)))
            .arg(flag("docker-endpoint", &unix(self.engine_socket)))
            .arg(flag("root-dir", &root.display().to_string()))
            .arg(flag("seccomp-root", &seccomp_root.display().to_string()))
            .arg("--network-plugin=")
            .arg(flag("streaming-bind-addr", "127.0.0.1:0"))
            .arg(flag("log-level", self.log_level));
        let child = process::spawn_logged(&mut self.program, &log)?;
        let mut daemon = Daemon { child, socket, log };
        daemon.wait_ready()?;
        Ok(daemon)
    }
}

impl Daemon {
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Ends the daemon as a service manager would.
    pub(crate) fn stop(mut self) -> Outcome {
        server::signal(self.child.id(), Signal::TERM);
        let child = &mut self.child;
        process::wait_until("the daemon's end after SIGTERM", STOP_PATIENCE, || {
            matches!(child.try_wait(), Ok(Some(_)))
        })
    }

    fn wait_ready(&mut self) -> Outcome {
        let socket = self.socket.clone();
        let child = &mut self.child;
        let mut ended = false;
        let ready = process::wait_until("the daemon's socket", START_PATIENCE, || {
            ended = matches!(child.try_wait(), Ok(Some(_)));
            ended || std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
        if ready.is_ok() && !ended {
            return Ok(());
        }
        let log = process::tail(&self.log, 20);
        Err(Failure::new(format!("the daemon did not start:\n{log}")))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Removes every container that the daemon's labels mark as its own.
pub(crate) fn remove_leftovers(engine_socket: &Path) -> Outcome<usize> {
    // URL-encoded {"label":["io.kubernetes.docker.type"]}.
    let filter = "%7B%22label%22%3A%5B%22io.kubernetes.docker.type%22%5D%7D";
    let path = format!("/containers/json?all=1&filters={filter}");
    let reply = wire::call(engine_socket, "GET", &path, &[], &[])?
        .expecting(&[200], "listing what is left over")?;
    let containers: Vec<serde_json::Value> =
        serde_json::from_slice(&reply.body).context("reading the engine's list")?;
    let ids = containers.iter().filter_map(|one| one.get("Id")?.as_str());
    let mut removed = 0;
    for id in ids {
        wire::call(
            engine_socket,
            "DELETE",
            &format!("/containers/{id}?force=1&v=1"),
            &[],
            &[],
        )?
        .expecting(&[204, 404, 409], "removing a container that was left over")?;
        removed += 1;
    }
    Ok(removed)
}
