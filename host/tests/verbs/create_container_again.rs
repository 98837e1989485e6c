//! CreateContainer under a name that is taken: adopting, replacing, stepping aside.

use serde_json::json;
use springline::model::container::EngineState;

use crate::fake::{APP_IMAGE, World, container, pod};

const NAME: &str = "k8s_app_web_default_uid-web_0";

#[tokio::test]
async fn a_name_that_is_taken_never_ends_in_a_conflict() {
    #[derive(Debug, PartialEq)]
    enum Want {
        Adopted,
        Replaced,
        Beside,
    }
    type Before = fn(&World, &str);
    let nothing: Before = |_, _| {};
    let cases: [(&str, bool, Before, Want); 6] = [
        ("the same, never started", true, nothing, Want::Adopted),
        ("another configuration", false, nothing, Want::Replaced),
        (
            "exited",
            true,
            |world, id| {
                world.engine.start_it(id);
                world.engine.exit(id, 0);
            },
            Want::Replaced,
        ),
        (
            "running",
            true,
            |world, id| world.engine.start_it(id),
            Want::Beside,
        ),
        (
            "dead",
            true,
            |world, id| world.engine.set_state(id, EngineState::Dead),
            Want::Replaced,
        ),
        (
            "paused",
            true,
            |world, id| world.engine.set_state(id, EngineState::Paused),
            Want::Beside,
        ),
    ];
    for (case, same, before, want) in cases {
        let world = World::new();
        let pod = world.run(pod("web")).await;
        let first = world.create(&pod, &container("app")).await;
        before(&world, &first);
        let mut config = container("app");
        if !same {
            config.args = vec!["5".into()];
        }
        let second = world.create(&pod, &config).await;
        let there = world.engine.look(&first).is_some();
        let got = match (first == second, there) {
            (true, _) => Want::Adopted,
            (false, false) => Want::Replaced,
            (false, true) => Want::Beside,
        };
        assert_eq!(got, want, "{case}");
        let name = world.engine.look(&second).unwrap().name;
        assert_eq!(name == NAME, want != Want::Beside, "{case}: {name}");
        assert!(name.starts_with(NAME), "{case}: {name}");
        if want == Want::Replaced {
            assert!(
                world.script.position("logs.forget", &first).is_some(),
                "{case}"
            );
        }
    }
}

/// A container whose start failed is `created` on the engine's books, and yet not to be adopted.
#[tokio::test]
async fn what_failed_to_start_is_replaced() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let mut config = container("app");
    config.command = vec!["/no/such".into()];
    let first = world.create(&pod, &config).await;
    world.runtime.start_container(&first).await.unwrap_err();
    let second = world.create(&pod, &config).await;
    assert_ne!(first, second);
    assert_eq!(world.engine.look(&first), None);
}

#[tokio::test]
async fn a_foreign_container_of_that_name_is_left_alone() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let body = json!({"Image": APP_IMAGE, "HostConfig": {"NetworkMode": "none"}});
    let foreign = world.engine.foreign(NAME, &body);
    let id = world.create(&pod, &container("app")).await;
    assert!(world.engine.look(&foreign).is_some());
    assert!(
        world
            .engine
            .look(&id)
            .unwrap()
            .name
            .starts_with(&format!("{NAME}_"))
    );
}
