//! RunPodSandbox under a name that is taken: adopting, replacing, stepping aside; and a daemon that is killed at any instant.

use std::slice::from_ref;
use std::sync::Arc;

use serde_json::json;
use springline::model::sandbox::{SandboxConfig, SandboxState, SandboxSummary};
use springline::runtime::ports::SandboxStore;
use springline::runtime::sandbox::list::SandboxFilter;

use crate::fake::{APP_IMAGE, How, When, World, container, pod};

const NAME: &str = "k8s_POD_web_default_uid-web_0";

async fn list(world: &World) -> Vec<SandboxSummary> {
    let all = SandboxFilter::default();
    world.runtime.list_pod_sandbox(&all).await.unwrap()
}

/// The daemon is killed inside RunPodSandbox at a call, and started again.
async fn killed_at(what: &'static str, nth: usize) -> World {
    let mut world = World::new();
    world.script.fault(When::Nth(what, nth), How::Hang);
    let runtime = Arc::clone(&world.runtime);
    let request = world.run_request(&pod("web"));
    let running = tokio::spawn(async move { runtime.run_pod_sandbox(request).await });
    while world.script.count(what) <= nth {
        tokio::task::yield_now().await;
    }
    running.abort();
    running.await.unwrap_err();
    world.script.reset();
    world.restart();
    world
}

#[tokio::test]
async fn what_was_made_and_never_started_is_adopted() {
    for (case, what, nth) in [
        ("before its record", "store.put", 0),
        ("before its start", "engine.start", 0),
    ] {
        let world = killed_at(what, nth).await;
        let before = world.engine.container_ids();
        let made = world.run(pod("web")).await;
        assert_eq!(before, from_ref(&made.id), "{case}");
        assert_eq!(list(&world).await[0].state, SandboxState::Ready, "{case}");
        // It shows the file under the key that it was made with; no other is left.
        let body = world.engine.body(&made.id);
        let source = body["HostConfig"]["Mounts"][0]["Source"].as_str().unwrap();
        assert!(
            std::fs::read_to_string(source)
                .unwrap()
                .contains("10.96.0.10")
        );
        let keys = world.store.file_keys();
        assert_eq!(keys.len(), 1, "{case}");
        assert!(source.contains(&keys[0]), "{case}");
        world.runtime.remove_pod_sandbox(&made.id).await.unwrap();
        world.assert_clean(case);
    }
}

#[tokio::test]
async fn another_configuration_is_not_adopted() {
    let world = killed_at("engine.start", 0).await;
    let before = world.engine.container_ids();
    let mut config = pod("web");
    config.hostname = "other".into();
    let made = world.run(config).await;
    assert_eq!(world.engine.container_ids(), from_ref(&made.id));
    assert_ne!(before, from_ref(&made.id));
    assert_eq!(world.store.ids(), from_ref(&made.id));
    assert_eq!(world.store.file_keys().len(), 1);
}

#[tokio::test]
async fn a_dead_holder_is_replaced_with_all_that_was_kept_of_it() {
    let world = World::new();
    let dead = world.run(pod("web")).await;
    world.engine.exit(&dead.id, 0);
    let made = world.run(pod("web")).await;
    assert_ne!(dead.id, made.id);
    assert_eq!(world.engine.container_ids(), from_ref(&made.id));
    assert_eq!(world.engine.look(&made.id).unwrap().name, NAME);
    assert_eq!(world.store.ids(), from_ref(&made.id));
    assert_eq!(world.store.file_keys().len(), 1);
    assert_eq!(world.network.attached(), [made.id].into());
}

/// The dead holder goes, and then a later step fails: nothing of either is left.
#[tokio::test]
async fn a_replacement_that_fails_leaves_nothing_of_the_dead() {
    for (what, nth) in [
        ("engine.create", 1),
        ("store.put", 0),
        ("engine.start", 0),
        ("network.attach", 0),
        ("store.put", 1),
    ] {
        let case = format!("{what} {nth}");
        let world = World::new();
        let dead = world.run(pod("web")).await;
        world.engine.exit(&dead.id, 0);
        world.script.reset();
        world.script.fault(When::Nth(what, nth), How::Refuse);
        let request = world.run_request(&pod("web"));
        let result = world.runtime.run_pod_sandbox(request).await;
        result.expect_err(&case);
        world.assert_clean(&case);
    }
}

#[tokio::test]
async fn what_may_not_be_touched_is_left_alone() {
    let foreign = json!({"Image": APP_IMAGE, "HostConfig": {"NetworkMode": "none"}});
    for (case, ours, runs) in [
        ("ready", true, true),
        ("foreign and running", false, true),
        ("foreign and dead", false, false),
    ] {
        let world = World::new();
        let holder = if ours {
            world.run(pod("web")).await.id
        } else {
            world.engine.foreign(NAME, &foreign)
        };
        if !ours && runs {
            world.engine.start_it(&holder);
        }
        let before = world.engine.look(&holder).unwrap();
        // The same identity with another configuration.
        let made = world
            .run(SandboxConfig {
                hostname: "other".into(),
                ..pod("web")
            })
            .await;
        assert_eq!(world.engine.look(&holder).unwrap(), before, "{case}");
        let name = world.engine.look(&made.id).unwrap().name;
        let suffix = name.strip_prefix(&format!("{NAME}_")).expect(case);
        assert_eq!(suffix.len(), 8, "{case}: {name}");
        let listed = list(&world).await;
        let shown = listed.iter().find(|s| s.id.as_str() == made.id).unwrap();
        assert_eq!(shown.metadata, made.config.metadata, "{case}");
        assert_eq!(shown.state, SandboxState::Ready, "{case}");
        assert_eq!(listed.len(), 1 + usize::from(ours), "{case}");
    }
}

/// The answer of the first one was lost: the same request again gives the same sandbox, as long as nobody uses it.
#[tokio::test]
async fn a_lost_answer_is_given_again() {
    let world = World::new();
    let first = world.run(pod("web")).await;
    let again = world.run(pod("web")).await.id;
    assert_eq!(again, first.id);
    assert_eq!(list(&world).await.len(), 1);
    assert_eq!(world.store.file_keys().len(), 1, "one resolv.conf");
    world.create(&first, &container("app")).await;
    let third = world.run(pod("web")).await.id;
    assert_ne!(third, first.id, "one in use is somebody's");
}

/// Killed before and after every call: the next daemon makes the pod, one of it is READY, and all can be removed.
#[tokio::test]
async fn a_daemon_killed_at_any_call_costs_nothing() {
    let calls = {
        let world = World::new();
        world.run(pod("web")).await;
        world.script.kinds()
    };
    for (index, what) in calls.iter().enumerate() {
        let nth = calls[..index].iter().filter(|call| call == &what).count();
        let case = format!("killed at {index}, {what} {nth}");
        let world = killed_at(what, nth).await;
        for sandbox in list(&world).await {
            assert_eq!(sandbox.state, SandboxState::NotReady, "{case}");
        }
        world.runtime.recover().await.expect(&case);
        let made = world.run(pod("web")).await;
        let listed = list(&world).await;
        let ready: Vec<_> = listed
            .iter()
            .filter(|sandbox| sandbox.state == SandboxState::Ready)
            .map(|sandbox| sandbox.id.to_string())
            .collect();
        assert_eq!(ready, [made.id], "{case}");
        for sandbox in listed {
            let id = sandbox.id.as_str();
            world.runtime.stop_pod_sandbox(id).await.expect(&case);
            world.runtime.remove_pod_sandbox(id).await.expect(&case);
        }
        world.assert_clean(&case);
    }
}
