//! What a daemon does at its start: logs go on, and what nobody needs any more is swept.

use std::slice::from_ref;
use std::sync::Arc;

use springline::model::sandbox::SandboxState;
use springline::runtime::ports::SandboxStore;
use springline::runtime::sandbox::list::SandboxFilter;

use crate::fake::{How, When, World, container, pod};

#[tokio::test]
async fn a_restart_changes_nothing_for_running_pods() {
    let mut world = World::new();
    let pod = world.run(pod("web")).await;
    let running = world.start(&pod, &container("running")).await;
    let ended = world.start(&pod, &container("ended")).await;
    let created = world.create(&pod, &container("created")).await;
    let mut silent = container("silent");
    silent.log_path = String::new();
    world.start(&pod, &silent).await;
    world.engine.exit(&ended, 0);
    let sources = world.logs.followed();
    let before: Vec<_> = world.engine.container_ids();
    world.script.reset();
    world.restart();
    world.runtime.recover().await.unwrap();
    assert_eq!(world.engine.container_ids(), before);
    for changes in [
        "engine.start",
        "engine.stop",
        "engine.remove",
        "engine.create",
    ] {
        assert_eq!(world.script.count(changes), 0, "{changes}");
    }
    // What it logged while nobody followed is still to be written, so the ended one is followed too.
    assert_eq!(world.logs.followed(), sources);
    let followed = world.logs.followed();
    assert!(followed.contains_key(&running) && followed.contains_key(&ended));
    assert!(!followed.contains_key(&created));
    let status = world.runtime.pod_sandbox_status(&pod.id).await.unwrap();
    assert_eq!(status.summary.state, SandboxState::Ready);
    assert_eq!(status.summary.metadata, pod.config.metadata);
}

#[tokio::test]
async fn what_the_engine_lost_meanwhile_is_swept() {
    let mut world = World::new();
    let lost = world.run(pod("lost")).await;
    let kept = world.run(pod("kept")).await;
    world.engine.lose(&lost.id);
    world
        .store
        .put_file("orphan", "resolv.conf", b"")
        .await
        .unwrap();
    world.restart();
    world.runtime.recover().await.unwrap();
    assert_eq!(world.store.ids(), from_ref(&kept.id));
    let body = world.engine.body(&kept.id);
    let source = body["HostConfig"]["Mounts"][0]["Source"].as_str().unwrap();
    assert!(std::path::Path::new(source).is_file());
    assert_eq!(world.store.file_keys().len(), 1);
    assert_eq!(world.network.attached(), [kept.id].into());
}

/// A pod may be in the making while recovery runs: the engine may have been slow to come up.
#[tokio::test]
async fn what_is_being_made_is_not_swept() {
    for step in [
        "engine.create",
        "store.put",
        "engine.start",
        "network.attach",
    ] {
        let mut world = World::new();
        world.restart();
        world.script.fault(When::Nth(step, 0), How::Hang);
        let runtime = Arc::clone(&world.runtime);
        let request = world.run_request(&pod("web"));
        let running = tokio::spawn(async move { runtime.run_pod_sandbox(request).await });
        world.script.wait_for(step, "").await;
        world.runtime.recover().await.expect(step);
        world.script.release();
        let id = running.await.unwrap().expect(step);
        let status = world.runtime.pod_sandbox_status(id.as_str()).await.unwrap();
        assert_eq!(status.summary.state, SandboxState::Ready, "{step}");
        assert!(
            status.files.unwrap().join("resolv.conf").is_file(),
            "{step}"
        );
    }
}

#[tokio::test]
async fn an_engine_that_is_not_there_yet_is_asked_again() {
    let mut world = World::new();
    let lost = world.run(pod("lost")).await;
    world.engine.lose(&lost.id);
    world.restart();
    world.script.fault(When::Every("engine.list"), How::Refuse);
    world.runtime.recover().await.unwrap_err();
    assert_eq!(world.store.ids(), [lost.id], "nothing is swept on a guess");
    world.script.release();
    world.runtime.recover().await.unwrap();
    world.assert_clean("asked again");
}

/// One pod whose network cannot be taken down now keeps its own record, and no other's.
#[tokio::test]
async fn one_that_cannot_be_swept_does_not_keep_the_others() {
    for stuck in ["a", "b"] {
        let mut world = World::new();
        let mut kept = Vec::new();
        for name in ["a", "b"] {
            let pod = world.run(pod(name)).await;
            world.engine.lose(&pod.id);
            if name == stuck {
                let detaches = When::On("network.detach", pod.id.clone());
                world.script.fault(detaches, How::Refuse);
                kept.push(pod.id);
            }
        }
        world.restart();
        world.runtime.recover().await.expect_err(stuck);
        assert_eq!(world.store.ids(), kept, "{stuck}");
        world.script.release();
        world.runtime.recover().await.expect(stuck);
        world.assert_clean(stuck);
    }
}

#[tokio::test]
async fn a_log_that_cannot_be_followed_does_not_stop_the_rest() {
    let mut world = World::new();
    let pod = world.run(pod("web")).await;
    let bad = world.start(&pod, &container("bad")).await;
    let unreadable = world.start(&pod, &container("unreadable")).await;
    let good = world.start(&pod, &container("good")).await;
    world.restart();
    world
        .script
        .fault(When::On("logs.follow", bad), How::Refuse);
    world
        .script
        .fault(When::On("engine.inspect", unreadable), How::Refuse);
    world.runtime.recover().await.unwrap();
    assert_eq!(
        world.logs.followed().into_keys().collect::<Vec<_>>(),
        [good]
    );
    let listed = world
        .runtime
        .list_pod_sandbox(&SandboxFilter::default())
        .await
        .unwrap();
    assert_eq!(listed[0].state, SandboxState::Ready);
}
