//! The image verbs: one identity, removal whichever way an image is named, what may never be collected.

use serde_json::json;
use springline::error::Kind;
use springline::model::image::RegistryAuth;
use springline::runtime::Settings;

use crate::assert_refused;
use crate::fake::{
    APP_IMAGE, How, RegistryImage, StoredImage, When, World, WorldBuilder, container, pod,
};

const DIGEST: &str = "registry.test/tool@sha256:d1";

/// An image with two tags in one repository, one in another, and a digest.
fn tool() -> StoredImage {
    StoredImage {
        id: format!("sha256:{}", "ab".repeat(32)),
        tags: vec![
            "registry.test/tool:1".into(),
            "registry.test/tool:2".into(),
            "registry.test/mirror:1".into(),
        ],
        digests: vec![DIGEST.into()],
        size: 7,
        config: json!({"User": "1000:1000", "Labels": {"a": "b"}}),
        ..StoredImage::default()
    }
}

fn world_with_tool() -> World {
    let world = World::new();
    world.engine.put_image(tool());
    world
}

#[tokio::test]
async fn an_image_is_found_by_every_name_and_has_one_id() {
    let world = world_with_tool();
    let id = tool().id;
    for name in [
        "registry.test/tool:1",
        "registry.test/mirror:1",
        DIGEST,
        &id,
        &id[7..],
        &id[7..19],
    ] {
        let image = world.runtime.image_status(name).await.unwrap().expect(name);
        assert_eq!(image.id.as_str(), id, "{name}");
        assert_eq!(image.reference(), DIGEST, "{name}");
        assert_eq!(image.user, "1000:1000", "{name}");
        let listed = world.runtime.list_images(Some(name)).await.unwrap();
        assert_eq!(listed, [image], "{name}");
    }
    let all = world.runtime.list_images(None).await.unwrap();
    let listed = all.iter().find(|image| image.id.as_str() == id).unwrap();
    let status = world.runtime.image_status(&id).await.unwrap().unwrap();
    assert_eq!(*listed, status, "the list says as much");
    assert_eq!(all.len(), 2);
}

#[tokio::test]
async fn a_missing_image_is_no_image() {
    let world = world_with_tool();
    for name in ["registry.test/no:1", "abcdef0123", &"0".repeat(64)] {
        assert_eq!(
            world.runtime.image_status(name).await.unwrap(),
            None,
            "{name}"
        );
        assert_eq!(
            world.runtime.list_images(Some(name)).await.unwrap(),
            [],
            "{name}"
        );
        world.runtime.remove_image(name).await.expect(name);
    }
    for result in [
        world.runtime.image_status("").await.map(drop),
        world.runtime.remove_image("").await,
        world.runtime.pull_image("", None).await.map(drop),
    ] {
        assert_refused("empty", result, Kind::InvalidArgument, "image.image");
    }
    world.script.fault(When::Every("engine.image"), How::Refuse);
    let unknown = world.runtime.image_status(APP_IMAGE).await;
    assert_refused("engine fails", unknown, Kind::Internal, "inspecting image");
}

#[tokio::test]
async fn removing_by_any_name_removes_all_of_it() {
    let id = tool().id;
    for name in [
        "registry.test/tool:2",
        "registry.test/mirror:1",
        DIGEST,
        &id,
        &id[7..19],
    ] {
        let world = world_with_tool();
        world.runtime.remove_image(name).await.expect(name);
        assert_eq!(
            world.runtime.image_status(&id).await.unwrap(),
            None,
            "{name}"
        );
        assert!(
            world
                .runtime
                .image_status(APP_IMAGE)
                .await
                .unwrap()
                .is_some()
        );
        world.runtime.remove_image(name).await.expect("again");
    }
    let untagged = StoredImage {
        tags: Vec::new(),
        digests: Vec::new(),
        ..tool()
    };
    let world = World::new();
    world.engine.put_image(untagged);
    world.runtime.remove_image(&id).await.unwrap();
    assert_eq!(world.runtime.image_status(&id).await.unwrap(), None);
}

#[tokio::test]
async fn an_image_in_use_keeps_every_name() {
    let world = world_with_tool();
    let body = json!({"Image": "registry.test/tool:1"});
    world.engine.foreign("somebody-elses", &body);
    for name in ["registry.test/mirror:1", DIGEST, &tool().id] {
        let result = world.runtime.remove_image(name).await;
        assert_refused(
            name,
            result,
            Kind::FailedPrecondition,
            &format!("image {name} is in use"),
        );
        let image = world.runtime.image_status(name).await.unwrap().unwrap();
        assert_eq!(image.repo_tags, tool().tags, "{name}");
    }
    assert_eq!(world.script.count("engine.remove_image"), 0);
}

/// Two removals of one image meet: the engine fails the one that comes second, in words of its own.
#[tokio::test]
async fn a_removal_that_another_one_overtook_is_done() {
    let world = world_with_tool();
    let names = tool().tags.len() + tool().digests.len();
    for (name, nth, gone) in [
        ("the last name went, and the image with it", names - 1, true),
        ("the first name went", 0, false),
    ] {
        world.script.reset();
        world.engine.put_image(tool());
        world
            .script
            .fault(When::Nth("engine.remove_image", nth), How::LoseAnswer);
        let result = world.runtime.remove_image(&tool().id).await;
        assert_eq!(result.is_ok(), gone, "{name}: {result:?}");
    }
}

/// A name of hexadecimal digits that begin another image's ID (kubernetes#30355).
#[tokio::test]
async fn a_tag_that_looks_like_an_id_is_the_tag() {
    let world = world_with_tool();
    let alike = world.engine.add_image("ababab:latest", &[]);
    let image = world.runtime.image_status("ababab").await.unwrap().unwrap();
    assert_eq!(image.id.as_str(), alike);
    world.runtime.remove_image("ababab").await.unwrap();
    assert!(
        world
            .runtime
            .image_status(&tool().id)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_pull_gives_the_identity() {
    let world = World::new();
    let served = |password: Option<&str>| RegistryImage {
        image: StoredImage {
            tags: Vec::new(),
            ..tool()
        },
        password: password.map(str::to_owned),
    };
    world
        .engine
        .serve_image("registry.test/tool:1", served(None));
    world
        .engine
        .serve_image("registry.test/secret:1", served(Some("pw")));
    let id = world
        .runtime
        .pull_image("registry.test/tool:1", None)
        .await
        .unwrap();
    assert_eq!(id.as_str(), tool().id);
    let again = world
        .runtime
        .pull_image("registry.test/tool:1", None)
        .await
        .unwrap();
    assert_eq!(again, id);

    let missing = world.runtime.pull_image("registry.test/no:1", None).await;
    assert_refused("missing", missing, Kind::NotFound, "pulling image");
    let auth = |password: &str| RegistryAuth {
        username: "u".into(),
        password: password.into(),
        ..RegistryAuth::default()
    };
    for (case, auth, good) in [
        ("none", None, false),
        ("wrong", Some(auth("x")), false),
        ("right", Some(auth("pw")), true),
    ] {
        let result = world
            .runtime
            .pull_image("registry.test/secret:1", auth.as_ref())
            .await;
        if good {
            assert_eq!(result.expect(case), id, "{case}");
        } else {
            assert_refused(case, result, Kind::PermissionDenied, "pulling image");
        }
    }
}

/// `image_ref` is remembered; pulls and removals change it.
#[tokio::test]
async fn the_digest_of_an_image_in_use_follows_a_pull() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("app")).await;
    let before = world.runtime.container_status(&id).await.unwrap().summary;
    assert_eq!(before.image_ref, before.image_id.as_str());
    let image = StoredImage {
        id: before.image_id.to_string(),
        digests: vec!["registry.test/app@sha256:d2".into()],
        ..StoredImage::default()
    };
    let served = RegistryImage {
        image,
        password: None,
    };
    world.engine.serve_image(APP_IMAGE, served);
    world.runtime.pull_image(APP_IMAGE, None).await.unwrap();
    let after = world.runtime.container_status(&id).await.unwrap().summary;
    assert_eq!(after.image_ref, "registry.test/app@sha256:d2");
    assert_eq!(after.image_id, before.image_id);
}

/// The kubelet must not collect what sandboxes are made from, however it was named.
#[tokio::test]
async fn the_sandbox_image_is_pinned() {
    let world = World::new();
    world.run(pod("web")).await;
    let pinned = async |world: &World| -> Vec<String> {
        let images = world.runtime.list_images(None).await.unwrap();
        let pinned = images.into_iter().filter(|image| image.pinned);
        pinned.flat_map(|image| image.repo_tags).collect()
    };
    let own = pinned(&world).await;
    assert!(
        own.len() == 1 && own[0].starts_with("springline/pause:"),
        "{own:?}"
    );

    for (case, wanted) in [
        ("tag", "registry.test/tool:2"),
        ("digest", DIGEST),
        ("id", &tool().id),
        ("digits", &tool().id[7..]),
        ("no tag", "registry.test/latest"),
    ] {
        let world = WorldBuilder {
            settings: Settings {
                sandbox_image: Some(wanted.to_owned()),
            },
            ..WorldBuilder::default()
        }
        .build();
        let mut image = tool();
        image.tags.push("registry.test/latest:latest".into());
        world.engine.put_image(image.clone());
        assert_eq!(pinned(&world).await, image.tags, "{case}");
        let status = world
            .runtime
            .image_status(&image.id)
            .await
            .unwrap()
            .unwrap();
        assert!(status.pinned, "{case}");
    }
}

#[tokio::test]
async fn one_that_cannot_be_inspected_is_left_out_of_the_list() {
    let world = world_with_tool();
    world
        .script
        .fault(When::On("engine.image", tool().id), How::Refuse);
    let images = world.runtime.list_images(None).await.unwrap();
    assert_eq!(images.len(), 1);
    world
        .script
        .fault(When::Every("engine.images"), How::Refuse);
    world.runtime.list_images(None).await.expect_err("no list");
}

#[tokio::test]
async fn the_space_that_images_take_is_the_engines_word() {
    let world = world_with_tool();
    let usage = world.runtime.image_fs_info().await.unwrap();
    assert_eq!(usage.used_bytes, 1007);
    assert_eq!(usage.mountpoint.to_str(), Some("/var/lib/docker"));
    assert!(usage.timestamp > 0);
    world
        .script
        .fault(When::Every("engine.image_usage"), How::Refuse);
    world.runtime.image_fs_info().await.unwrap_err();
}
