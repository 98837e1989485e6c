//! Cases of what containers share and names say: joining another's namespaces, limits that depend on each other, images with
//! several names. The verbs build on each of these refusals.

use std::time::Duration;

use serde_json::json;
use springline::model::container::{ContainerState, EngineState, life};
use springline::runtime::ports::EngineError;

use super::archive::Image;
use super::{SharedEngine, body, create, fresh_name, is_not_found, run, until, with};

const MODES: [&str; 3] = ["NetworkMode", "PidMode", "IpcMode"];

pub async fn joins_need_a_running_donor(engine: SharedEngine, image: &str) {
    let sleep = body(image, &["sleep", "600"]);
    let donor = with(
        sleep.clone(),
        json!({"HostConfig": {"IpcMode": "shareable"}}),
    );
    let donor = create(&engine, &donor).await;
    let joined = format!("container:{donor}");
    let mut guests = Vec::new();
    for mode in MODES {
        let guest = with(sleep.clone(), json!({"HostConfig": {mode: joined}}));
        let guest = create(&engine, &guest).await;
        let error = engine.start(&guest).await.expect_err(mode);
        assert!(
            matches!(error, EngineError::Conflict(_) | EngineError::Failed(_)),
            "{mode}: {error:?}"
        );
        let facts = engine.inspect(&guest).await.expect("inspect");
        assert_eq!(facts.life.engine_state, EngineState::Created, "{mode}");
        assert!(!facts.life.error.is_empty(), "{mode}: {facts:?}");
        assert_ne!(facts.life.exit_code, 0, "{mode}: {facts:?}");
        assert_eq!(life(&facts.life, None).state, ContainerState::Exited);
        guests.push(guest);
    }
    engine.start(&donor).await.expect("start");
    for (guest, mode) in guests.iter().zip(MODES) {
        engine.start(guest).await.expect(mode);
        let facts = engine.inspect(guest).await.expect("inspect");
        assert_eq!(facts.life.engine_state, EngineState::Running, "{mode}");
        assert_eq!(facts.life.error, "", "{mode}");
        let shown = [facts.network_mode, facts.pid_mode, facts.ipc_mode];
        let at = MODES.iter().position(|m| *m == mode).unwrap();
        assert_eq!(shown[at], joined, "{mode}");
    }
    // Who lives in its PID namespace ends with it; nobody else does.
    engine.stop(&donor, Duration::ZERO).await.expect("stop");
    until(&engine, &guests[1], EngineState::Exited).await;
    for guest in [&guests[0], &guests[2]] {
        let facts = engine.inspect(guest).await.expect("inspect");
        assert_eq!(facts.life.engine_state, EngineState::Running);
    }
    for id in guests.iter().chain([&donor]) {
        engine.remove(id).await.expect("remove");
    }
}

pub async fn joins_need_a_donor(engine: SharedEngine, image: &str) {
    let sleep = body(image, &["sleep", "600"]);
    let nobody = format!("container:{}", "0".repeat(64));
    for mode in ["PidMode", "IpcMode"] {
        let guest = with(sleep.clone(), json!({"HostConfig": {mode: nobody}}));
        let error = engine.create(&fresh_name(), &guest).await.expect_err(mode);
        assert!(
            matches!(error, EngineError::BadRequest(_) | EngineError::NotFound(_)),
            "{mode}: {error:?}"
        );
    }
    // A network's donor is looked for at the start only: 404 on 20.10, which is about the donor, 500 on 28.
    let guest = with(
        sleep.clone(),
        json!({"HostConfig": {"NetworkMode": nobody}}),
    );
    let guest = create(&engine, &guest).await;
    let error = engine.start(&guest).await.expect_err("no donor");
    assert!(
        matches!(error, EngineError::NotFound(_) | EngineError::Failed(_)),
        "{error:?}"
    );
    engine.inspect(&guest).await.expect("the guest is there");
    engine.remove(&guest).await.expect("remove");

    let private = with(sleep.clone(), json!({"HostConfig": {"IpcMode": "private"}}));
    let private = run(&engine, &private).await;
    let joined = format!("container:{private}");
    let guest = with(sleep, json!({"HostConfig": {"IpcMode": joined}}));
    match engine.create(&fresh_name(), &guest).await {
        Ok(guest) => {
            engine.start(&guest.id).await.expect_err("private IPC");
            engine.remove(&guest.id).await.expect("remove");
        }
        Err(error) => assert!(matches!(error, EngineError::BadRequest(_)), "{error:?}"),
    }
    engine.remove(&private).await.expect("remove");
}

pub async fn bodies_that_are_refused(engine: SharedEngine, image: &str) {
    for (case, host) in [
        ("runtime", json!({"Runtime": "no-such-runtime"})),
        (
            "bind source",
            json!({"Mounts": [{"Type": "bind", "Source": "/no/such/path", "Target": "/x"}]}),
        ),
        (
            "one target twice",
            json!({"Mounts": [
                {"Type": "bind", "Source": "/tmp", "Target": "/x"},
                {"Type": "bind", "Source": "/", "Target": "/x"},
            ]}),
        ),
        (
            "swap below memory",
            json!({"Memory": 64 << 20, "MemorySwap": 32 << 20}),
        ),
    ] {
        let body = with(body(image, &["sleep", "600"]), json!({"HostConfig": host}));
        let name = fresh_name();
        let result = engine.create(&name, &body).await;
        assert!(
            matches!(result, Err(EngineError::BadRequest(_))),
            "{case}: {result:?}"
        );
        assert!(is_not_found(engine.inspect(&name).await), "{case}");
    }
}

pub async fn memory_brings_its_swap(engine: SharedEngine, image: &str) {
    if !engine.facts().await.expect("facts").swap_limit {
        return;
    }
    let limits = json!({"HostConfig": {"Memory": 64 << 20, "MemorySwap": 64 << 20}});
    let id = run(&engine, &with(body(image, &["sleep", "600"]), limits)).await;
    let alone = engine.update(&id, &json!({"Memory": 128 << 20})).await;
    assert!(
        matches!(
            alone,
            Err(EngineError::Conflict(_) | EngineError::BadRequest(_))
        ),
        "{alone:?}"
    );
    let facts = engine.inspect(&id).await.expect("inspect");
    assert_eq!(facts.resources.memory_limit, 64 << 20);
    engine.remove(&id).await.expect("remove");
}

pub async fn images_with_several_names(engine: SharedEngine, _image: &str) {
    let name = fresh_name();
    let tags = [
        format!("springline.test/{name}:1"),
        format!("springline.test/{name}:2"),
        format!("springline.test/{name}-too:1"),
    ];
    for tag in &tags {
        let archive = Image::small(&name).archive(tag);
        engine.load_image(archive).await.expect("load");
    }
    let image = engine.image(&tags[0]).await.expect("image");
    let mut shown = image.repo_tags.clone();
    shown.sort();
    let mut want = tags.to_vec();
    want.sort();
    assert_eq!(shown, want);
    let by_id = engine.remove_image(&image.id).await;
    assert!(matches!(by_id, Err(EngineError::Conflict(_))), "{by_id:?}");
    for (gone, tag) in tags.iter().enumerate() {
        engine.remove_image(tag).await.expect(tag);
        assert!(is_not_found(engine.image(tag).await), "{tag}");
        let left = engine.image(&image.id).await;
        assert_eq!(left.is_ok(), gone + 1 < tags.len(), "after {tag}: {left:?}");
    }
}
