//! ContainerStatus: states and their reasons from facts, and what the container was asked to be.

use std::sync::Arc;

use serde_json::json;
use springline::error::Kind;
use springline::model::container::{ContainerState, EngineState};
use springline::model::mount::{Mount, MountSource, Propagation};
use springline::model::resources::LinuxResources;

use crate::assert_refused;
use crate::fake::{How, StoredImage, When, World, container, pod};

#[tokio::test]
async fn states_and_reasons_follow_from_facts() {
    type End = fn(&World, &str);
    let cases: [(&str, bool, End, ContainerState, i32, &str); 6] = [
        ("created", false, |_, _| {}, ContainerState::Created, 0, ""),
        ("running", true, |_, _| {}, ContainerState::Running, 0, ""),
        (
            "paused",
            true,
            |world, id| world.engine.set_state(id, EngineState::Paused),
            ContainerState::Running,
            0,
            "Paused",
        ),
        (
            "completed",
            true,
            |world, id| world.engine.exit(id, 0),
            ContainerState::Exited,
            0,
            "Completed",
        ),
        (
            "failed",
            true,
            |world, id| world.engine.exit(id, 3),
            ContainerState::Exited,
            3,
            "Error",
        ),
        (
            "out of memory",
            true,
            |world, id| world.engine.kill_for_memory(id),
            ContainerState::Exited,
            137,
            "OOMKilled",
        ),
    ];
    for (case, start, end, state, exit_code, reason) in cases {
        let world = World::new();
        let pod = world.run(pod("web")).await;
        let id = world.create(&pod, &container("app")).await;
        if start {
            world.runtime.start_container(&id).await.unwrap();
        }
        end(&world, &id);
        let status = world.runtime.container_status(&id[..12]).await.unwrap();
        let life = status.life;
        assert_eq!(
            (life.state, life.exit_code, life.reason),
            (state, exit_code, reason),
            "{case}"
        );
        assert!(status.summary.created_at > 0, "{case}");
        assert_eq!(life.started_at > 0, start, "{case}");
        let exited = state == ContainerState::Exited;
        assert_eq!(life.finished_at > 0, exited, "{case}");
        assert_eq!(status.pid > 0, state == ContainerState::Running, "{case}");
    }
}

/// The kubelet reads the tail of the log as soon as it sees EXITED.
#[tokio::test]
async fn exited_shows_once_the_log_is_complete() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    world.engine.exit(&id, 0);
    world.script.fault(When::Every("logs.complete"), How::Hang);
    let runtime = Arc::clone(&world.runtime);
    let asked = id.clone();
    let asking = tokio::spawn(async move { runtime.container_status(&asked).await });
    world.script.wait_for("logs.complete", &id).await;
    assert!(!asking.is_finished());
    world.script.release();
    let status = asking.await.unwrap().unwrap();
    assert_eq!(status.life.state, ContainerState::Exited);
}

#[tokio::test]
async fn it_tells_what_was_asked_for() {
    let world = World::new();
    world.engine.put_image(StoredImage {
        id: "sha256:feed".into(),
        tags: vec!["registry.test/labelled:1".into()],
        digests: vec!["registry.test/labelled@sha256:d1".into()],
        config: json!({"Labels": {"maintainer": "the image's author"}}),
        programs: vec!["/bin/sleep".into()],
        ..StoredImage::default()
    });
    let pod = world.run(pod("web")).await;
    let mut config = container("app");
    config.image = springline::model::ids::ImageReference::new("registry.test/labelled:1");
    config.image_requested = "labelled:1".into();
    config.stop_signal = "SIGUSR1".into();
    config.resources = LinuxResources {
        cpu_shares: 512,
        cpu_quota: 50_000,
        cpu_period: 100_000,
        memory_limit: 64 << 20,
        oom_score_adj: 900,
        cpuset_cpus: "0".into(),
        ..LinuxResources::default()
    };
    config.security.user.uid = Some(1000);
    config.security.user.gid = Some(1001);
    config.security.user.supplemental_groups = vec![5, 6];
    config.mounts = vec![Mount {
        container_path: "/data".into(),
        source: MountSource::Host("/tmp".into()),
        readonly: true,
        recursive_read_only: false,
        selinux_relabel: false,
        propagation: Propagation::HostToContainer,
    }];
    let id = world.start(&pod, &config).await;
    let status = world.runtime.container_status(&id).await.unwrap();
    assert_eq!(status.mounts, config.mounts);
    assert_eq!(status.stop_signal, "SIGUSR1");
    assert_eq!(status.user, Some((1000, 1001, vec![5, 6])));
    assert_eq!(status.log_path, "/var/log/pods/web/app/0.log");
    assert_eq!(
        status.resources,
        LinuxResources {
            // No swap was asked for, so there is none: both together are the limit.
            memory_swap_limit: 64 << 20,
            ..config.resources.clone()
        }
    );
    let summary = status.summary;
    assert_eq!(summary.metadata, config.metadata);
    assert_eq!(summary.sandbox_id.as_str(), pod.id);
    assert_eq!(summary.meta, config.meta, "and not the image's labels");
    assert_eq!(summary.image, "labelled:1");
    assert_eq!(summary.image_id.as_str(), "sha256:feed");
    assert_eq!(summary.image_ref, "registry.test/labelled@sha256:d1");
}

/// A user that is a name, or whose group stands in the image, has no numbers to tell.
#[tokio::test]
async fn users_are_told_where_they_are_numbers() {
    for (case, uid, gid, name, want) in [
        ("nothing said", None, None, "", Some((0, 0, vec![]))),
        ("root", Some(0), None, "", Some((0, 0, vec![]))),
        ("user alone", Some(5), None, "", None),
        ("user and group", Some(5), Some(6), "", Some((5, 6, vec![]))),
        ("a name", None, None, "www", None),
    ] {
        let world = World::new();
        let pod = world.run(pod("web")).await;
        let mut config = container("app");
        config.security.user.uid = uid;
        config.security.user.gid = gid;
        config.security.user.name = name.to_owned();
        let id = world.create(&pod, &config).await;
        let status = world.runtime.container_status(&id).await.unwrap();
        assert_eq!(status.user, want, "{case}");
    }
}

#[tokio::test]
async fn an_image_that_is_gone_is_told_by_its_id() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("app")).await;
    world.script.fault(When::Every("engine.image"), How::Refuse);
    let status = world.runtime.container_status(&id).await.unwrap();
    assert_eq!(status.summary.image_ref, status.summary.image_id.as_str());
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("app")).await;
    let mut body = json!({"Image": crate::fake::APP_IMAGE});
    let foreign = world.engine.foreign("deadbeef", &body);
    body["Labels"] = json!({"io.kubernetes.docker.type": "container"});
    world.engine.foreign("cafebabe", &body);
    for (case, id, kind, begins) in [
        ("missing", "0123456789ab", Kind::NotFound, "container"),
        (
            "a name",
            "k8s_app_web_default_uid-web_0",
            Kind::NotFound,
            "container",
        ),
        ("no ID", "../x", Kind::NotFound, "container"),
        (
            "upper case",
            &id.to_uppercase(),
            Kind::NotFound,
            "container",
        ),
        ("too long", &format!("{id}0"), Kind::NotFound, "container"),
        ("a sandbox", pod.id.as_str(), Kind::NotFound, "container"),
        (
            "a foreign one",
            foreign.as_str(),
            Kind::NotFound,
            "container",
        ),
        (
            "a name that looks like an ID",
            "deadbeef",
            Kind::NotFound,
            "container",
        ),
        (
            "a name that looks like an ID, under our label",
            "cafebabe",
            Kind::NotFound,
            "container",
        ),
        ("empty", "", Kind::InvalidArgument, "container_id"),
    ] {
        let result = world.runtime.container_status(id).await;
        assert_refused(case, result, kind, begins);
    }
}
