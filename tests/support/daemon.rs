//! One daemon in folders of its own, to be stopped, killed and started again; and its log.
//!
//! A daemon ends with the value that holds it, and with this process even when that is killed: a helper process waits for
//! our end of a pipe to close and ends the daemon then.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use cri_api::runtime::v1::StatusRequest;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cri::Cri;
use crate::environment;
use crate::expect::eventually;

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program.
    pub binary: PathBuf,
    /// Where it looks for the engine.
    pub engine_socket: PathBuf,
    /// More flags.
    pub flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            binary: environment::binary(),
            engine_socket: environment::engine_socket(),
            flags: Vec::new(),
        }
    }
}

/// A daemon, running or not.
#[derive(Debug)]
pub struct Daemon {
    options: Options,
    running: Option<Running>,
    folder: TempDir,
}

#[derive(Debug)]
struct Running {
    daemon: Child,
    /// Ends the daemon when our end of its standard input closes.
    helper: Child,
}

impl Daemon {
    /// Starts one and waits until it answers.
    pub fn start(options: Options) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("springline-e2e-")
            .tempdir()
            .unwrap();
        fs::write(folder.path().join("config.toml"), "").unwrap();
        let mut daemon = Self {
            options,
            running: None,
            folder,
        };
        fs::create_dir(daemon.seccomp_root()).unwrap();
        daemon.start_again();
        daemon
    }

    /// Starts it in the folders that it had.
    pub fn start_again(&mut self) {
        assert!(self.running.is_none(), "it runs");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_file())
            .unwrap();
        let unix = |path: &Path| format!("unix://{}", path.display());
        let daemon = Command::new(&self.options.binary)
            .arg("serve")
            .arg("--config")
            .arg(self.folder.path().join("config.toml"))
            .args(["--container-runtime-endpoint", &unix(&self.socket())])
            .args(["--docker-endpoint", &unix(&self.options.engine_socket)])
            .arg("--root-dir")
            .arg(self.root())
            .arg("--seccomp-root")
            .arg(self.seccomp_root())
            .args(["--network-plugin", "", "--log-level", "debug"])
            .args(&self.options.flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.options.binary.display()));
        let helper = Command::new("sh")
            .args(["-c", "cat >/dev/null; kill -9 \"$1\"; rm -rf \"$2\"", "sh"])
            .arg(daemon.id().to_string())
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        self.running = Some(Running { daemon, helper });
        self.wait_until_it_answers();
    }

    fn wait_until_it_answers(&mut self) {
        let socket = self.socket();
        eventually("the daemon's first answer", || {
            let running = self.running.as_mut().unwrap();
            if let Some(status) = running.daemon.try_wait().unwrap() {
                panic!("the daemon ended with {status}:\n{}", self.log());
            }
            let answer = Cri::at(&socket).status(StatusRequest::default());
            answer.is_ok().then_some(())
        });
    }

    /// Ends it as a service manager does, and expects that it ends well.
    pub fn stop(&mut self) {
        let status = self.end(Signal::TERM);
        assert!(status.success(), "after SIGTERM: {status}\n{}", self.log());
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        let status = self.end(Signal::KILL);
        assert_eq!(status.signal(), Some(9), "after SIGKILL: {status}");
    }

    fn end(&mut self, signal: Signal) -> ExitStatus {
        let Running {
            mut daemon,
            mut helper,
        } = self.running.take().expect("it does not run");
        // The helper first: the daemon's pid may be another's as soon as we have waited for it.
        let _ = helper.kill();
        let _ = helper.wait();
        let pid = Pid::from_raw(daemon.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        eventually("the daemon's end", || daemon.try_wait().unwrap())
    }

    /// Whether the process is there.
    pub fn runs(&mut self) -> bool {
        let running = self.running.as_mut();
        running.is_some_and(|running| running.daemon.try_wait().unwrap().is_none())
    }

    /// The process, which must run.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("it does not run").daemon.id()
    }

    /// The CRI socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("springline.sock")
    }

    /// The folder of its records.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// The folder that Localhost seccomp profiles may be read from.
    pub fn seccomp_root(&self) -> PathBuf {
        self.folder.path().join("seccomp")
    }

    /// A new client.
    pub fn client(&self) -> Cri {
        Cri::at(&self.socket())
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("daemon.log")
    }

    /// All that it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.end(Signal::KILL);
        }
    }
}
