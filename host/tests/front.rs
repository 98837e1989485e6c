//! The front as the kubelet meets it: the real gRPC server on a socket, over the fake engine.
//!
//! Every request message with each of its parts left out is an answer and never a crash; what is missing is named.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod fake;

use std::time::Duration;

use fake::{APP_IMAGE, Exec, Front, How, When, World, descriptors};
use serde_json::{Value, json};
use springline::runtime::ports::{EngineError, ExecOutput};
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_reflection::pb::v1 as reflection;

/// What is implemented; README's table is held against the code elsewhere.
const IMPLEMENTED: [&str; 22] = [
    "Version",
    "Status",
    "RuntimeConfig",
    "UpdateRuntimeConfig",
    "RunPodSandbox",
    "StopPodSandbox",
    "RemovePodSandbox",
    "PodSandboxStatus",
    "ListPodSandbox",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "RemoveContainer",
    "ListContainers",
    "ContainerStatus",
    "UpdateContainerResources",
    "ExecSync",
    "ListImages",
    "ImageStatus",
    "PullImage",
    "RemoveImage",
    "ImageFsInfo",
];

fn pod_config(name: &str) -> Value {
    // No two pods can have the same port of the node.
    let host_port = 5000 + name.len();
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "namespace": "default", "attempt": 1},
        "hostname": name,
        "log_directory": "/var/log/pods/x",
        "dns_config": {"servers": ["10.96.0.10"], "searches": ["svc"], "options": ["ndots:5"]},
        "port_mappings": [{"protocol": "UDP", "container_port": 53, "host_port": host_port}],
        "labels": {"app": name},
        "annotations": {"note": "x"},
        "linux": {
            "cgroup_parent": "/kubepods/pod1",
            "security_context": {
                "namespace_options": {"pid": "CONTAINER", "userns_options": {"mode": "NODE"}},
                "run_as_user": {"value": 65535},
                "run_as_group": {"value": 65535},
                "supplemental_groups": [7],
                "seccomp": {"profile_type": "RuntimeDefault"},
                "selinux_options": {},
                "apparmor": {"profile_type": "RuntimeDefault"},
            },
            "sysctls": {"net.ipv4.ip_unprivileged_port_start": "0"},
            "overhead": {"cpu_shares": 2},
            "resources": {"cpu_shares": 4},
        },
        "windows": {"security_context": {}},
    })
}

fn container_config(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "attempt": 2},
        "image": {"image": APP_IMAGE, "user_specified_image": "app:1"},
        "command": ["sleep"],
        "args": ["600"],
        "working_dir": "/",
        "envs": [{"key": "A", "value": "MQ=="}],
        "mounts": [
            {"container_path": "/tmp/x", "host_path": "/tmp", "propagation": "PROPAGATION_HOST_TO_CONTAINER"},
            {"container_path": "/img", "image": {"image": APP_IMAGE}, "image_sub_path": "etc", "readonly": true},
        ],
        "devices": [{"container_path": "/dev/null", "host_path": "/dev/null", "permissions": "rw"}],
        "CDI_devices": [{"name": "vendor.test/gpu=0"}],
        "labels": {"part": name},
        "annotations": {"why": "tests"},
        "log_path": "app/0.log",
        "linux": {
            "resources": {
                "cpu_period": 100_000,
                "cpu_quota": 50_000,
                "memory_limit_in_bytes": 67_108_864,
                "hugepage_limits": [{"page_size": "2MB", "limit": 0}],
                "unified": {"memory.oom.group": "1"},
            },
            "security_context": {
                "capabilities": {"add_capabilities": ["NET_ADMIN"], "drop_capabilities": ["ALL"]},
                "namespace_options": {"pid": "CONTAINER"},
                "run_as_user": {"value": 1000},
                "run_as_group": {"value": 1000},
                "seccomp": {"profile_type": "RuntimeDefault"},
                "apparmor": {"profile_type": "RuntimeDefault"},
                "selinux_options": {},
            },
        },
        "stop_signal": "SIGNAL_SIGTERM",
    })
}

/// A world with a pod and a running container, their IDs, and the front over it.
struct Node {
    world: World,
    front: Front,
    pod: String,
    container: String,
}

impl Node {
    async fn new() -> Self {
        let world = World::new();
        let front = Front::serve(&world).await;
        let mut node = Self {
            world,
            front,
            pod: String::new(),
            container: String::new(),
        };
        node.pod = node
            .ok("RunPodSandbox", json!({"config": pod_config("web")}))
            .await["pod_sandbox_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let create = node.full_request("CreateContainer");
        node.container = node.ok("CreateContainer", create).await["container_id"]
            .as_str()
            .unwrap()
            .to_owned();
        node.ok("StartContainer", json!({"container_id": node.container}))
            .await;
        node
    }

    async fn ok(&self, rpc: &str, request: Value) -> Value {
        self.front.call(rpc, &request).await.expect(rpc)
    }

    async fn code(&self, rpc: &str, request: Value) -> (Code, String) {
        let status = self.front.call(rpc, &request).await.expect_err(rpc);
        (status.code(), status.message().to_owned())
    }

    /// Removes what an answer says was made.
    async fn remove(&self, answer: &Value) {
        for (field, rpc) in [
            ("pod_sandbox_id", "RemovePodSandbox"),
            ("container_id", "RemoveContainer"),
        ] {
            if let Some(id) = answer.get(field) {
                self.ok(rpc, json!({field: id})).await;
            }
        }
    }

    /// A request of this RPC in which every part is there.
    fn full_request(&self, rpc: &str) -> Value {
        let image = json!({"image": APP_IMAGE, "annotations": {"a": "b"}});
        match rpc {
            "Version" => json!({"version": "v1"}),
            "Status" => json!({"verbose": true}),
            "UpdateRuntimeConfig" => {
                json!({"runtime_config": {"network_config": {"pod_cidr": "10.0.0.0/24"}}})
            }
            "RunPodSandbox" => json!({"config": pod_config("other"), "runtime_handler": "runc"}),
            "StopPodSandbox" | "RemovePodSandbox" => json!({"pod_sandbox_id": "0123456789ab"}),
            "PodSandboxStatus" => json!({"pod_sandbox_id": self.pod, "verbose": true}),
            "ListPodSandbox" => json!({"filter": {
                "id": self.pod, "state": {"state": "SANDBOX_READY"}, "label_selector": {"app": "web"},
            }}),
            "CreateContainer" => json!({
                "pod_sandbox_id": self.pod,
                "config": container_config("app"),
                "sandbox_config": pod_config("web"),
            }),
            "StartContainer" => json!({"container_id": self.container}),
            "StopContainer" => json!({"container_id": "0123456789ab", "timeout": 1}),
            "RemoveContainer" => json!({"container_id": "0123456789ab"}),
            "ListContainers" => json!({"filter": {
                "id": self.container, "state": {"state": "CONTAINER_RUNNING"}, "pod_sandbox_id": self.pod,
                "label_selector": {"part": "app"},
            }}),
            "ContainerStatus" => json!({"container_id": self.container, "verbose": true}),
            "UpdateContainerResources" => {
                json!({"container_id": self.container, "linux": {"cpu_shares": 100}})
            }
            "ExecSync" => json!({"container_id": self.container, "cmd": ["true"], "timeout": 5}),
            "ListImages" => json!({"filter": {"image": image}}),
            "ImageStatus" => json!({"image": image, "verbose": true}),
            "PullImage" => json!({
                "image": image, "auth": {"username": "u", "password": "p"}, "sandbox_config": pod_config("web"),
            }),
            "RemoveImage" => json!({"image": {"image": "registry.test/no:1"}}),
            _ => json!({}),
        }
    }
}

/// Pointers to every object in a document, and to every value.
fn parts(document: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, found: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (key.clone(), value))
                .collect(),
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(n, v)| (n.to_string(), v))
                .collect(),
            _ => Vec::new(),
        };
        for (key, child) in children {
            let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            walk(child, &at, found);
            found.push(at);
        }
    }
    let mut found = Vec::new();
    walk(document, "", &mut found);
    found
}

fn without(document: &Value, part: &str) -> Value {
    let mut document = document.clone();
    let (above, key) = part.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(above).unwrap() {
        Value::Object(map) => {
            map.remove(&key);
        }
        Value::Array(list) => {
            list.remove(key.parse().unwrap());
        }
        _ => unreachable!("only these have parts"),
    }
    document
}

/// What must be there, and what is wrong when it is not.
const REQUIRED: [(&str, &str, &str); 26] = [
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

#[tokio::test]
async fn the_rest_is_unimplemented() {
    let node = Node::new().await;
    let mut implemented = 0;
    for service in descriptors().services() {
        for method in service.methods() {
            if IMPLEMENTED.contains(&method.name()) {
                implemented += 1;
                continue;
            }
            let status = node.front.send(&method, Vec::new(), None).await;
            let code = status.expect_err(method.name()).code();
            assert_eq!(code, Code::Unimplemented, "{}", method.name());
        }
    }
    assert_eq!(implemented, IMPLEMENTED.len());
    node.front.assert_alive("unimplemented").await;
}

#[tokio::test]
async fn bytes_that_are_no_message_are_an_answer() {
    let node = Node::new().await;
    for rpc in IMPLEMENTED {
        let method = fake::method(rpc);
        let result = node.front.send(&method, vec![0xff; 64], None).await;
        let status = result.expect_err(rpc);
        assert_ne!(status.code(), Code::Unknown, "{rpc}: {status:?}");
    }
    node.front.assert_alive("garbage").await;
}

#[tokio::test]
async fn missing_things() {
    let node = Node::new().await;
    let id = "0123456789ab";
    for (rpc, request) in [
        ("PodSandboxStatus", json!({"pod_sandbox_id": id})),
        ("ContainerStatus", json!({"container_id": id})),
        ("StartContainer", json!({"container_id": id})),
        (
            "UpdateContainerResources",
            json!({"container_id": id, "linux": {}}),
        ),
        ("ExecSync", json!({"container_id": id, "cmd": ["true"]})),
        (
            "PullImage",
            json!({"image": {"image": "registry.test/no:1"}}),
        ),
    ] {
        let (code, message) = node.code(rpc, request).await;
        assert_eq!(code, Code::NotFound, "{rpc}: {message}");
    }
    for (rpc, request) in [
        ("StopPodSandbox", json!({"pod_sandbox_id": id})),
        ("RemovePodSandbox", json!({"pod_sandbox_id": id})),
        ("StopContainer", json!({"container_id": id})),
        ("RemoveContainer", json!({"container_id": id})),
        (
            "RemoveImage",
            json!({"image": {"image": "registry.test/no:1"}}),
        ),
    ] {
        assert_eq!(node.ok(rpc, request).await, json!({}), "{rpc}");
    }
    let answer = node.ok(
        "ImageStatus",
        json!({"image": {"image": "registry.test/no:1"}}),
    );
    assert_eq!(answer.await, json!({}));
    let answer = node.ok(
        "ListImages",
        json!({"filter": {"image": {"image": "registry.test/no:1"}}}),
    );
    assert_eq!(answer.await, json!({}));
}

#[tokio::test]
async fn answers_say_what_the_model_knows() {
    let node = Node::new().await;
    let status = node
        .ok("ContainerStatus", node.full_request("ContainerStatus"))
        .await;
    let facts = node.world.engine.look(&node.container).unwrap();
    let info: Value = serde_json::from_str(status["info"]["info"].as_str().unwrap()).unwrap();
    assert_eq!(info["pid"], facts.pid);
    let status = &status["status"];
    for (field, want) in [
        ("id", json!(node.container)),
        ("metadata", json!({"name": "app", "attempt": 2})),
        ("state", json!("CONTAINER_RUNNING")),
        ("created_at", json!(facts.life.created_at)),
        ("started_at", json!(facts.life.started_at)),
        // Unset is 0, which JSON leaves out.
        ("finished_at", Value::Null),
        (
            "image",
            json!({"image": "app:1", "user_specified_image": "app:1"}),
        ),
        ("image_id", json!(facts.image_id)),
        ("labels", json!({"part": "app"})),
        ("annotations", json!({"why": "tests"})),
        ("log_path", json!("/var/log/pods/x/app/0.log")),
        ("stop_signal", json!("SIGNAL_SIGTERM")),
        ("user", json!({"linux": {"uid": 1000, "gid": 1000}})),
    ] {
        assert_eq!(status.get(field).unwrap_or(&Value::Null), &want, "{field}");
    }
    let listed = node
        .ok("ListContainers", node.full_request("ListContainers"))
        .await;
    let listed = &listed["containers"][0];
    for field in [
        "id",
        "metadata",
        "state",
        "image",
        "image_id",
        "image_ref",
        "labels",
        "annotations",
    ] {
        assert_eq!(listed[field], status[field], "{field}");
    }
    assert_eq!(listed["pod_sandbox_id"], json!(node.pod));

    let status = node
        .ok("PodSandboxStatus", json!({"pod_sandbox_id": node.pod}))
        .await;
    let status = &status["status"];
    assert_eq!(status["state"].as_str(), None, "SANDBOX_READY is 0");
    assert_eq!(status["network"]["ip"], json!("172.17.0.2"));
    assert_eq!(status["metadata"], pod_config("web")["metadata"]);
    let options = &status["linux"]["namespaces"]["options"];
    assert_eq!(options["pid"], json!("CONTAINER"));
    let listed = node
        .ok("ListPodSandbox", node.full_request("ListPodSandbox"))
        .await;
    let listed = &listed["items"][0];
    for field in ["id", "metadata", "state", "labels", "annotations"] {
        assert_eq!(listed[field], status[field], "{field}");
    }
}

#[tokio::test]
async fn an_engine_that_is_away_is_told() {
    let node = Node::new().await;
    let away = || {
        How::Say(EngineError::Unreachable {
            endpoint: "unix:///x".into(),
            reason: "connection refused".into(),
        })
    };
    for call in [
        "engine.ping",
        "engine.facts",
        "engine.inspect",
        "engine.list",
    ] {
        node.world.script.fault(When::Every(call), away());
    }
    for rpc in [
        "Version",
        "RuntimeConfig",
        "ListContainers",
        "ContainerStatus",
        "StopPodSandbox",
    ] {
        let mut request = node.full_request(rpc);
        if rpc == "StopPodSandbox" {
            request = json!({"pod_sandbox_id": node.pod});
        }
        let (code, message) = node.code(rpc, request).await;
        assert_eq!(code, Code::Unavailable, "{rpc}: {message}");
    }
    let status = node.ok("Status", json!({})).await;
    let conditions = status["status"]["conditions"].as_array().unwrap();
    let ready = conditions
        .iter()
        .find(|c| c["type"] == "RuntimeReady")
        .unwrap();
    assert_eq!(ready.get("status"), None, "false is left out: {ready}");
    assert!(
        ready["message"].as_str().unwrap().contains("unix:///x"),
        "{ready}"
    );
    node.world.script.release();
    let status = node.ok("Status", json!({})).await;
    assert_eq!(status["status"]["conditions"][0]["status"], json!(true));
}

/// The code is the one that gRPC has for it, every time; what changes something goes on to its end.
#[tokio::test]
async fn deadlines_of_the_caller_are_honoured() {
    let node = Node::new().await;
    let years = Some(Duration::from_secs(99_999_999 * 3600));
    let answer = node.front.call_within("Version", &json!({}), years).await;
    answer.expect("the longest deadline there is");
    for rpc in [
        "ContainerStatus",
        "ListContainers",
        "ExecSync",
        "StopContainer",
        "RunPodSandbox",
    ] {
        let node = Node::new().await;
        for call in ["engine.inspect", "engine.list", "engine.create"] {
            node.world.script.fault(When::Every(call), How::Hang);
        }
        for milliseconds in 1..=20 {
            let timeout = Some(Duration::from_millis(milliseconds));
            let request = node.full_request(rpc);
            let status = node
                .front
                .call_within(rpc, &request, timeout)
                .await
                .expect_err(rpc);
            assert_eq!(
                status.code(),
                Code::DeadlineExceeded,
                "{rpc} in {milliseconds} ms: {status:?}"
            );
        }
        node.front.assert_alive(rpc).await;
    }
}

#[tokio::test]
async fn a_change_goes_on_without_its_caller() {
    let node = Node::new().await;
    node.world
        .script
        .fault(When::Nth("network.attach", 1), How::Hang);
    let request = node.full_request("RunPodSandbox");
    let timeout = Some(Duration::from_millis(50));
    let status = node
        .front
        .call_within("RunPodSandbox", &request, timeout)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    node.world.script.wait_for("network.attach", "").await;
    node.world.script.release();
    let ready = json!({"filter": {"state": {"state": "SANDBOX_READY"}, "label_selector": {"app": "other"}}});
    let mut listed = node.ok("ListPodSandbox", ready.clone()).await;
    while listed == json!({}) {
        tokio::task::yield_now().await;
        listed = node.ok("ListPodSandbox", ready.clone()).await;
    }
}

#[tokio::test]
async fn messages_of_16_mebibytes_pass_and_no_longer_ones() {
    const LIMIT: usize = 16 << 20;
    let node = Node::new().await;
    let method = fake::method("ContainerStatus");
    let request = |id_length: usize| {
        fake::message(&method, &json!({"container_id": "x".repeat(id_length)})).unwrap()
    };
    let overhead = request(LIMIT).len() - LIMIT;
    for (case, length, want) in [
        ("the limit", LIMIT - overhead, Code::NotFound),
        ("a byte more", LIMIT - overhead + 1, Code::OutOfRange),
    ] {
        let status = node
            .front
            .send(&method, request(length), None)
            .await
            .expect_err(case);
        assert_eq!(
            status.code(),
            want,
            "{case}: {}",
            status.message().chars().take(100).collect::<String>()
        );
    }
    node.front.assert_alive("long messages").await;
    node.world.engine.set_exec(Exec::Answer(ExecOutput {
        stdout: vec![b'o'; LIMIT],
        stderr: vec![b'e'; LIMIT],
        exit_code: 0,
    }));
    let method = fake::method("ExecSync");
    let request = fake::message(&method, &node.full_request("ExecSync")).unwrap();
    let answer = node.front.send(&method, request, None).await.unwrap();
    assert!(answer.len() > 2 * LIMIT);
}

#[tokio::test]
async fn health_answers() {
    let node = Node::new().await;
    let mut health = tonic_health::pb::health_client::HealthClient::new(node.front.service());
    for service in ["", "runtime.v1.RuntimeService", "runtime.v1.ImageService"] {
        let request = tonic_health::pb::HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request).await.expect(service).into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service:?}");
    }
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let node = Node::new().await;
    let mut client =
        reflection::server_reflection_client::ServerReflectionClient::new(node.front.service());
    let request = reflection::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(
            reflection::server_reflection_request::MessageRequest::ListServices(String::new()),
        ),
    };
    let mut answers = client
        .server_reflection_info(tokio_stream::iter([request]))
        .await
        .unwrap()
        .into_inner();
    let answer = answers
        .message()
        .await
        .unwrap()
        .unwrap()
        .message_response
        .unwrap();
    let reflection::server_reflection_response::MessageResponse::ListServicesResponse(listed) =
        answer
    else {
        panic!("{answer:?}");
    };
    let names: Vec<String> = listed
        .service
        .into_iter()
        .map(|service| service.name)
        .collect();
    for service in ["runtime.v1.RuntimeService", "runtime.v1.ImageService"] {
        assert!(names.iter().any(|name| name == service), "{names:?}");
    }
}
