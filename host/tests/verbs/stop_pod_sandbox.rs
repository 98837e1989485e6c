//! StopPodSandbox: every container first, then the network, then the sandbox; and again.

use std::sync::Arc;

use springline::error::Kind;
use springline::model::container::EngineState;
use springline::model::sandbox::{NamespaceMode, SandboxState};
use springline::runtime::ports::EngineError;

use crate::assert_refused;
use crate::fake::{How, When, World, container, pod};

fn state(world: &World, id: &str) -> EngineState {
    world.engine.look(id).unwrap().life.engine_state
}

#[tokio::test]
async fn every_container_stops_whatever_its_pid_namespace() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let mut ids = Vec::new();
    for (name, pid) in [
        ("shared", NamespaceMode::Pod),
        ("own", NamespaceMode::Container),
        ("nodes", NamespaceMode::Node),
    ] {
        let mut config = container(name);
        config.security.namespaces.pid = pid;
        ids.push(world.start(&pod, &config).await);
    }
    let never_started = world.create(&pod, &container("later")).await;
    let elsewhere = world.run(crate::fake::pod("other")).await;
    let other = world.start(&elsewhere, &container("app")).await;
    world.script.reset();

    world.runtime.stop_pod_sandbox(&pod.id).await.unwrap();
    for id in &ids {
        assert_eq!(state(&world, id), EngineState::Exited);
        // The kubelet reads the log once EXITED shows.
        assert!(
            world.script.position("logs.complete", id) > world.script.position("engine.stop", id)
        );
        assert!(
            world.script.position("engine.stop", id)
                < world.script.position("engine.stop", &pod.id)
        );
    }
    assert_eq!(state(&world, &never_started), EngineState::Created);
    assert_eq!(state(&world, &other), EngineState::Running);
    let detach = world.script.position("network.detach", &pod.id);
    assert!(detach.is_some() && detach < world.script.position("engine.stop", &pod.id));
    let status = world.runtime.pod_sandbox_status(&pod.id).await.unwrap();
    assert_eq!(status.summary.state, SandboxState::NotReady);
    assert_eq!(world.network.attached(), [elsewhere.id].into());

    world
        .runtime
        .stop_pod_sandbox(&pod.id)
        .await
        .expect("again");
    world
        .runtime
        .stop_pod_sandbox(&pod.id[..12])
        .await
        .expect("short");
}

#[tokio::test]
async fn one_that_hangs_does_not_keep_the_others() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let stuck = world.start(&pod, &container("a")).await;
    let other = world.start(&pod, &container("b")).await;
    let third = world.start(&pod, &container("c")).await;
    world
        .script
        .fault(When::On("engine.stop", stuck.clone()), How::Hang);
    let runtime = Arc::clone(&world.runtime);
    let id = pod.id.clone();
    let stopping = tokio::spawn(async move { runtime.stop_pod_sandbox(&id).await });
    for id in [&other, &third] {
        world.script.wait_for("logs.complete", id).await;
        assert_eq!(state(&world, id), EngineState::Exited);
    }
    assert!(!stopping.is_finished());
    assert_eq!(state(&world, &stuck), EngineState::Running);
    world.script.release();
    stopping.await.unwrap().unwrap();
    assert_eq!(state(&world, &stuck), EngineState::Exited);
    assert_eq!(state(&world, &pod.id), EngineState::Exited);
}

#[tokio::test]
async fn one_that_fails_does_not_keep_the_others() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let bad = world.start(&pod, &container("a")).await;
    let other = world.start(&pod, &container("b")).await;
    let say = How::Say(EngineError::Failed("stuck in D state".into()));
    world
        .script
        .fault(When::On("engine.stop", bad.clone()), say);
    let result = world.runtime.stop_pod_sandbox(&pod.id).await;
    assert_refused("bad", result, Kind::Internal, "stopping container");
    assert_eq!(state(&world, &other), EngineState::Exited);
    world.script.reset();
    world
        .runtime
        .stop_pod_sandbox(&pod.id)
        .await
        .expect("again");
    assert_eq!(state(&world, &bad), EngineState::Exited);
    assert_eq!(state(&world, &pod.id), EngineState::Exited);
}

#[tokio::test]
async fn what_goes_away_meanwhile_is_fine() {
    for vanish in ["engine.stop"] {
        let world = World::new();
        let pod = world.run(pod("web")).await;
        world.start(&pod, &container("a")).await;
        let gone = How::Say(EngineError::NotFound("No such container".into()));
        world.script.fault(When::Every(vanish), gone);
        world.runtime.stop_pod_sandbox(&pod.id).await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_sandbox_is_stopped_and_a_bad_id_is_not() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("a")).await;
    for (case, id) in [
        ("missing", "0123456789ab"),
        ("no ID", "../x"),
        ("a name", "k8s_POD_web_default_uid-web_0"),
        ("a container", id.as_str()),
    ] {
        world.runtime.stop_pod_sandbox(id).await.expect(case);
    }
    let empty = world.runtime.stop_pod_sandbox("").await;
    assert_refused("empty", empty, Kind::InvalidArgument, "pod_sandbox_id");
    assert_eq!(state(&world, &pod.id), EngineState::Running);
    // An engine that does not answer does not say that the sandbox is gone.
    world
        .script
        .fault(When::Every("engine.inspect"), How::Refuse);
    let unknown = world.runtime.stop_pod_sandbox(&pod.id).await;
    assert_refused(
        "engine fails",
        unknown,
        Kind::Internal,
        "inspecting pod sandbox",
    );
}
