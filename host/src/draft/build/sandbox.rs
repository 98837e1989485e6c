//! A pod sandbox's create body.

use std::path::Path;

use serde_json::{Value, json};

use super::{Body, Translated, cgroup_parent};
use crate::error::Error;
use crate::model::engine::EngineFacts;
use crate::model::labels;
use crate::model::sandbox::{NamespaceMode, PortMapping, SandboxConfig};

/// Relative CPU weight of the pause process: the least there is, as dockershim set it.
const SANDBOX_CPU_SHARES: i64 = 2;
/// The pause process should be the last to go, since its namespaces are the pod's.
const SANDBOX_OOM_SCORE_ADJ: i64 = -998;

/// What a sandbox's body is made from.
#[derive(Debug, Clone, Copy)]
pub struct SandboxInput<'a> {
    /// What was asked for.
    pub config: &'a SandboxConfig,
    /// The pause image.
    pub image: &'a str,
    /// The engine's network mode for pods off the host network.
    pub network_mode: &'a str,
    /// Whether the engine publishes the host ports.
    pub publish_ports: bool,
    /// The resolv.conf to bind-mount; `None` = the engine's own.
    pub resolv_conf: Option<&'a Path>,
    /// Key of this operation.
    pub create_key: &'a str,
    /// Hash of the request.
    pub config_hash: &'a str,
    /// The engine.
    pub facts: &'a EngineFacts,
}

/// Translates a sandbox.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::Unsupported`], naming the field.
pub fn sandbox(input: SandboxInput<'_>) -> Result<Translated, Error> {
    let SandboxConfig {
        metadata: _, // the name, which is no part of the body
        hostname,
        log_directory: _, // a matter of the sandbox's containers
        dns: _,           // became `resolv_conf`
        port_mappings,
        meta,
        cgroup_parent: parent,
        sysctls,
        security,
        runtime_handler,
    } = input.config;
    let host_network = security.namespaces.network == NamespaceMode::Node;
    let mut body = Body::new();
    body.top("Image", input.image);
    if !hostname.is_empty() {
        body.top("Hostname", hostname.as_str());
    }
    let user = security.user.spec();
    if !user.is_empty() {
        body.top("User", user);
    }
    for group in &security.user.supplemental_groups {
        body.host_entry("GroupAdd", &group.to_string(), true);
    }
    for (key, value) in labels::to_engine(meta) {
        body.top_entry("Labels", &key, value);
    }
    for (key, value) in [
        (labels::TYPE, labels::TYPE_SANDBOX),
        (labels::CONTAINER_NAME, labels::SANDBOX_CONTAINER_NAME),
        (labels::CREATE_KEY, input.create_key),
        (labels::CONFIG_HASH, input.config_hash),
        (labels::RUNTIME_HANDLER, runtime_handler.as_str()),
    ] {
        body.top_entry("Labels", key, value);
    }
    body.top("Healthcheck", json!({"Test": ["NONE"]}));
    body.host("RestartPolicy", json!({"Name": "no"}));
    body.host("LogConfig", json!({"Type": "none", "Config": {}}));
    body.host(
        "NetworkMode",
        if host_network {
            "host"
        } else {
            input.network_mode
        },
    );
    if security.namespaces.pid == NamespaceMode::Node {
        body.host("PidMode", "host");
    }
    // Shareable, so that the pod's containers can join it whatever the engine's default is.
    body.host(
        "IpcMode",
        if security.namespaces.ipc == NamespaceMode::Node {
            "host"
        } else {
            "shareable"
        },
    );
    body.host_unless_default("CgroupParent", cgroup_parent(parent, input.facts));
    for (name, value) in sysctls {
        body.host_entry("Sysctls", name, value.as_str());
    }
    body.host_unless_default("ReadonlyRootfs", security.readonly_rootfs);
    body.host_unless_default("Runtime", runtime_handler.as_str());
    body.host("CpuShares", SANDBOX_CPU_SHARES);
    let clamped_oom = body.oom_score_adj(SANDBOX_OOM_SCORE_ADJ, input.facts);
    if let Some(path) = input.resolv_conf {
        body.host_entry(
            "Mounts",
            "/etc/resolv.conf",
            json!({"Type": "bind", "Source": path, "ReadOnly": false}),
        );
    }
    // On the host network a container's port is the node's port already.
    if !host_network {
        ports(&mut body, port_mappings, input.publish_ports);
    }
    Ok(Translated {
        draft: body.draft,
        clamped_oom,
    })
}

/// Exposes every port and publishes those with a host port; several host ports may lead to one container port.
fn ports(body: &mut Body, mappings: &[PortMapping], publish: bool) {
    let mut keys: Vec<String> = Vec::new();
    for mapping in mappings {
        let key = format!("{}/{}", mapping.container_port, mapping.protocol.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    for key in keys {
        body.top_entry("ExposedPorts", &key, json!({}));
        let bindings: Vec<Value> = mappings
            .iter()
            .filter(|m| {
                m.host_port != 0 && format!("{}/{}", m.container_port, m.protocol.as_str()) == key
            })
            .map(|m| json!({"HostIp": m.host_ip, "HostPort": m.host_port.to_string()}))
            .collect();
        if publish && !bindings.is_empty() {
            body.host_entry("PortBindings", &key, bindings);
        }
    }
}
