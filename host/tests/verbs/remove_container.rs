//! RemoveContainer: forced, its log complete before the engine's goes.

use springline::error::Kind;
use springline::model::container::EngineState;
use springline::runtime::ports::EngineError;

use crate::assert_refused;
use crate::fake::{How, When, World, container, pod};

#[tokio::test]
async fn in_any_state_it_goes_after_its_log_is_complete() {
    for state in [
        EngineState::Created,
        EngineState::Running,
        EngineState::Paused,
        EngineState::Restarting,
        EngineState::Exited,
        EngineState::Dead,
        EngineState::Removing,
        EngineState::Other,
    ] {
        let world = World::new();
        let pod = world.run(pod("web")).await;
        let id = world.start(&pod, &container("app")).await;
        world.engine.set_state(&id, state);
        world.script.reset();
        world.runtime.remove_container(&id[..12]).await.unwrap();
        assert_eq!(world.engine.look(&id), None, "{state:?}");
        let at = |what| world.script.position(what, &id);
        assert!(at("logs.forget").is_some(), "{state:?}");
        assert!(at("logs.forget") < at("engine.remove"), "{state:?}");
        // What still writes is stopped first, or the end of its log would be lost.
        let runs = matches!(
            state,
            EngineState::Running | EngineState::Paused | EngineState::Restarting
        );
        assert_eq!(at("engine.stop").is_some(), runs, "{state:?}");
        assert!(at("engine.stop") < at("logs.forget"), "{state:?}");
        world.runtime.remove_container(&id).await.expect("again");
        assert!(world.engine.look(&pod.id).is_some(), "{state:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_removed() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    for (case, id) in [
        ("missing", "0123456789ab"),
        ("no ID", "a/b"),
        ("a sandbox", pod.id.as_str()),
    ] {
        world.runtime.remove_container(id).await.expect(case);
    }
    assert!(world.engine.look(&pod.id).is_some());
    let empty = world.runtime.remove_container("").await;
    assert_refused("empty", empty, Kind::InvalidArgument, "container_id");

    let id = world.start(&pod, &container("app")).await;
    let gone = || How::Say(EngineError::NotFound("No such container".into()));
    world.script.fault(When::Every("engine.stop"), gone());
    world.script.fault(When::Every("engine.remove"), gone());
    world
        .runtime
        .remove_container(&id)
        .await
        .expect("gone meanwhile");
}

#[tokio::test]
async fn a_removal_that_fails_can_be_repeated() {
    for step in ["engine.inspect", "engine.stop", "engine.remove"] {
        for how in [How::Refuse, How::LoseAnswer] {
            let world = World::new();
            let pod = world.run(pod("web")).await;
            let id = world.start(&pod, &container("app")).await;
            world.script.reset();
            world.script.fault(When::Nth(step, 0), how.clone());
            let result = world.runtime.remove_container(&id).await;
            result.expect_err(step);
            world.runtime.remove_container(&id).await.expect(step);
            assert_eq!(world.engine.look(&id), None, "{step} {how:?}");
        }
    }
}
