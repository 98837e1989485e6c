//! Every request with each of its parts left out is an answer and never a crash; what is missing is named.

use serde_json::json;
use tonic::Code;

use crate::node::{IMPLEMENTED, Node, parts, without};

/// What must be there, and what is wrong when it is not.
const REQUIRED: [(&str, &str, &str); 30] = [
    (
        "UpdateRuntimeConfig",
        "/runtime_config",
        "runtime_config: is missing",
    ),
    (
        "UpdateRuntimeConfig",
        "/runtime_config/network_config",
        "runtime_config.network_config: is missing",
    ),
    ("RunPodSandbox", "/config", "config: is missing"),
    (
        "RunPodSandbox",
        "/config/metadata",
        "config.metadata: is missing",
    ),
    (
        "RunPodSandbox",
        "/config/metadata/name",
        "config.metadata.name: must not be empty",
    ),
    (
        "RunPodSandbox",
        "/config/metadata/uid",
        "config.metadata.uid: must not be empty",
    ),
    (
        "RunPodSandbox",
        "/config/metadata/namespace",
        "config.metadata.namespace: must not be empty",
    ),
    (
        "RunPodSandbox",
        "/config/port_mappings/0/container_port",
        "config.port_mappings[0].container_port: must be",
    ),
    (
        "RunPodSandbox",
        "/config/linux/security_context/run_as_user",
        "config.linux.security_context.run_as_group: needs run_as_user",
    ),
    (
        "StopPodSandbox",
        "/pod_sandbox_id",
        "pod_sandbox_id: must not be empty",
    ),
    (
        "RemovePodSandbox",
        "/pod_sandbox_id",
        "pod_sandbox_id: must not be empty",
    ),
    (
        "PodSandboxStatus",
        "/pod_sandbox_id",
        "pod_sandbox_id: must not be empty",
    ),
    (
        "CreateContainer",
        "/pod_sandbox_id",
        "pod_sandbox_id: must not be empty",
    ),
    ("CreateContainer", "/config", "config: is missing"),
    (
        "CreateContainer",
        "/config/metadata",
        "config.metadata: is missing",
    ),
    (
        "CreateContainer",
        "/config/metadata/name",
        "config.metadata.name: must not be empty",
    ),
    (
        "CreateContainer",
        "/config/image",
        "config.image: is missing",
    ),
    (
        "CreateContainer",
        "/sandbox_config",
        "sandbox_config: is missing",
    ),
    (
        "CreateContainer",
        "/sandbox_config/metadata",
        "sandbox_config.metadata: is missing",
    ),
    (
        "StartContainer",
        "/container_id",
        "container_id: must not be empty",
    ),
    (
        "ContainerStatus",
        "/container_id",
        "container_id: must not be empty",
    ),
    ("UpdateContainerResources", "/linux", "linux: is missing"),
    ("ExecSync", "/cmd", "cmd: must not be empty"),
    ("Exec", "/cmd", "cmd: must not be empty"),
    ("Exec", "/container_id", "container_id: must not be empty"),
    ("Attach", "/container_id", "container_id: must not be empty"),
    (
        "PortForward",
        "/pod_sandbox_id",
        "pod_sandbox_id: must not be empty",
    ),
    ("ImageStatus", "/image", "image: is missing"),
    ("PullImage", "/image", "image: is missing"),
    ("RemoveImage", "/image", "image: is missing"),
];

#[tokio::test]
async fn what_must_be_there_is_named_when_it_is_missing() {
    let node = Node::new().await;
    let before = node.world.engine.container_ids();
    for (rpc, part, message) in REQUIRED {
        let request = without(&node.full_request(rpc), part);
        let (code, got) = node.code(rpc, request).await;
        assert_eq!(code, Code::InvalidArgument, "{rpc} without {part}: {got}");
        assert!(got.starts_with(message), "{rpc} without {part}: {got}");
    }
    node.front.assert_alive("what must be there").await;
    assert_eq!(node.world.engine.container_ids(), before);
}

/// Every part of every request left out in turn, and the empty request: an answer, of a kind that says whose fault it is.
#[tokio::test]
async fn any_part_may_be_missing() {
    let mut tried = 0;
    for rpc in IMPLEMENTED {
        let node = Node::new().await;
        let full = node.full_request(rpc);
        let mut requests = vec![("nothing".to_owned(), json!({}))];
        requests.extend(
            parts(&full)
                .into_iter()
                .map(|part| (part.clone(), without(&full, &part))),
        );
        for (part, request) in requests {
            tried += 1;
            let case = format!("{rpc} without {part}");
            match node.front.call(rpc, &request).await {
                Ok(answer) => node.remove(&answer).await,
                Err(status) => assert!(
                    matches!(
                        status.code(),
                        Code::InvalidArgument
                            | Code::NotFound
                            | Code::Unimplemented
                            | Code::FailedPrecondition
                    ),
                    "{case}: {status:?}"
                ),
            }
            node.front.assert_alive(&case).await;
        }
    }
    assert!(tried > 100, "{tried}");
}
