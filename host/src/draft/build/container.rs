//! A container's create body.

use serde_json::json;

use super::{API_CDI, Body, Translated, cgroup_parent, mounts, require, resources};
use crate::error::Error;
use crate::model::container::{ContainerConfig, Device};
use crate::model::engine::EngineFacts;
use crate::model::labels;
use crate::model::sandbox::NamespaceMode;
use crate::model::security::ContainerSecurity;

/// What a container's body is made from.
#[derive(Debug, Clone, Copy)]
pub struct ContainerInput<'a> {
    /// What was asked for.
    pub config: &'a ContainerConfig,
    /// The sandbox to join.
    pub sandbox_id: &'a str,
    /// Parent cgroup of the pod, as the kubelet names it.
    pub cgroup_parent: &'a str,
    /// The pod's CRI runtime handler.
    pub runtime_handler: &'a str,
    /// ID of the image: a name could mean another image by the time the engine reads it.
    pub image_id: &'a str,
    /// Absolute path of the CRI log; empty = none.
    pub log_path: &'a str,
    /// Key of this operation.
    pub create_key: &'a str,
    /// Hash of the request.
    pub config_hash: &'a str,
    /// The engine.
    pub facts: &'a EngineFacts,
}

/// Translates a container.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::Unsupported`], naming the field.
pub fn container(input: ContainerInput<'_>) -> Result<Translated, Error> {
    let ContainerConfig {
        metadata: _, // the name, which is no part of the body
        image: _,    // became `image_id`
        image_requested,
        command,
        args,
        working_dir,
        envs,
        mounts: asked_mounts,
        devices,
        cdi_devices,
        meta,
        log_path: _, // became the absolute `log_path`
        stdin,
        stdin_once,
        tty,
        stop_signal,
        resources: limits,
        security,
    } = input.config;
    let mut body = Body::new();
    body.top("Image", input.image_id);
    if !command.is_empty() {
        body.top("Entrypoint", command.as_slice());
    }
    if !args.is_empty() {
        body.top("Cmd", args.as_slice());
    }
    if !working_dir.is_empty() {
        body.top("WorkingDir", working_dir.as_str());
    }
    for (name, value) in envs {
        body.top_entry("Env", name, value.as_str());
    }
    body.top("OpenStdin", *stdin);
    body.top("StdinOnce", *stdin_once);
    body.top("Tty", *tty);
    if !stop_signal.is_empty() {
        body.top("StopSignal", stop_signal.as_str());
    }
    // An image's health check would restart nothing here and cost an exec each time; the kubelet probes.
    body.top("Healthcheck", json!({"Test": ["NONE"]}));
    for (key, value) in labels::to_engine(meta) {
        body.top_entry("Labels", &key, value);
    }
    for (key, value) in [
        (labels::TYPE, labels::TYPE_CONTAINER),
        (labels::SANDBOX_ID, input.sandbox_id),
        (labels::LOG_PATH, input.log_path),
        (labels::IMAGE_REQUESTED, image_requested.as_str()),
        (labels::CREATE_KEY, input.create_key),
        (labels::CONFIG_HASH, input.config_hash),
    ] {
        body.top_entry("Labels", key, value);
    }
    if let Some(group) = limits.oom_group {
        body.top_entry("Labels", labels::OOM_GROUP, u8::from(group).to_string());
    }
    // Restarting is the kubelet's affair.
    body.host("RestartPolicy", json!({"Name": "no"}));
    body.host("LogConfig", json!({"Type": "json-file", "Config": {}}));
    body.host_unless_default(
        "CgroupParent",
        cgroup_parent(input.cgroup_parent, input.facts),
    );
    body.host_unless_default("Runtime", input.runtime_handler);
    mounts::put(&mut body, asked_mounts, input.facts)?;
    put_devices(&mut body, devices, cdi_devices, input.facts)?;
    put_security(&mut body, security, input.sandbox_id);
    resources::put(&mut body, limits, input.facts)?;
    let clamped_oom = body.oom_score_adj(limits.oom_score_adj, input.facts);
    Ok(Translated {
        draft: body.draft,
        clamped_oom,
    })
}

fn put_devices(
    body: &mut Body,
    devices: &[Device],
    cdi_devices: &[String],
    facts: &EngineFacts,
) -> Result<(), Error> {
    for (index, device) in devices.iter().enumerate() {
        let Device {
            container_path,
            host_path,
            permissions,
        } = device;
        let mut before = devices.iter().take(index);
        if before.any(|other| other.container_path == *container_path && other != device) {
            return Err(Error::invalid(
                format!("config.devices[{index}].container_path"),
                format!("two different devices are asked for at {container_path}"),
            ));
        }
        body.host_entry(
            "Devices",
            container_path,
            json!({"PathOnHost": host_path, "CgroupPermissions": permissions}),
        );
    }
    if !cdi_devices.is_empty() {
        require(facts, API_CDI, "config.CDI_devices", "a CDI device")?;
        for id in cdi_devices {
            body.cdi_device(id);
        }
    }
    Ok(())
}

fn put_security(body: &mut Body, security: &ContainerSecurity, sandbox_id: &str) {
    let ContainerSecurity {
        namespaces,
        user,
        add_capabilities,
        drop_capabilities,
        readonly_rootfs,
        privileged,
    } = security;
    let spec = user.spec();
    if !spec.is_empty() {
        body.top("User", spec);
    }
    for group in &user.supplemental_groups {
        body.host_entry("GroupAdd", &group.to_string(), true);
    }
    for capability in add_capabilities {
        body.host_entry("CapAdd", capability, true);
    }
    for capability in drop_capabilities {
        body.host_entry("CapDrop", capability, true);
    }
    body.host_unless_default("ReadonlyRootfs", *readonly_rootfs);
    body.host_unless_default("Privileged", *privileged);
    let sandbox = format!("container:{sandbox_id}");
    // On the host network too: the sandbox is there already, and brings its resolv.conf and hosts file.
    body.host("NetworkMode", sandbox.as_str());
    if namespaces.network == NamespaceMode::Node {
        body.host("UTSMode", "host");
    }
    body.host(
        "IpcMode",
        if namespaces.ipc == NamespaceMode::Node {
            "host"
        } else {
            sandbox.as_str()
        },
    );
    match namespaces.pid {
        NamespaceMode::Pod => body.host("PidMode", sandbox.as_str()),
        NamespaceMode::Node => body.host("PidMode", "host"),
        NamespaceMode::Target => {
            body.host("PidMode", format!("container:{}", namespaces.target_id))
        }
        NamespaceMode::Container => {} // the engine's default is a namespace of its own
    }
}
