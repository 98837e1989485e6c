//! Requests as the kubelet would send them, in the verbs' terms.

use std::sync::Arc;

use serde_json::{Value, json};
use springline::model::container::{ContainerConfig, ContainerMetadata};
use springline::model::ids::ImageReference;
use springline::model::labels::Metadata;
use springline::model::resources::LinuxResources;
use springline::model::sandbox::{DnsConfig, SandboxConfig, SandboxMetadata};
use springline::model::security::ContainerSecurity;
use springline::runtime::container::create::CreateContainer;
use springline::runtime::sandbox::run::RunSandbox;

use super::world::World;

/// An image that every world has.
pub const APP_IMAGE: &str = "registry.test/app:1";

/// A pod's configuration.
pub fn pod(name: &str) -> SandboxConfig {
    SandboxConfig {
        metadata: SandboxMetadata {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            namespace: "default".into(),
            attempt: 0,
        },
        log_directory: format!("/var/log/pods/{name}"),
        dns: Some(DnsConfig {
            servers: vec!["10.96.0.10".into()],
            searches: vec!["default.svc.cluster.local".into()],
            options: vec!["ndots:5".into()],
        }),
        meta: Metadata {
            labels: [("app".to_owned(), name.to_owned())].into(),
            annotations: [("note".to_owned(), "x".to_owned())].into(),
        },
        ..SandboxConfig::default()
    }
}

/// A container's configuration.
pub fn container(name: &str) -> ContainerConfig {
    ContainerConfig {
        metadata: ContainerMetadata {
            name: name.to_owned(),
            attempt: 0,
        },
        image: ImageReference::new(APP_IMAGE),
        image_requested: "app:1".into(),
        command: vec!["sleep".into()],
        args: vec!["600".into()],
        working_dir: String::new(),
        envs: Vec::new(),
        mounts: Vec::new(),
        devices: Vec::new(),
        cdi_devices: Vec::new(),
        meta: Metadata {
            labels: [("part".to_owned(), name.to_owned())].into(),
            annotations: [("why".to_owned(), "tests".to_owned())].into(),
        },
        log_path: format!("{name}/0.log"),
        stdin: false,
        stdin_once: false,
        tty: false,
        stop_signal: String::new(),
        resources: LinuxResources::default(),
        security: ContainerSecurity::default(),
    }
}

/// A document that is the same for equal requests, as the front's is.
pub fn document(of: &impl std::fmt::Debug) -> Value {
    json!({"config": {"as": format!("{of:?}")}})
}

/// A pod that was asked for.
pub struct Pod {
    pub config: SandboxConfig,
    pub id: String,
}

impl World {
    /// The request for a pod.
    pub fn run_request(&self, config: &SandboxConfig) -> RunSandbox {
        RunSandbox {
            document: Arc::new(document(config)),
            config: config.clone(),
        }
    }

    /// RunPodSandbox, which must go well.
    pub async fn run(&self, config: SandboxConfig) -> Pod {
        let request = self.run_request(&config);
        let id = self.runtime.run_pod_sandbox(request).await.unwrap();
        Pod {
            config,
            id: id.to_string(),
        }
    }

    /// The request for a container in a pod.
    pub fn create_request(&self, pod: &Pod, config: &ContainerConfig) -> CreateContainer {
        CreateContainer {
            sandbox_id: pod.id.clone(),
            document: document(&(config, &pod.id)),
            config: config.clone(),
            sandbox_config: pod.config.clone(),
        }
    }

    /// CreateContainer, which must go well.
    pub async fn create(&self, pod: &Pod, config: &ContainerConfig) -> String {
        let request = self.create_request(pod, config);
        let id = self.runtime.create_container(request).await.unwrap();
        id.to_string()
    }

    /// CreateContainer and StartContainer, which must go well.
    pub async fn start(&self, pod: &Pod, config: &ContainerConfig) -> String {
        let id = self.create(pod, config).await;
        self.runtime.start_container(&id).await.unwrap();
        id
    }
}
