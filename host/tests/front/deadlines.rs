//! The caller's deadline, and what goes on without its caller.

use std::time::Duration;

use serde_json::json;
use tonic::Code;

use crate::fake::{How, When};
use crate::node::Node;

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
