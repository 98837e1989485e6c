//! Values that cannot be meant are refused by the field's name.

use serde_json::json;
use tonic::Code;

use crate::node::{Node, parts};

/// Numbers that no enum has, as a newer kubelet may send them.
#[tokio::test]
async fn unknown_enum_values_are_refused_by_name() {
    let node = Node::new().await;
    for (rpc, part, field) in [
        (
            "RunPodSandbox",
            "/config/port_mappings/0/protocol",
            "config.port_mappings[0].protocol",
        ),
        (
            "RunPodSandbox",
            "/config/linux/security_context/namespace_options/pid",
            "config.linux.security_context.namespace_options.pid",
        ),
        (
            "RunPodSandbox",
            "/config/linux/security_context/namespace_options/userns_options/mode",
            "config.linux.security_context.namespace_options.userns_options.mode",
        ),
        (
            "CreateContainer",
            "/config/mounts/0/propagation",
            "config.mounts[0].propagation",
        ),
        (
            "CreateContainer",
            "/config/stop_signal",
            "config.stop_signal",
        ),
        (
            "ListContainers",
            "/filter/state/state",
            "filter.state.state",
        ),
        (
            "ListPodSandbox",
            "/filter/state/state",
            "filter.state.state",
        ),
    ] {
        let mut request = node.full_request(rpc);
        *request.pointer_mut(part).unwrap() = json!(99);
        let (code, message) = node.code(rpc, request).await;
        assert_eq!(code, Code::InvalidArgument, "{rpc} {part}: {message}");
        assert!(
            message.starts_with(&format!("{field}: ")),
            "{rpc} {part}: {message}"
        );
    }
}

#[tokio::test]
async fn values_that_cannot_be_meant_are_refused_by_name() {
    let node = Node::new().await;
    let long = "x".repeat(300);
    for (rpc, part, value, field) in [
        (
            "RunPodSandbox",
            "/config/metadata/name",
            json!("a_b"),
            "config.metadata.name",
        ),
        (
            "RunPodSandbox",
            "/config/metadata/name",
            json!(long),
            "config.metadata.name",
        ),
        (
            "RunPodSandbox",
            "/config/hostname",
            json!("x".repeat(65)),
            "config.hostname",
        ),
        (
            "RunPodSandbox",
            "/config/dns_config/servers/0",
            json!("ns1"),
            "config.dns_config.servers[0]",
        ),
        (
            "RunPodSandbox",
            "/config/dns_config/searches/0",
            json!("a\nnameserver 6.6.6.6"),
            "config.dns_config.searches[0]",
        ),
        (
            "RunPodSandbox",
            "/config/port_mappings/0/host_port",
            json!(65536),
            "config.port_mappings[0].host_port",
        ),
        (
            "RunPodSandbox",
            "/config/labels",
            json!({"io.kubernetes.docker.type": "container"}),
            "config.labels[io.kubernetes.docker.type]",
        ),
        (
            "RunPodSandbox",
            "/config/annotations",
            json!({"a": "b\u{0}c"}),
            "config.annotations[a]",
        ),
        (
            "RunPodSandbox",
            "/runtime_handler",
            json!("kata"),
            "runtime_handler",
        ),
        (
            "CreateContainer",
            "/config/metadata/name",
            json!("POD"),
            "config.metadata.name",
        ),
        (
            "CreateContainer",
            "/config/command/0",
            json!("a\u{0}"),
            "config.command[0]",
        ),
        (
            "CreateContainer",
            "/config/envs/0/key",
            json!("A=B"),
            "config.envs[0].key",
        ),
        (
            "CreateContainer",
            "/config/envs/0/value",
            json!("/w=="),
            "config.envs[0].value",
        ),
        (
            "CreateContainer",
            "/config/mounts/0/host_path",
            json!("tmp"),
            "config.mounts[0].host_path",
        ),
        (
            "CreateContainer",
            "/config/mounts/1/image_sub_path",
            json!("../x"),
            "config.mounts[1].image_sub_path",
        ),
        (
            "CreateContainer",
            "/config/devices/0/permissions",
            json!("rx"),
            "config.devices[0].permissions",
        ),
        (
            "CreateContainer",
            "/config/log_path",
            json!("../x"),
            "config.log_path",
        ),
        (
            "CreateContainer",
            "/config/linux/security_context/capabilities/add_capabilities/0",
            json!("NET ADMIN"),
            "config.linux.security_context.capabilities.add_capabilities[0]",
        ),
        (
            "CreateContainer",
            "/config/linux/security_context/run_as_user/value",
            json!(-1),
            "config.linux.security_context.run_as_user",
        ),
        (
            "CreateContainer",
            "/config/linux/resources/unified",
            json!({"memory.oom.group": "2"}),
            "config.linux.resources.unified[memory.oom.group]",
        ),
        ("StopContainer", "/timeout", json!(-1), "timeout"),
        ("ExecSync", "/timeout", json!(-5), "timeout"),
        ("ExecSync", "/cmd/0", json!("a\u{0}b"), "cmd[0]"),
        ("Exec", "/cmd/0", json!("a\u{0}b"), "cmd[0]"),
        ("Exec", "/tty", json!(true), "stderr"),
        ("PortForward", "/port/0", json!(0), "port[0]"),
        ("PortForward", "/port/0", json!(65536), "port[0]"),
        (
            "UpdateRuntimeConfig",
            "/runtime_config/network_config/pod_cidr",
            json!("x"),
            "runtime_config.network_config.pod_cidr",
        ),
    ] {
        let mut request = node.full_request(rpc);
        *request.pointer_mut(part).unwrap() = value;
        let (code, message) = node.code(rpc, request).await;
        assert_eq!(code, Code::InvalidArgument, "{rpc} {part}: {message}");
        assert!(
            message.starts_with(&format!("{field}: ")),
            "{rpc} {part}: {message}"
        );
    }
}

/// The kernel ends text at a NUL byte: what follows would be dropped in silence. Left out: what nothing follows from, and
/// what only a plugin reads.
#[tokio::test]
async fn a_nul_byte_in_any_text_is_refused_by_name() {
    const NOT_OURS: [&str; 3] = [
        "/config/image/annotations",
        "/config/windows",
        "/config/linux/resources/hugepage_limits",
    ];
    let mut wrong = Vec::new();
    let node = Node::new().await;
    for rpc in ["RunPodSandbox", "CreateContainer"] {
        let full = node.full_request(rpc);
        for part in parts(&full) {
            let Some(text) = full.pointer(&part).unwrap().as_str() else {
                continue;
            };
            let enum_or_bytes = text.starts_with(|c: char| c.is_ascii_uppercase())
                && !part.contains("capabilities/");
            let ours = part.starts_with("/config/") && !part.contains("profile_type");
            if !ours || enum_or_bytes || NOT_OURS.iter().any(|other| part.starts_with(other)) {
                continue;
            }
            let mut request = full.clone();
            *request.pointer_mut(&part).unwrap() = json!(format!("{text}\0x"));
            let case = format!("{rpc} {part}");
            let result = node.front.call(rpc, &request).await;
            let named = result.as_ref().is_err_and(|status| {
                status.code() == Code::InvalidArgument && status.message().starts_with("config.")
            });
            if !named {
                wrong.push(format!("{case}: {result:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
