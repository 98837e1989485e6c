//! PodSandboxStatus and ListPodSandbox.

use std::collections::BTreeMap;

use serde_json::json;
use springline::error::Kind;
use springline::model::sandbox::{NamespaceMode, SandboxState};
use springline::runtime::sandbox::list::SandboxFilter;

use crate::assert_refused;
use crate::fake::{APP_IMAGE, How, When, World, container, pod};

async fn names(world: &World, filter: SandboxFilter) -> Vec<String> {
    let listed = world.runtime.list_pod_sandbox(&filter).await.unwrap();
    listed.into_iter().map(|s| s.metadata.name).collect()
}

#[tokio::test]
async fn status_tells_what_was_asked_for() {
    let world = World::new();
    let mut config = pod("web");
    config.metadata.attempt = 4;
    config.security.namespaces.pid = NamespaceMode::Node;
    let made = world.run(config.clone()).await;
    for id in [&made.id[..], &made.id[..8]] {
        let status = world.runtime.pod_sandbox_status(id).await.unwrap();
        assert_eq!(status.summary.id.as_str(), made.id);
        assert_eq!(status.summary.metadata, config.metadata);
        assert_eq!(status.summary.meta, config.meta);
        assert_eq!(status.summary.state, SandboxState::Ready);
        assert!(status.summary.created_at > 0);
        assert_eq!(
            status.addresses,
            ["172.17.0.2".parse::<std::net::IpAddr>().unwrap()]
        );
        assert_eq!(status.namespaces.network, NamespaceMode::Pod);
        assert_eq!(status.namespaces.ipc, NamespaceMode::Pod);
        assert_eq!(status.namespaces.pid, NamespaceMode::Node);
        assert!(status.pid > 0);
        assert!(status.files.unwrap().join("resolv.conf").is_file());
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("app")).await;
    for (case, id, kind, begins) in [
        ("missing", "0123456789ab", Kind::NotFound, "pod sandbox"),
        ("no ID", "../x", Kind::NotFound, "pod sandbox"),
        ("a container", id.as_str(), Kind::NotFound, "pod sandbox"),
        ("empty", "", Kind::InvalidArgument, "pod_sandbox_id"),
    ] {
        let result = world.runtime.pod_sandbox_status(id).await;
        assert_refused(case, result, kind, begins);
    }
}

#[tokio::test]
async fn filters_let_through_what_they_name() {
    let world = World::new();
    let a = world.run(pod("a")).await;
    let b = world.run(pod("b")).await;
    world.start(&a, &container("app")).await;
    world.runtime.stop_pod_sandbox(&b.id).await.unwrap();
    let filter = SandboxFilter::default;
    let label = |value: &str| SandboxFilter {
        labels: BTreeMap::from([("app".to_owned(), value.to_owned())]),
        ..filter()
    };
    for (case, filter, want) in [
        ("none, newest first", filter(), &["b", "a"][..]),
        (
            "ready",
            SandboxFilter {
                state: Some(SandboxState::Ready),
                ..filter()
            },
            &["a"],
        ),
        (
            "not ready",
            SandboxFilter {
                state: Some(SandboxState::NotReady),
                ..filter()
            },
            &["b"],
        ),
        (
            "short id",
            SandboxFilter {
                id: a.id[..6].to_owned(),
                ..filter()
            },
            &["a"],
        ),
        (
            "another id",
            SandboxFilter {
                id: "0".repeat(64),
                ..filter()
            },
            &[],
        ),
        ("label", label("b"), &["b"]),
        ("another label", label("c"), &[]),
    ] {
        assert_eq!(names(&world, filter).await, want, "{case}");
    }
    world.script.fault(When::Every("engine.list"), How::Refuse);
    let result = world.runtime.list_pod_sandbox(&filter()).await;
    result.expect_err("an engine that cannot list");
}

/// A pod that another adapter made is READY by that adapter's mark, and can be stopped and removed.
#[tokio::test]
async fn another_adapters_sandbox_is_ready_by_its_mark() {
    let world = World::new();
    let labels = json!({
        "io.kubernetes.docker.type": "podsandbox",
        "io.kubernetes.container.name": "POD",
        "app": "web",
    });
    let body = json!({"Image": APP_IMAGE, "Labels": labels});
    let name = "k8s_POD_web_default_uid-9_2";
    let id = world.engine.foreign(name, &body);
    world.engine.start_it(&id);
    let state = async || {
        let status = world.runtime.pod_sandbox_status(&id).await.unwrap();
        assert_eq!(status.summary.metadata.uid, "uid-9");
        assert_eq!(status.summary.metadata.attempt, 2);
        assert_eq!(
            status.summary.meta.labels,
            BTreeMap::from([("app".into(), "web".into())])
        );
        let listed = world
            .runtime
            .list_pod_sandbox(&SandboxFilter::default())
            .await
            .unwrap();
        assert_eq!(listed[0].state, status.summary.state);
        status.summary.state
    };
    assert_eq!(state().await, SandboxState::NotReady);
    let mark = r#"{"version":"v1","name":"web","namespace":"default","data":{},"checksum":1}"#;
    std::fs::write(world.foreign_marks().join(&id), mark).unwrap();
    assert_eq!(state().await, SandboxState::Ready);
    world.runtime.stop_pod_sandbox(&id).await.unwrap();
    assert_eq!(state().await, SandboxState::NotReady);
    world.runtime.remove_pod_sandbox(&id).await.unwrap();
    world.assert_clean("removed");
}

#[tokio::test]
async fn an_ambiguous_id_names_nothing() {
    let world = World::new();
    let mut made = 0;
    // Sixteen first digits: the seventeenth sandbox shares one.
    while made < 17 {
        world.run(pod(&format!("p{made}"))).await;
        made += 1;
    }
    let ids = world.engine.container_ids();
    let shared = ids
        .iter()
        .map(|id| &id[..1])
        .find(|first| ids.iter().filter(|id| id.starts_with(first)).count() > 1)
        .unwrap();
    let result = world.runtime.pod_sandbox_status(shared).await;
    assert_refused("ambiguous", result, Kind::InvalidArgument, "pod_sandbox_id");
    let result = world.runtime.remove_pod_sandbox(shared).await;
    assert_refused("ambiguous", result, Kind::InvalidArgument, "pod_sandbox_id");
    assert_eq!(world.engine.container_ids().len(), 17);
}
