//! Pod and container configurations as the kubelet sends them, for tests to change in places.

use cri_api::runtime::v1 as cri;

use crate::environment::BUSYBOX;

/// Waits for SIGTERM and ends well; a plain `sleep` as process 1 would not hear it.
const WAIT: &str = "trap 'exit 0' TERM; sleep 100000 & wait";

/// A namespace per container for processes, as the kubelet asks for unless the pod says otherwise.
fn namespaces() -> Option<cri::NamespaceOption> {
    Some(cri::NamespaceOption {
        pid: cri::NamespaceMode::Container.into(),
        ..Default::default()
    })
}

/// A pod whose name and UID are `name`.
pub fn pod(name: &str) -> cri::PodSandboxConfig {
    cri::PodSandboxConfig {
        metadata: Some(cri::PodSandboxMetadata {
            name: name.into(),
            uid: format!("uid-{name}"),
            namespace: "e2e".into(),
            attempt: 0,
        }),
        hostname: name.into(),
        linux: Some(cri::LinuxPodSandboxConfig {
            security_context: Some(cri::LinuxSandboxSecurityContext {
                namespace_options: namespaces(),
                seccomp: Some(cri::SecurityProfile::default()),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// A container that waits to be stopped.
pub fn container(name: &str) -> cri::ContainerConfig {
    cri::ContainerConfig {
        metadata: Some(cri::ContainerMetadata {
            name: name.into(),
            attempt: 0,
        }),
        image: Some(image(BUSYBOX)),
        command: ["/bin/sh", "-c", WAIT].map(String::from).into(),
        log_path: format!("{name}.log"),
        linux: Some(cri::LinuxContainerConfig {
            security_context: Some(cri::LinuxContainerSecurityContext {
                namespace_options: namespaces(),
                seccomp: Some(cri::SecurityProfile::default()),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// An image by its reference.
pub fn image(reference: &str) -> cri::ImageSpec {
    cri::ImageSpec {
        image: reference.into(),
        ..Default::default()
    }
}

/// A bind mount.
pub fn mount(host: impl AsRef<std::path::Path>, container: &str) -> cri::Mount {
    cri::Mount {
        host_path: host.as_ref().to_str().unwrap().into(),
        container_path: container.into(),
        ..Default::default()
    }
}

/// Replaces the command by a shell script.
pub fn script(config: &mut cri::ContainerConfig, script: &str) {
    config.command = ["/bin/sh", "-c", script].map(String::from).into();
}

/// The pod's Linux part.
pub fn pod_linux(config: &mut cri::PodSandboxConfig) -> &mut cri::LinuxPodSandboxConfig {
    config.linux.get_or_insert_default()
}

/// The pod's security context.
pub fn pod_security(config: &mut cri::PodSandboxConfig) -> &mut cri::LinuxSandboxSecurityContext {
    pod_linux(config).security_context.get_or_insert_default()
}

/// The pod's namespaces.
pub fn pod_namespaces(config: &mut cri::PodSandboxConfig) -> &mut cri::NamespaceOption {
    pod_security(config)
        .namespace_options
        .get_or_insert_default()
}

/// The container's security context.
pub fn security(config: &mut cri::ContainerConfig) -> &mut cri::LinuxContainerSecurityContext {
    config
        .linux
        .get_or_insert_default()
        .security_context
        .get_or_insert_default()
}

/// The container's namespaces.
pub fn namespaces_of(config: &mut cri::ContainerConfig) -> &mut cri::NamespaceOption {
    security(config).namespace_options.get_or_insert_default()
}

/// The container's resources.
pub fn resources(config: &mut cri::ContainerConfig) -> &mut cri::LinuxContainerResources {
    config
        .linux
        .get_or_insert_default()
        .resources
        .get_or_insert_default()
}
