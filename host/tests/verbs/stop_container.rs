//! StopContainer: with its grace period, its log complete when it answers; what has ended or is gone is fine.

use std::time::Duration;

use springline::error::Kind;
use springline::model::container::{ContainerState, EngineState};

use crate::assert_refused;
use crate::fake::{How, When, World, container, pod};

#[tokio::test]
async fn the_grace_period_is_the_callers() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    let grace = Duration::from_secs(30);
    world
        .runtime
        .stop_container(&id[..12], grace)
        .await
        .unwrap();
    assert_eq!(world.engine.graces(), [(id.clone(), grace)]);
    assert!(
        world.script.position("logs.complete", &id) > world.script.position("engine.stop", &id)
    );
    let status = world.runtime.container_status(&id).await.unwrap();
    assert_eq!(status.life.state, ContainerState::Exited);
    world
        .runtime
        .stop_container(&id, grace)
        .await
        .expect("again");
}

#[tokio::test]
async fn what_does_not_run_is_stopped() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let created = world.create(&pod, &container("app")).await;
    for (case, id) in [
        ("created", created.as_str()),
        ("missing", "0123456789ab"),
        ("no ID", "../x"),
        ("a sandbox", pod.id.as_str()),
    ] {
        let result = world.runtime.stop_container(id, Duration::ZERO).await;
        result.expect(case);
        assert!(world.engine.graces().is_empty(), "{case}");
    }
    let status = world.runtime.container_status(&created).await.unwrap();
    assert_eq!(status.life.state, ContainerState::Created);
    let empty = world.runtime.stop_container("", Duration::ZERO).await;
    assert_refused("empty", empty, Kind::InvalidArgument, "container_id");
}

#[tokio::test]
async fn what_is_in_an_odd_state_is_stopped_too() {
    for state in [
        EngineState::Paused,
        EngineState::Restarting,
        EngineState::Other,
    ] {
        let world = World::new();
        let pod = world.run(pod("web")).await;
        let id = world.start(&pod, &container("app")).await;
        world.engine.set_state(&id, state);
        let result = world.runtime.stop_container(&id, Duration::ZERO).await;
        result.unwrap();
        assert_eq!(world.engine.graces().len(), 1, "{state:?}");
    }
}

#[tokio::test]
async fn a_stop_that_fails_says_so() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    world.script.fault(When::Nth("engine.stop", 0), How::Refuse);
    let result = world.runtime.stop_container(&id, Duration::ZERO).await;
    assert_refused("refused", result, Kind::Internal, "stopping container");
    assert_eq!(world.script.count("logs.complete"), 0);
    let result = world.runtime.stop_container(&id, Duration::ZERO).await;
    result.expect("again");
}
