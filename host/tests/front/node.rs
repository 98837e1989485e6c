//! A node to ask: a pod with a running container, the front over it, and a whole request for every RPC.

use serde_json::{Value, json};
use tonic::Code;

use crate::fake::{APP_IMAGE, Front, World};

/// What is implemented; README's table is held against the code elsewhere.
pub const IMPLEMENTED: [&str; 25] = [
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
    "Exec",
    "Attach",
    "PortForward",
    "ListImages",
    "ImageStatus",
    "PullImage",
    "RemoveImage",
    "ImageFsInfo",
];

pub fn pod_config(name: &str) -> Value {
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

pub fn container_config(name: &str) -> Value {
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
pub struct Node {
    pub world: World,
    pub front: Front,
    pub pod: String,
    pub container: String,
}

impl Node {
    pub async fn new() -> Self {
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

    pub async fn ok(&self, rpc: &str, request: Value) -> Value {
        self.front.call(rpc, &request).await.expect(rpc)
    }

    pub async fn code(&self, rpc: &str, request: Value) -> (Code, String) {
        let status = self.front.call(rpc, &request).await.expect_err(rpc);
        (status.code(), status.message().to_owned())
    }

    /// Removes what an answer says was made.
    pub async fn remove(&self, answer: &Value) {
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
    pub fn full_request(&self, rpc: &str) -> Value {
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
            "Exec" => json!({
                "container_id": self.container, "cmd": ["cat"], "tty": false, "stdin": true, "stdout": true, "stderr": true,
            }),
            "Attach" => {
                json!({"container_id": self.container, "tty": true, "stdin": true, "stdout": true})
            }
            "PortForward" => json!({"pod_sandbox_id": self.pod, "port": [80]}),
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
pub fn parts(document: &Value) -> Vec<String> {
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

pub fn without(document: &Value, part: &str) -> Value {
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
