//! ListContainers: all states by default, every filter, and only what is ours and can be read.

use serde_json::json;
use springline::model::container::{ContainerState, EngineState};
use springline::runtime::container::list::ContainerFilter;

use crate::fake::{APP_IMAGE, How, When, World, container, pod};

/// Names of the containers that a filter lets through, in the order of the list.
async fn names(world: &World, filter: ContainerFilter) -> Vec<String> {
    let listed = world.runtime.list_containers(&filter).await.unwrap();
    listed.into_iter().map(|c| c.metadata.name).collect()
}

#[tokio::test]
async fn filters_let_through_what_they_name() {
    let world = World::new();
    let web = world.run(pod("web")).await;
    let db = world.run(pod("db")).await;
    let created = world.create(&web, &container("created")).await;
    let running = world.start(&web, &container("running")).await;
    let exited = world.start(&db, &container("exited")).await;
    world.engine.exit(&exited, 0);
    let paused = world.start(&db, &container("paused")).await;
    world.engine.set_state(&paused, EngineState::Paused);
    let mut broken = container("broken");
    broken.command = vec!["/no/such".into()];
    let broken = world.create(&db, &broken).await;
    world.runtime.start_container(&broken).await.unwrap_err();
    let odd = world.start(&db, &container("odd")).await;
    world.engine.set_state(&odd, EngineState::Other);

    let filter = ContainerFilter::default;
    let state = |state| ContainerFilter {
        state: Some(state),
        ..filter()
    };
    let labels = |pairs: &[(&str, &str)]| ContainerFilter {
        labels: pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        ..filter()
    };
    let all = ["odd", "broken", "paused", "exited", "running", "created"];
    for (case, filter, want) in [
        ("none, newest first", filter(), &all[..]),
        ("created", state(ContainerState::Created), &["created"]),
        (
            "running",
            state(ContainerState::Running),
            &["paused", "running"],
        ),
        (
            "exited",
            state(ContainerState::Exited),
            &["broken", "exited"],
        ),
        ("unknown", state(ContainerState::Unknown), &["odd"]),
        (
            "id",
            ContainerFilter {
                id: running.clone(),
                ..filter()
            },
            &["running"],
        ),
        (
            "short id",
            ContainerFilter {
                id: created[..12].to_owned(),
                ..filter()
            },
            &["created"],
        ),
        (
            "another id",
            ContainerFilter {
                id: "0".repeat(64),
                ..filter()
            },
            &[],
        ),
        (
            "no part of an id but its start",
            ContainerFilter {
                id: running[1..].to_owned(),
                ..filter()
            },
            &[],
        ),
        (
            "sandbox",
            ContainerFilter {
                sandbox_id: web.id.clone(),
                ..filter()
            },
            &["running", "created"],
        ),
        (
            "short sandbox id and state",
            ContainerFilter {
                sandbox_id: web.id[..12].to_owned(),
                state: Some(ContainerState::Running),
                ..filter()
            },
            &["running"],
        ),
        ("label", labels(&[("part", "exited")]), &["exited"]),
        ("label with another value", labels(&[("part", "x")]), &[]),
        (
            "two labels of which one does not match",
            labels(&[("part", "exited"), ("app", "db")]),
            &[],
        ),
        (
            "labels of ours are nobody's",
            labels(&[("io.kubernetes.docker.type", "container")]),
            &[],
        ),
    ] {
        assert_eq!(names(&world, filter).await, want, "{case}");
    }
}

#[tokio::test]
async fn what_is_not_ours_is_not_listed() {
    let world = World::new();
    let web = world.run(pod("web")).await;
    world.start(&web, &container("app")).await;
    for (name, labels) in [
        ("somebody-elses", json!({})),
        (
            "k8s_fake_web_default_uid-web_0",
            json!({"io.kubernetes.container.name": "fake"}),
        ),
        ("odd-type", json!({"io.kubernetes.docker.type": "x"})),
        // Ours by its label, but neither its name nor its labels say who it is.
        (
            "nameless",
            json!({"io.kubernetes.docker.type": "container"}),
        ),
    ] {
        let body = json!({"Image": APP_IMAGE, "Labels": labels});
        let id = world.engine.foreign(name, &body);
        world.engine.start_it(&id);
    }
    assert_eq!(names(&world, ContainerFilter::default()).await, ["app"]);
}

/// Containers of the adapter that served this node before.
#[tokio::test]
async fn another_adapters_containers_are_listed() {
    let world = World::new();
    let labels = json!({
        "io.kubernetes.docker.type": "container",
        "io.kubernetes.sandbox.id": "abc",
        "io.kubernetes.container.name": "app",
        "annotation.note": "x",
        "app": "web",
    });
    let body = json!({"Image": APP_IMAGE, "Labels": labels});
    world.engine.foreign("k8s_app_web_default_uid_3", &body);
    let listed = world
        .runtime
        .list_containers(&ContainerFilter::default())
        .await
        .unwrap();
    assert_eq!(listed[0].metadata.name, "app");
    assert_eq!(listed[0].metadata.attempt, 3);
    assert_eq!(listed[0].sandbox_id.as_str(), "abc");
    assert_eq!(listed[0].meta.labels["app"], "web");
    assert_eq!(listed[0].meta.annotations["note"], "x");
    assert_eq!(listed[0].image, APP_IMAGE);
}

#[tokio::test]
async fn one_that_cannot_be_read_is_left_out() {
    let world = World::new();
    let web = world.run(pod("web")).await;
    let bad = world.create(&web, &container("bad")).await;
    world.create(&web, &container("good")).await;
    world
        .script
        .fault(When::On("engine.inspect", bad), How::Refuse);
    assert_eq!(names(&world, ContainerFilter::default()).await, ["good"]);
    world.script.fault(When::Every("engine.list"), How::Refuse);
    let result = world
        .runtime
        .list_containers(&ContainerFilter::default())
        .await;
    result.expect_err("an engine that cannot list");
}

/// EXITED in the list means that the log can be read to its end.
#[tokio::test]
async fn logs_of_the_exited_are_complete() {
    let world = World::new();
    let web = world.run(pod("web")).await;
    let running = world.start(&web, &container("running")).await;
    let exited = world.start(&web, &container("exited")).await;
    world.engine.exit(&exited, 1);
    assert_eq!(world.script.count("logs.complete"), 0);
    names(&world, ContainerFilter::default()).await;
    assert!(world.script.position("logs.complete", &exited).is_some());
    assert_eq!(world.script.position("logs.complete", &running), None);
}

#[tokio::test]
async fn the_image_has_one_identity() {
    let world = World::new();
    let web = world.run(pod("web")).await;
    let id = world.create(&web, &container("app")).await;
    let image = world
        .runtime
        .image_status(APP_IMAGE)
        .await
        .unwrap()
        .unwrap();
    let listed = world
        .runtime
        .list_containers(&ContainerFilter::default())
        .await
        .unwrap()
        .remove(0);
    let status = world.runtime.container_status(&id).await.unwrap().summary;
    for (case, shown) in [("list", listed), ("status", status)] {
        assert_eq!(shown.image_id, image.id, "{case}");
        assert_eq!(shown.image, "app:1", "{case}: as the user wrote it");
        assert_eq!(shown.image_ref, image.reference(), "{case}");
        assert_eq!(shown.meta.labels, [("part".into(), "app".into())].into());
    }
}
