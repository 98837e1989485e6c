//! What one test holds: names of its own, a folder, clients, and the duty to remove all that it made, however it ends.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use cri_api::runtime::v1 as cri;
use cri_api::runtime::v1::{ContainerState, PodSandboxState};
use tempfile::TempDir;
use tonic::Status;

use crate::configs;
use crate::cri::Cri;
use crate::daemon::{Daemon, Options};
use crate::engine::Engine;
use crate::environment;
use crate::expect::eventually;
use crate::node::{Node, SCENE_LABEL};

/// Lines of the daemon's log that are shown when a test fails.
const LOG_LINES: usize = 150;

/// A pod that runs.
#[derive(Debug, Clone)]
pub struct Pod {
    /// Its sandbox's ID.
    pub id: String,
    /// What it was made from.
    pub config: cri::PodSandboxConfig,
}

/// What one test holds.
#[derive(Debug)]
pub struct Scene {
    /// The daemon.
    pub cri: Cri,
    /// The engine behind it.
    pub engine: Engine,
    name: String,
    log_begin: usize,
    folder: TempDir,
    node: Node,
}

impl Scene {
    /// A scene on the daemon that tests share.
    pub fn new() -> Self {
        Self::on(Node::shared())
    }

    /// A scene with a daemon of its own and nobody beside it.
    pub fn alone() -> Self {
        Self::alone_with(Options::default())
    }

    /// The same, with a daemon that is started so.
    pub fn alone_with(options: Options) -> Self {
        Self::on(Node::alone(options))
    }

    fn on(node: Node) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            cri: node.with_daemon(Daemon::client),
            engine: Engine::at(&environment::engine_socket()),
            name: format!("e2e-{}-{number}", std::process::id()),
            log_begin: node.with_daemon(|daemon| daemon.log().len()),
            folder: tempfile::Builder::new()
                .prefix("springline-scene-")
                .tempdir()
                .unwrap(),
            node,
        }
    }

    /// A name that nothing else has.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A folder of its own; pods' logs are below `logs`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The daemon of one's own; after a start of it call [`Scene::reconnect`].
    pub fn daemon(&mut self) -> &mut Daemon {
        self.node.daemon()
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.node.with_daemon(Daemon::socket)
    }

    /// The daemon's process.
    pub fn daemon_pid(&self) -> u32 {
        self.node.with_daemon(Daemon::pid)
    }

    /// The folder of the daemon's records.
    pub fn root(&self) -> PathBuf {
        self.node.with_daemon(Daemon::root)
    }

    /// The folder that Localhost seccomp profiles may be read from.
    pub fn seccomp_root(&self) -> PathBuf {
        self.node.with_daemon(Daemon::seccomp_root)
    }

    /// Talks to the daemon that runs now.
    pub fn reconnect(&mut self) {
        self.cri = self.node.with_daemon(Daemon::client);
    }

    /// Ends the daemon (by a crash, or as a service manager does) and starts it again.
    pub fn restart(&mut self, crash: bool) {
        if crash {
            self.daemon().kill();
        } else {
            self.daemon().stop();
        }
        self.daemon().start_again();
        self.reconnect();
    }

    /// A pod's configuration, changed by `change`; another one each time is another `suffix`.
    pub fn pod_config(
        &self,
        suffix: &str,
        change: impl FnOnce(&mut cri::PodSandboxConfig),
    ) -> cri::PodSandboxConfig {
        let mut config = configs::pod(&format!("{}{suffix}", self.name));
        config.log_directory = self.folder.path().join("logs").to_str().unwrap().into();
        config.labels.insert(SCENE_LABEL.into(), self.name.clone());
        change(&mut config);
        config
    }

    /// RunPodSandbox.
    ///
    /// # Errors
    /// The daemon's.
    pub fn try_run(&self, config: &cri::PodSandboxConfig) -> Result<String, Status> {
        let answer = self.cri.run_pod_sandbox(cri::RunPodSandboxRequest {
            config: Some(config.clone()),
            ..Default::default()
        });
        Ok(answer?.pod_sandbox_id)
    }

    /// Runs a pod.
    pub fn run(&self, suffix: &str, change: impl FnOnce(&mut cri::PodSandboxConfig)) -> Pod {
        let config = self.pod_config(suffix, change);
        let id = self.try_run(&config).expect("RunPodSandbox");
        Pod { id, config }
    }

    /// Runs a plain pod.
    pub fn pod(&self) -> Pod {
        self.run("", |_| {})
    }

    /// A container's configuration.
    pub fn container_config(
        &self,
        name: &str,
        change: impl FnOnce(&mut cri::ContainerConfig),
    ) -> cri::ContainerConfig {
        let mut config = configs::container(name);
        config.labels.insert(SCENE_LABEL.into(), self.name.clone());
        change(&mut config);
        config
    }

    /// CreateContainer.
    ///
    /// # Errors
    /// The daemon's.
    pub fn try_create(&self, pod: &Pod, config: &cri::ContainerConfig) -> Result<String, Status> {
        let answer = self.cri.create_container(cri::CreateContainerRequest {
            pod_sandbox_id: pod.id.clone(),
            config: Some(config.clone()),
            sandbox_config: Some(pod.config.clone()),
        });
        Ok(answer?.container_id)
    }

    /// Creates a container.
    pub fn create(
        &self,
        pod: &Pod,
        name: &str,
        change: impl FnOnce(&mut cri::ContainerConfig),
    ) -> String {
        self.try_create(pod, &self.container_config(name, change))
            .expect("CreateContainer")
    }

    /// StartContainer.
    ///
    /// # Errors
    /// The daemon's.
    pub fn try_start(&self, id: &str) -> Result<(), Status> {
        let container_id = id.into();
        self.cri
            .start_container(cri::StartContainerRequest { container_id })
            .map(|_| ())
    }

    /// Creates and starts a container.
    pub fn start(
        &self,
        pod: &Pod,
        name: &str,
        change: impl FnOnce(&mut cri::ContainerConfig),
    ) -> String {
        let id = self.create(pod, name, change);
        self.try_start(&id).expect("StartContainer");
        id
    }

    /// Runs a script as a container to its end; what it wrote, and how it ended.
    pub fn run_to_end(
        &self,
        pod: &Pod,
        name: &str,
        script: &str,
        change: impl FnOnce(&mut cri::ContainerConfig),
    ) -> (String, cri::ContainerStatus) {
        let id = self.start(pod, name, |config| {
            configs::script(config, script);
            change(config);
        });
        let status = self.exited(&id);
        (self.logged(&status.log_path), status)
    }

    /// What a CRI log holds, without times and streams.
    pub fn logged(&self, path: &str) -> String {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut out = String::new();
        for line in text.lines() {
            let mut parts = line.splitn(4, ' ').skip(2);
            let full = parts.next() == Some("F");
            out.push_str(parts.next().unwrap_or_default());
            if full {
                out.push('\n');
            }
        }
        out
    }

    /// StopContainer.
    ///
    /// # Errors
    /// The daemon's.
    pub fn stop(&self, id: &str, timeout: i64) -> Result<(), Status> {
        let request = cri::StopContainerRequest {
            container_id: id.into(),
            timeout,
        };
        self.cri.stop_container(request).map(|_| ())
    }

    /// RemoveContainer.
    ///
    /// # Errors
    /// The daemon's.
    pub fn remove(&self, id: &str) -> Result<(), Status> {
        let container_id = id.into();
        self.cri
            .remove_container(cri::RemoveContainerRequest { container_id })
            .map(|_| ())
    }

    /// StopPodSandbox.
    ///
    /// # Errors
    /// The daemon's.
    pub fn stop_pod(&self, id: &str) -> Result<(), Status> {
        let pod_sandbox_id = id.into();
        self.cri
            .stop_pod_sandbox(cri::StopPodSandboxRequest { pod_sandbox_id })
            .map(|_| ())
    }

    /// RemovePodSandbox.
    ///
    /// # Errors
    /// The daemon's.
    pub fn remove_pod(&self, id: &str) -> Result<(), Status> {
        let pod_sandbox_id = id.into();
        self.cri
            .remove_pod_sandbox(cri::RemovePodSandboxRequest { pod_sandbox_id })
            .map(|_| ())
    }

    /// PodSandboxStatus.
    ///
    /// # Errors
    /// The daemon's.
    pub fn try_pod_status(&self, id: &str) -> Result<cri::PodSandboxStatus, Status> {
        let answer = self.cri.pod_sandbox_status(cri::PodSandboxStatusRequest {
            pod_sandbox_id: id.into(),
            verbose: false,
        });
        Ok(answer?.status.expect("PodSandboxStatus.status"))
    }

    /// A sandbox in full.
    pub fn pod_status(&self, id: &str) -> cri::PodSandboxStatus {
        self.try_pod_status(id).expect("PodSandboxStatus")
    }

    /// Whether status and list call a sandbox READY; they must agree.
    pub fn is_ready(&self, id: &str) -> bool {
        let status = self.pod_status(id).state();
        let listed = self.cri.list_pod_sandbox(cri::ListPodSandboxRequest {
            filter: Some(cri::PodSandboxFilter {
                id: id.into(),
                ..Default::default()
            }),
        });
        let listed = listed.expect("ListPodSandbox").items;
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!(listed[0].state(), status, "list and status disagree");
        status == PodSandboxState::SandboxReady
    }

    /// ContainerStatus.
    ///
    /// # Errors
    /// The daemon's.
    pub fn try_status(&self, id: &str) -> Result<cri::ContainerStatus, Status> {
        let answer = self.cri.container_status(cri::ContainerStatusRequest {
            container_id: id.into(),
            verbose: false,
        });
        Ok(answer?.status.expect("ContainerStatus.status"))
    }

    /// A container in full.
    pub fn status(&self, id: &str) -> cri::ContainerStatus {
        self.try_status(id).expect("ContainerStatus")
    }

    /// A container in the list, if it is there.
    pub fn listed(&self, id: &str) -> Option<cri::Container> {
        let answer = self.cri.list_containers(cri::ListContainersRequest {
            filter: Some(cri::ContainerFilter {
                id: id.into(),
                ..Default::default()
            }),
        });
        let mut found = answer.expect("ListContainers").containers;
        assert!(found.len() < 2, "{found:?}");
        found.pop()
    }

    /// Waits until a container has ended; the list says the same.
    pub fn exited(&self, id: &str) -> cri::ContainerStatus {
        let status = eventually("the container's end", || {
            let status = self.status(id);
            (status.state() == ContainerState::ContainerExited).then_some(status)
        });
        // The engine's list follows a moment after its own knowledge.
        eventually("the list shows the end", || {
            let listed = self.listed(id).expect("what has ended is listed");
            (listed.state() == status.state()).then_some(())
        });
        status
    }

    /// ExecSync.
    ///
    /// # Errors
    /// The daemon's.
    pub fn exec(&self, id: &str, cmd: &[&str]) -> Result<cri::ExecSyncResponse, Status> {
        self.cri.exec_sync(cri::ExecSyncRequest {
            container_id: id.into(),
            cmd: cmd.iter().map(|word| (*word).to_owned()).collect(),
            timeout: 60,
        })
    }

    /// What a script in a container writes; it must end with 0.
    pub fn sh(&self, id: &str, script: &str) -> String {
        let output = self.exec(id, &["/bin/sh", "-c", script]).expect("ExecSync");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        let stderr = text(&output.stderr);
        assert_eq!(output.exit_code, 0, "{script}: {stderr}");
        text(&output.stdout)
    }

    /// The daemon's log since the scene began.
    pub fn log(&self) -> String {
        let log = self.node.with_daemon(Daemon::log);
        log.get(self.log_begin..).unwrap_or_default().to_owned()
    }

    fn tell(&self) {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let from = lines.len().saturating_sub(LOG_LINES);
        println!(
            "--- the daemon's log, last lines since {} began:\n{}\n---",
            self.name,
            lines[from..].join("\n")
        );
    }

    /// Removes pods by the daemon, so that its records go too, then by the engine what is left.
    fn clear(&self) {
        let cri = self.node.with_daemon(Daemon::client);
        let mine = cri::PodSandboxFilter {
            label_selector: [(SCENE_LABEL.to_owned(), self.name.clone())].into(),
            ..Default::default()
        };
        let pods = cri.list_pod_sandbox(cri::ListPodSandboxRequest { filter: Some(mine) });
        for pod in pods.map(|answer| answer.items).unwrap_or_default() {
            let _ = cri.remove_pod_sandbox(cri::RemovePodSandboxRequest {
                pod_sandbox_id: pod.id,
            });
        }
        for id in self
            .engine
            .labelled(&format!("{SCENE_LABEL}={}", self.name))
        {
            self.engine.remove(&id);
        }
    }
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell();
        }
        self.clear();
    }
}
