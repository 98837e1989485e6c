//! Sizes of messages, and bytes that are none.

use serde_json::json;
use springline::runtime::ports::ExecOutput;
use tonic::Code;

use crate::fake::{Exec, message, method};
use crate::node::{IMPLEMENTED, Node};

#[tokio::test]
async fn bytes_that_are_no_message_are_an_answer() {
    let node = Node::new().await;
    for rpc in IMPLEMENTED {
        let method = method(rpc);
        let result = node.front.send(&method, vec![0xff; 64], None).await;
        let status = result.expect_err(rpc);
        assert_ne!(status.code(), Code::Unknown, "{rpc}: {status:?}");
    }
    node.front.assert_alive("garbage").await;
}

#[tokio::test]
async fn messages_of_16_mebibytes_pass_and_no_longer_ones() {
    const LIMIT: usize = 16 << 20;
    let node = Node::new().await;
    let status = method("ContainerStatus");
    let request = |id_length: usize| {
        message(&status, &json!({"container_id": "x".repeat(id_length)})).unwrap()
    };
    let overhead = request(LIMIT).len() - LIMIT;
    for (case, length, want) in [
        ("the limit", LIMIT - overhead, Code::NotFound),
        ("a byte more", LIMIT - overhead + 1, Code::OutOfRange),
    ] {
        let status = node
            .front
            .send(&status, request(length), None)
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
    let exec = method("ExecSync");
    let request = message(&exec, &node.full_request("ExecSync")).unwrap();
    let answer = node.front.send(&exec, request, None).await.unwrap();
    // gRPC clients of the kubelet take no more, so an answer is cut to fit.
    assert!(
        answer.len() <= LIMIT && answer.len() > LIMIT - 128,
        "{}",
        answer.len()
    );
}
