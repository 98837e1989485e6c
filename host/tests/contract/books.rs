//! Cases that need nothing but the engine's books: containers, their states and limits, and images.

use std::time::Duration;

use serde_json::json;
use springline::model::container::{ContainerState, EngineState, life};
use springline::runtime::ports::{ContainerQuery, EngineError, Version};

use super::archive::Image;
use super::{SharedEngine, body, create, fresh_name, is_not_found, run, until, with};

const NOBODY: &str = "0000000000000000000000000000000000000000000000000000000000000000";

pub async fn facts(engine: SharedEngine, _image: &str) {
    engine.ping().await.expect("ping");
    let facts = engine.facts().await.expect("facts");
    assert!(facts.api >= Version::new(1, 40), "{facts:?}");
    assert_eq!(facts.os, "linux");
    for (name, text) in [
        ("version", &facts.version),
        ("arch", &facts.arch),
        ("kernel", &facts.kernel),
        ("node name", &facts.node_name),
        ("storage driver", &facts.storage_driver),
        ("default runtime", &facts.default_runtime),
        ("log driver", &facts.log_driver),
    ] {
        assert!(!text.is_empty(), "{name}: {facts:?}");
    }
    assert!([1, 2].contains(&facts.cgroup_version), "{facts:?}");
    assert!(facts.root_dir.is_absolute(), "{facts:?}");
    assert!(facts.runtimes.contains(&facts.default_runtime), "{facts:?}");
    assert!(
        (-1000..=1000).contains(&facts.min_oom_score_adj),
        "{facts:?}"
    );
    let again = engine.facts().await.expect("facts");
    assert!(std::sync::Arc::ptr_eq(&facts, &again), "asked only once");
}

pub async fn life_of_a_container(engine: SharedEngine, image: &str) {
    let id = create(&engine, &body(image, &["sleep", "600"])).await;
    let made = engine.inspect(&id).await.expect("inspect");
    assert_eq!(made.id, id);
    assert_eq!(made.life.engine_state, EngineState::Created);
    assert!(made.life.created_at > 0);
    assert_eq!(
        (made.life.started_at, made.life.finished_at, made.pid),
        (0, 0, 0)
    );
    assert_eq!(made.image, image);
    assert!(made.image_id.starts_with("sha256:"), "{}", made.image_id);

    engine.start(&id).await.expect("start");
    engine
        .start(&id)
        .await
        .expect("starting a running one is fine");
    let running = engine.inspect(&id).await.expect("inspect");
    assert_eq!(running.life.engine_state, EngineState::Running);
    assert!(running.life.started_at >= made.life.created_at);
    assert!(running.pid > 0);

    // Not a signal that a first process without a handler heeds: the grace period passes and it is killed.
    engine
        .stop(&id, Duration::from_millis(1))
        .await
        .expect("stop");
    engine
        .stop(&id, Duration::ZERO)
        .await
        .expect("stopping a stopped one is fine");
    let stopped = engine.inspect(&id).await.expect("inspect");
    assert_eq!(stopped.life.engine_state, EngineState::Exited);
    assert_eq!((stopped.life.exit_code, stopped.pid), (137, 0));
    assert!(stopped.life.finished_at >= running.life.started_at);
    assert!(!stopped.life.oom_killed);

    engine.remove(&id).await.expect("remove");
    assert!(is_not_found(engine.inspect(&id).await));
}

pub async fn names_and_ids(engine: SharedEngine, image: &str) {
    let name = fresh_name();
    let body = with(
        body(image, &["sleep", "600"]),
        json!({"Labels": {"springline.test/case": name, "empty": "", "odd": "a=b \"c\" é"}}),
    );
    let id = engine.create(&name, &body).await.expect("create").id;
    assert_eq!(id.len(), 64, "{id}");
    for (case, called) in [("id", &id[..]), ("prefix", &id[..12]), ("name", &name)] {
        let facts = engine.inspect(called).await.expect(case);
        assert_eq!((&facts.id, &facts.name), (&id, &name), "{case}");
        assert_eq!(facts.labels["odd"], "a=b \"c\" é", "{case}");
        assert_eq!(facts.labels["empty"], "", "{case}");
    }
    let taken = engine.create(&name, &body).await;
    assert!(matches!(taken, Err(EngineError::Conflict(_))), "{taken:?}");
    let bad_name = engine.create("a/../b", &body).await;
    assert!(
        matches!(bad_name, Err(EngineError::BadRequest(_))),
        "{bad_name:?}"
    );

    let label = |value: &str| ("springline.test/case".to_owned(), value.to_owned());
    for (case, labels, by_id, found) in [
        ("by label", vec![label(&name)], None, true),
        ("by another value", vec![label("other")], None, false),
        (
            "by two labels",
            vec![label(&name), ("odd".into(), "a=b \"c\" é".into())],
            None,
            true,
        ),
        ("by id", vec![], Some(id.clone()), true),
        ("by prefix", vec![label(&name)], Some(id[..8].into()), true),
        (
            "not by another part of the id",
            vec![],
            Some(id[8..24].into()),
            false,
        ),
        (
            "not by a pattern",
            vec![label(&name)],
            Some(".*".into()),
            false,
        ),
        (
            "not by another id",
            vec![label(&name)],
            Some(NOBODY.into()),
            false,
        ),
    ] {
        let query = ContainerQuery { labels, id: by_id };
        let list = engine.list(&query).await.expect(case);
        assert_eq!(list.iter().any(|entry| entry.id == id), found, "{case}");
    }
    let query = ContainerQuery {
        labels: vec![label(&name)],
        id: None,
    };
    let entry = engine.list(&query).await.expect("list").remove(0);
    let facts = engine.inspect(&id).await.expect("inspect");
    assert_eq!(entry.name, name);
    assert_eq!(entry.state, EngineState::Created);
    assert_eq!(entry.image, image);
    assert_eq!(entry.image_id, facts.image_id);
    assert_eq!(entry.labels, facts.labels);
    assert_eq!(
        entry.created_at / 1_000_000_000,
        facts.life.created_at / 1_000_000_000
    );
    engine.remove(&name).await.expect("remove");
}

pub async fn missing_things(engine: SharedEngine, image: &str) {
    for id in [NOBODY, "no-such-name", "a/b", "..", ""] {
        assert!(is_not_found(engine.inspect(id).await), "inspect {id:?}");
        assert!(is_not_found(engine.start(id).await), "start {id:?}");
        assert!(
            is_not_found(engine.stop(id, Duration::ZERO).await),
            "stop {id:?}"
        );
        assert!(is_not_found(engine.remove(id).await), "remove {id:?}");
        assert!(
            is_not_found(engine.update(id, &json!({"CpuShares": 2})).await),
            "update {id:?}"
        );
        let cmd = ["true".to_owned()];
        assert!(
            is_not_found(engine.exec_sync(id, &cmd, 1, None).await),
            "exec {id:?}"
        );
    }
    let body = body("springline.test/no/such:image", &["true"]);
    assert!(is_not_found(engine.create(&fresh_name(), &body).await));
    assert!(engine.image(image).await.is_ok());
}

pub async fn removals(engine: SharedEngine, image: &str) {
    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    engine.remove(&id).await.expect("a running one is killed");
    assert!(is_not_found(engine.remove(&id).await));

    let id = run(&engine, &body(image, &["sleep", "600"])).await;
    let (a, b, c) = tokio::join!(engine.remove(&id), engine.remove(&id), engine.remove(&id));
    for result in [a, b, c] {
        assert!(
            matches!(result, Ok(()) | Err(EngineError::NotFound(_))),
            "{result:?}"
        );
    }
    assert!(
        is_not_found(engine.inspect(&id).await),
        "gone when any call says so"
    );
}

pub async fn starts_that_fail(engine: SharedEngine, image: &str) {
    let id = create(&engine, &body(image, &["/no/such/program"])).await;
    let error = engine.start(&id).await.expect_err("start");
    assert!(
        matches!(
            error,
            EngineError::BadRequest(_) | EngineError::NotFound(_) | EngineError::Failed(_)
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    let facts = engine.inspect(&id).await.expect("inspect");
    assert!(!facts.life.error.is_empty(), "{facts:?}");
    assert_eq!(facts.life.exit_code, 127);
    let seen = life(&facts.life, None);
    assert_eq!(
        (seen.state, seen.reason),
        (ContainerState::Exited, "ContainerCannotRun")
    );
    engine.remove(&id).await.expect("remove");
}

pub async fn limits(engine: SharedEngine, image: &str) {
    const MIB: i64 = 1 << 20;
    let wanted = json!({"HostConfig": {
        "Memory": 64 * MIB, "MemorySwap": 64 * MIB, "CpuPeriod": 100_000, "CpuQuota": 50_000, "CpuShares": 512, "CpusetCpus": "0",
    }});
    let id = run(&engine, &with(body(image, &["sleep", "600"]), wanted)).await;
    let at_first = engine.inspect(&id).await.expect("inspect").resources;
    assert_eq!(at_first.memory_limit, 64 * MIB);
    assert_eq!(
        (at_first.cpu_period, at_first.cpu_quota, at_first.cpu_shares),
        (100_000, 50_000, 512)
    );
    assert_eq!(at_first.cpuset_cpus, "0");

    let more = json!({"Memory": 128 * MIB, "MemorySwap": 128 * MIB, "CpuShares": 256});
    engine.update(&id, &more).await.expect("update");
    let then = engine.inspect(&id).await.expect("inspect").resources;
    assert_eq!((then.memory_limit, then.cpu_shares), (128 * MIB, 256));
    assert_eq!(
        (then.cpu_period, then.cpu_quota),
        (100_000, 50_000),
        "left alone"
    );
    engine.remove(&id).await.expect("remove");
}

pub async fn images(engine: SharedEngine, image: &str) {
    let facts = engine.image(image).await.expect("image");
    assert!(facts.id.starts_with("sha256:"), "{facts:?}");
    assert!(facts.repo_tags.iter().any(|tag| tag == image), "{facts:?}");
    assert!(facts.size > 0);
    assert!(facts.user.is_some());
    let digits = facts.id.trim_start_matches("sha256:");
    for (case, called) in [
        ("id", &facts.id[..]),
        ("digits", digits),
        ("prefix", &digits[..12]),
    ] {
        assert_eq!(
            engine.image(called).await.expect(case).id,
            facts.id,
            "{case}"
        );
    }
    for missing in ["springline.test/no/such:image", NOBODY, "abcdef0123"] {
        assert!(is_not_found(engine.image(missing).await), "{missing}");
        assert!(
            is_not_found(engine.remove_image(missing).await),
            "{missing}"
        );
    }
    let bad = engine.image("../containers").await;
    assert!(matches!(bad, Err(EngineError::BadRequest(_))), "{bad:?}");
    let list = engine.images().await.expect("images");
    let listed = list
        .iter()
        .find(|listed| listed.id == facts.id)
        .expect("listed");
    assert_eq!(listed.repo_tags, facts.repo_tags);
    // containerd's store counts what is unpacked in lists only.
    let counts_alike = !engine.facts().await.expect("facts").containerd_images;
    assert!(
        listed.size == facts.size || !counts_alike,
        "{listed:?} {facts:?}"
    );
    assert!(
        list.iter()
            .all(|i| i.repo_tags.iter().all(|t| !t.contains("<none>")))
    );
    assert!(engine.image_usage().await.expect("usage").bytes > 0);
}

pub async fn loaded_images(engine: SharedEngine, image: &str) {
    let tag = format!("springline.test/{}:1", fresh_name());
    engine
        .load_image(Image::small(&tag).archive(&tag))
        .await
        .expect("load");
    let loaded = engine.image(&tag).await.expect("image");
    assert_eq!(loaded.repo_tags, [tag.as_str()]);
    assert_eq!(loaded.user.as_deref(), Some("65535:65535"));
    assert_eq!(loaded.labels["made-by"], "contract");
    assert_eq!(loaded.config["Cmd"], json!(["/content"]));
    engine
        .load_image(Image::small(&tag).archive(&tag))
        .await
        .expect("loading it again is fine");

    // A name of hexadecimal digits that begin another image's ID (kubernetes#30355).
    let other = engine.image(image).await.expect("image");
    let digits = other.id.trim_start_matches("sha256:")[..10].to_owned();
    let alike = format!("{digits}:latest");
    engine
        .load_image(Image::small(&alike).archive(&alike))
        .await
        .expect("load");
    let meant = engine.image(&digits).await.expect("image");
    assert_eq!(meant.repo_tags, [alike.as_str()], "the tag is meant");
    engine
        .remove_image(&digits)
        .await
        .expect("the tag is removed");
    assert_eq!(
        engine.image(&digits).await.expect("image").id,
        other.id,
        "now the ID is meant"
    );

    let id = create(&engine, &body(&tag, &["/content"])).await;
    let in_use = engine.remove_image(&loaded.id).await;
    assert!(
        matches!(in_use, Err(EngineError::Conflict(_))),
        "{in_use:?}"
    );
    engine.remove(&id).await.expect("remove");
    engine.remove_image(&tag).await.expect("remove image");
    assert!(is_not_found(engine.image(&tag).await));
    assert!(
        is_not_found(engine.image(&loaded.id).await),
        "its last tag was removed"
    );

    let broken = engine.load_image(b"not an archive".repeat(100)).await;
    assert!(broken.is_err());
}

/// Not a case of its own: what `until` is for in the cases of the node.
pub(super) async fn ended(engine: &SharedEngine, id: &str) -> i32 {
    until(engine, id, EngineState::Exited).await.life.exit_code
}
