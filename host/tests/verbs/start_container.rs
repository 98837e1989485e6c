//! StartContainer: the log first, then the process; a start that failed is told as such.

use springline::error::Kind;
use springline::model::container::{ContainerState, EngineState, REASON_CANNOT_RUN};
use springline::runtime::container::list::ContainerFilter;

use crate::assert_refused;
use crate::fake::{How, When, World, container, pod};

/// That list and status agree that the container could not be run, and when.
async fn assert_cannot_run(world: &World, id: &str, says: &str, case: &str) {
    let listed = world
        .runtime
        .list_containers(&ContainerFilter::default())
        .await
        .unwrap();
    let listed = listed.iter().find(|c| c.id.as_str() == id).expect(case);
    assert_eq!(listed.state, ContainerState::Exited, "{case}");
    let status = world.runtime.container_status(id).await.unwrap();
    let life = status.life;
    assert_eq!(life.state, ContainerState::Exited, "{case}");
    assert_eq!(life.reason, REASON_CANNOT_RUN, "{case}");
    assert_ne!(life.exit_code, 0, "{case}");
    // The kubelet's back-off is computed from them.
    assert!(life.started_at > 0, "{case}");
    assert_eq!(life.started_at, life.finished_at, "{case}");
    assert!(life.message.contains(says), "{case}: {}", life.message);
}

#[tokio::test]
async fn the_log_is_ready_before_the_process_runs() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("app")).await;
    world.runtime.start_container(&id[..12]).await.unwrap();
    let at = |what, on| world.script.position(what, on).unwrap();
    let path = "/var/log/pods/web/app/0.log";
    assert!(at("logs.prepare", path) < at("logs.follow", &id));
    assert!(at("logs.follow", &id) < at("engine.start", &id));
    let source = world.logs.followed().remove(&id).unwrap();
    assert_eq!(source.cri_log.to_str(), Some(path));
    // The engine names its file after the start only; before, its well-known place is right.
    assert_eq!(
        world.engine.look(&id).unwrap().log_file,
        Some(source.engine_log)
    );

    world.runtime.start_container(&id).await.expect("again");
    assert_eq!(
        world.script.count("engine.start"),
        2,
        "sandbox and container"
    );
    world.engine.set_state(&id, EngineState::Paused);
    world.runtime.start_container(&id).await.expect("paused");
}

#[tokio::test]
async fn an_unwritable_log_fails_before_the_process_runs() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("app")).await;
    for step in ["logs.prepare", "logs.follow"] {
        world.script.reset();
        world.script.fault(When::Nth(step, 0), How::Refuse);
        let result = world.runtime.start_container(&id).await;
        assert_refused(step, result, Kind::Internal, "container log");
        assert_eq!(world.script.count("engine.start"), 0, "{step}");
        let status = world.runtime.container_status(&id).await.unwrap();
        assert_eq!(status.life.state, ContainerState::Created, "{step}");
    }
    world.script.reset();
    world.runtime.start_container(&id).await.unwrap();
}

#[tokio::test]
async fn no_log_path_is_no_log() {
    let world = World::new();
    let mut no_directory = pod("web");
    no_directory.log_directory = String::new();
    let mut no_path = container("app");
    no_path.log_path = String::new();
    for (case, pod, container) in [
        ("no directory", no_directory, container("app")),
        ("no path", pod("other"), no_path),
    ] {
        let pod = world.run(pod).await;
        let id = world.start(&pod, &container).await;
        assert_eq!(world.script.count("logs.prepare"), 0, "{case}");
        assert!(world.logs.followed().is_empty(), "{case}");
        let status = world.runtime.container_status(&id).await.unwrap();
        assert_eq!(status.log_path, "", "{case}");
    }
}

#[tokio::test]
async fn a_failed_start_is_exited_in_list_and_status() {
    for (case, command, lose_sandbox, kind, says) in [
        (
            "no such program",
            "/no/such",
            None,
            Kind::InvalidArgument,
            "/no/such",
        ),
        (
            "the sandbox has ended",
            "sleep",
            Some(false),
            Kind::FailedPrecondition,
            "non running container",
        ),
        (
            "the sandbox is gone",
            "sleep",
            Some(true),
            Kind::FailedPrecondition,
            "No such container",
        ),
    ] {
        let mut world = World::new();
        let pod = world.run(pod("web")).await;
        let mut config = container("app");
        config.command = vec![command.to_owned()];
        let id = world.create(&pod, &config).await;
        match lose_sandbox {
            None => {}
            Some(false) => world.engine.exit(&pod.id, 0),
            Some(true) => world.engine.lose(&pod.id),
        }
        let result = world.runtime.start_container(&id).await;
        assert_refused(case, result, kind, "starting container");
        assert_cannot_run(&world, &id, says, case).await;
        assert!(world.logs.followed().is_empty(), "{case}");
        // The kubelet's back-off goes on through a restart: not even the times may change.
        let before = world.runtime.container_status(&id).await.unwrap();
        assert!(
            before.life.finished_at > before.summary.created_at,
            "{case}: when it was seen to fail"
        );
        world.restart();
        assert_cannot_run(&world, &id, says, case).await;
        let after = world.runtime.container_status(&id).await.unwrap();
        assert_eq!(after, before, "{case}");
        world.runtime.remove_container(&id).await.expect(case);
    }
}

/// The engine says neither when a start failed nor that it did, once the next one has gone well.
#[tokio::test]
async fn a_start_that_goes_well_after_all_is_running() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("app")).await;
    world.engine.exit(&pod.id, 0);
    world.runtime.start_container(&id).await.unwrap_err();
    let status = world.runtime.container_status(&id).await.unwrap();
    assert!(
        status.life.finished_at > status.summary.created_at,
        "the time at which it was seen to fail"
    );
    world.engine.start_it(&pod.id);
    world.runtime.start_container(&id).await.unwrap();
    let status = world.runtime.container_status(&id).await.unwrap();
    assert_eq!(status.life.state, ContainerState::Running);
    assert_eq!(status.life.finished_at, 0);
    assert!(world.logs.followed().contains_key(&id));
}

/// CRI's life of a container has one run.
#[tokio::test]
async fn what_has_ended_is_not_started_again() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    world.engine.exit(&id, 0);
    let result = world.runtime.start_container(&id).await;
    assert_refused("ended", result, Kind::FailedPrecondition, "container");
    let status = world.runtime.container_status(&id).await.unwrap();
    assert_eq!(status.life.state, ContainerState::Exited);
}

#[tokio::test]
async fn what_is_not_there_cannot_be_started() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    for (case, id, kind, begins) in [
        ("missing", "0123456789ab", Kind::NotFound, "container"),
        ("no ID", "../x", Kind::NotFound, "container"),
        ("a sandbox", pod.id.as_str(), Kind::NotFound, "container"),
        ("empty", "", Kind::InvalidArgument, "container_id"),
    ] {
        let result = world.runtime.start_container(id).await;
        assert_refused(case, result, kind, begins);
    }
}
