//! RemovePodSandbox: everything in it, then what is kept of it; nothing is forgotten that a repeat needs.

use springline::error::Kind;
use springline::runtime::ports::{EngineError, SandboxStore};

use crate::assert_refused;
use crate::fake::{How, When, World, container, pod};

#[tokio::test]
async fn running_or_stopped_everything_goes() {
    for stopped in [false, true] {
        let case = format!("stopped: {stopped}");
        let world = World::new();
        let pod = world.run(pod("web")).await;
        let running = world.start(&pod, &container("a")).await;
        world.create(&pod, &container("b")).await;
        if stopped {
            world.runtime.stop_pod_sandbox(&pod.id).await.unwrap();
        }
        world.script.reset();
        world
            .runtime
            .remove_pod_sandbox(&pod.id[..10])
            .await
            .expect(&case);
        world.assert_clean(&case);
        assert!(world.logs.followed().is_empty(), "{case}");
        // The engine's log goes with the container, so ours is complete before.
        let forgotten = world.script.position("logs.forget", &running);
        assert!(
            forgotten.is_some() && forgotten < world.script.position("engine.remove", &running)
        );
        let last = world.script.position("store.remove", &pod.id);
        assert!(
            last > world.script.position("engine.remove", &pod.id),
            "{case}"
        );
        world
            .runtime
            .remove_pod_sandbox(&pod.id)
            .await
            .expect("again");
    }
}

/// Every call fails in turn; the repeat then finds everything it needs, also after a restart.
#[tokio::test]
async fn a_removal_that_fails_can_be_repeated() {
    let made = async || {
        let world = World::new();
        let pod = world.run(pod("web")).await;
        world.start(&pod, &container("a")).await;
        world.script.reset();
        (world, pod.id)
    };
    let calls = {
        let (world, id) = made().await;
        world.runtime.remove_pod_sandbox(&id).await.unwrap();
        world.script.calls()
    };
    for how in [How::Refuse, How::LoseAnswer] {
        for (index, call) in calls.iter().enumerate() {
            let case = format!("{how:?} at {index}, {} {}", call.what, call.on);
            let (mut world, id) = made().await;
            world.script.fault(When::Call(index), how.clone());
            let result = world.runtime.remove_pod_sandbox(&id).await;
            let on_the_engine = !world.engine.container_ids().is_empty();
            if call.what.starts_with("logs.") {
                result.expect(&case);
            } else {
                result.expect_err(&case);
                let kept = world.store.get(&id).is_some();
                assert!(kept || !on_the_engine, "{case}: the record went first");
            }
            world.script.reset();
            world.restart();
            world.runtime.remove_pod_sandbox(&id).await.expect(&case);
            // A record without its sandbox is the start's to sweep.
            world.runtime.recover().await.expect(&case);
            world.assert_clean(&case);
        }
    }
}

#[tokio::test]
async fn what_the_engine_lost_is_swept_by_its_removal() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    world.engine.lose(&pod.id);
    world.runtime.stop_pod_sandbox(&pod.id).await.unwrap();
    world.runtime.remove_pod_sandbox(&pod.id).await.unwrap();
    world.assert_clean("lost");
}

#[tokio::test]
async fn missing_sandboxes_are_removed_and_others_left() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("a")).await;
    for (case, id) in [
        ("missing", "0123456789ab"),
        ("no ID", "a/b"),
        ("a container", id.as_str()),
    ] {
        world.runtime.remove_pod_sandbox(id).await.expect(case);
    }
    let empty = world.runtime.remove_pod_sandbox("").await;
    assert_refused("empty", empty, Kind::InvalidArgument, "pod_sandbox_id");
    assert_eq!(world.engine.container_ids().len(), 2);
    let gone = How::Say(EngineError::NotFound("No such container".into()));
    world.script.fault(When::Every("engine.remove"), gone);
    world
        .runtime
        .remove_pod_sandbox(&pod.id)
        .await
        .expect("gone meanwhile");
    world.assert_no_traces("gone meanwhile");
}
