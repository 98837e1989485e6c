//! A CRI client for the demo: the calls that a kubelet would make, one at a
//! time and blocking, with the daemon's own words when it refuses.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cri_api::runtime::v1::{
    ContainerConfig, ContainerMetadata, CreateContainerRequest, ExecSyncRequest, ImageSpec,
    LinuxContainerConfig, LinuxContainerSecurityContext, PodSandboxConfig, PodSandboxMetadata,
    RemovePodSandboxRequest, RunPodSandboxRequest, SecurityProfile, StartContainerRequest,
    StopPodSandboxRequest, VersionRequest, runtime_service_client::RuntimeServiceClient,
    security_profile::ProfileType,
};
use hyper_util::rt::TokioIo;
use tokio::{net::UnixStream, runtime::Runtime};
use tonic::{
    Request, Status,
    transport::{Channel, Endpoint, Uri},
};
use tower::service_fn;

use crate::failure::{Context, Failure, Outcome};

const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the daemon, and the pods made over it.
pub(super) struct Cri {
    runtime: Runtime,
    service: RuntimeServiceClient<Channel>,
    pods: Vec<Pod>,
}

/// A pod sandbox that runs.
#[derive(Clone)]
pub(super) struct Pod {
    pub(super) id: String,
    config: PodSandboxConfig,
}

/// What a command in a container printed, and how it ended.
pub(super) struct Ended {
    pub(super) exit_code: i32,
    pub(super) output: String,
}

impl Cri {
    pub(super) fn connect(socket: &Path) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("starting the client")?;
        let socket: PathBuf = socket.to_owned();
        let connector = service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        // The address is a formality; the connector goes to the socket.
        let endpoint = Endpoint::from_static("http://springline.invalid").timeout(PATIENCE);
        let channel = runtime
            .block_on(endpoint.connect_with_connector(connector))
            .context("connecting to the daemon")?;
        Ok(Self {
            runtime,
            service: RuntimeServiceClient::new(channel),
            pods: Vec::new(),
        })
    }

    pub(super) fn version(&mut self) -> Outcome<String> {
        let request = Request::new(VersionRequest {
            version: String::new(),
        });
        let answer = self
            .runtime
            .block_on(self.service.version(request))
            .map_err(refused)?;
        let answer = answer.into_inner();
        Ok(format!(
            "{} {}, CRI {}",
            answer.runtime_name, answer.runtime_version, answer.runtime_api_version
        ))
    }

    pub(super) fn run_pod(&mut self, name: &str) -> Outcome<Pod> {
        let config = PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: name.to_owned(),
                uid: format!("{name}-{}", std::process::id()),
                namespace: "springline-demo".to_owned(),
                attempt: 0,
            }),
            ..PodSandboxConfig::default()
        };
        let request = Request::new(RunPodSandboxRequest {
            config: Some(config.clone()),
            runtime_handler: String::new(),
        });
        let answer = self
            .runtime
            .block_on(self.service.run_pod_sandbox(request))
            .map_err(refused)?;
        let pod = Pod {
            id: answer.into_inner().pod_sandbox_id,
            config,
        };
        self.pods.push(pod.clone());
        Ok(pod)
    }

    /// Creates and starts a container that sleeps; the daemon's refusal comes back as it is.
    pub(super) fn run_container(
        &mut self,
        pod: &Pod,
        name: &str,
        seccomp: SecurityProfile,
    ) -> Result<String, Status> {
        let security = LinuxContainerSecurityContext {
            seccomp: Some(seccomp),
            ..LinuxContainerSecurityContext::default()
        };
        let config = ContainerConfig {
            metadata: Some(ContainerMetadata {
                name: name.to_owned(),
                attempt: 0,
            }),
            image: Some(ImageSpec {
                image: super::IMAGE.to_owned(),
                ..ImageSpec::default()
            }),
            command: vec!["/bin/sleep".to_owned(), "600".to_owned()],
            linux: Some(LinuxContainerConfig {
                security_context: Some(security),
                ..LinuxContainerConfig::default()
            }),
            ..ContainerConfig::default()
        };
        let request = Request::new(CreateContainerRequest {
            pod_sandbox_id: pod.id.clone(),
            config: Some(config),
            sandbox_config: Some(pod.config.clone()),
        });
        let answer = self
            .runtime
            .block_on(self.service.create_container(request))?;
        let container_id = answer.into_inner().container_id;
        let request = Request::new(StartContainerRequest {
            container_id: container_id.clone(),
        });
        self.runtime
            .block_on(self.service.start_container(request))?;
        Ok(container_id)
    }

    pub(super) fn exec(&mut self, container: &str, command: &str) -> Outcome<Ended> {
        let request = Request::new(ExecSyncRequest {
            container_id: container.to_owned(),
            cmd: ["/bin/sh", "-c", command].map(String::from).to_vec(),
            timeout: 10,
        });
        let answer = self
            .runtime
            .block_on(self.service.exec_sync(request))
            .map_err(refused)?;
        let answer = answer.into_inner();
        let output = [answer.stdout, answer.stderr].concat();
        Ok(Ended {
            exit_code: answer.exit_code,
            output: String::from_utf8_lossy(&output).trim().to_owned(),
        })
    }

    /// Stops and removes every pod that was run.
    pub(super) fn remove_pods(&mut self) -> Outcome {
        for pod in std::mem::take(&mut self.pods) {
            let stop = Request::new(StopPodSandboxRequest {
                pod_sandbox_id: pod.id.clone(),
            });
            self.runtime
                .block_on(self.service.stop_pod_sandbox(stop))
                .map_err(refused)?;
            let remove = Request::new(RemovePodSandboxRequest {
                pod_sandbox_id: pod.id,
            });
            self.runtime
                .block_on(self.service.remove_pod_sandbox(remove))
                .map_err(refused)?;
        }
        Ok(())
    }
}

/// A profile that the node's administrator put in place.
pub(super) fn localhost(path: &Path) -> SecurityProfile {
    SecurityProfile {
        profile_type: ProfileType::Localhost.into(),
        localhost_ref: path.display().to_string(),
    }
}

/// No confinement.
pub(super) fn unconfined() -> SecurityProfile {
    SecurityProfile {
        profile_type: ProfileType::Unconfined.into(),
        localhost_ref: String::new(),
    }
}

fn refused(status: Status) -> Failure {
    Failure::new(format!(
        "the daemon answered {:?}: {}",
        status.code(),
        status.message()
    ))
}
