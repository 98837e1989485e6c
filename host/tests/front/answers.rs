//! What the answers say, and their codes when something is not there.

use serde_json::{Value, json};
use springline::runtime::ports::{EngineError, ExecSpec, StreamSpec};
use tonic::Code;

use crate::fake::{Asked, How, When};
use crate::node::{Node, pod_config};

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
            "Exec",
            json!({"container_id": id, "cmd": ["true"], "stdout": true}),
        ),
        ("Attach", json!({"container_id": id, "stdout": true})),
        ("PortForward", json!({"pod_sandbox_id": id})),
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
    // What the kubelet and crictl ask first must be answered, or they never get to see what is wrong.
    let version = node.ok("Version", json!({})).await;
    assert_eq!(version["runtime_version"], "0.0.0-unknown");
    for rpc in [
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

/// What is asked for reaches the streaming server whole, and its URL the caller.
#[tokio::test]
async fn urls_of_streams() {
    let node = Node::new().await;
    let exec = ExecSpec {
        cmd: vec!["cat".into()],
        streams: StreamSpec {
            stdin: true,
            stdout: true,
            stderr: true,
            tty: false,
        },
    };
    let terminal = StreamSpec {
        stderr: false,
        tty: true,
        ..exec.streams
    };
    let (container, pod) = (node.container.clone(), node.pod.clone());
    let wanted = [
        ("Exec", Asked::Exec(container.clone(), exec)),
        ("Attach", Asked::Attach(container, terminal)),
        ("PortForward", Asked::PortForward(pod, vec![80])),
    ];
    for (number, (rpc, asked)) in wanted.into_iter().enumerate() {
        let answer = node.ok(rpc, node.full_request(rpc)).await;
        let url = format!("http://streams.test/{number}");
        assert_eq!(answer, json!({"url": url}), "{rpc}");
        assert_eq!(node.world.streams.asked().last(), Some(&asked), "{rpc}");
    }
}
