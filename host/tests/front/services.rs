//! What is served: health, reflection, and Unimplemented for the RPCs that are not done yet.

use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_reflection::pb::v1 as reflection;

use crate::fake::descriptors;
use crate::node::{IMPLEMENTED, Node};

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
