//! Images: fetched from the lab's registry, one identity in every answer, removed with all their names.
//!
//! Each test has an image of its own: they run beside each other on one engine.

use cri_api::runtime::v1 as cri;
use e2e::{Scene, configs, environment, refused};
use serde_json::json;
use tonic::Code;

const CRI_TOOLS: &str = "gcr.io/k8s-staging-cri-tools";

fn named(suffix: &str) -> String {
    format!("{CRI_TOOLS}/test-image-{suffix}")
}

fn pull(scene: &Scene, reference: &str) -> Result<String, tonic::Status> {
    let answer = scene.cri.pull_image(cri::PullImageRequest {
        image: Some(configs::image(reference)),
        ..Default::default()
    });
    Ok(answer?.image_ref)
}

fn status(scene: &Scene, reference: &str) -> Option<cri::Image> {
    let answer = scene.cri.image_status(cri::ImageStatusRequest {
        image: Some(configs::image(reference)),
        verbose: false,
    });
    answer.expect("ImageStatus").image
}

fn remove(scene: &Scene, reference: &str) -> Result<(), tonic::Status> {
    let image = Some(configs::image(reference));
    scene
        .cri
        .remove_image(cri::RemoveImageRequest { image })
        .map(|_| ())
}

fn list(scene: &Scene, reference: Option<&str>) -> Vec<cri::Image> {
    let filter = reference.map(|reference| cri::ImageFilter {
        image: Some(configs::image(reference)),
    });
    let answer = scene.cri.list_images(cri::ListImagesRequest { filter });
    answer.expect("ListImages").images
}

#[test]
#[ignore = "needs an engine"]
fn one_identity_in_every_answer() {
    let scene = Scene::new();
    let pod = scene.pod();
    let name = named("latest");
    remove(&scene, &name).unwrap();
    assert_eq!(status(&scene, &name), None, "a missing image is no error");
    assert_eq!(list(&scene, Some(&name)), []);

    // As a user may write it: without a tag.
    let pulled = pull(&scene, &name).unwrap();
    let image = status(&scene, &name).unwrap();
    assert_eq!(image.id, pulled);
    assert_eq!(image.repo_tags, [format!("{name}:latest")]);
    assert_eq!(image.repo_digests.len(), 1);
    let digest = image.repo_digests[0].clone();
    assert!(digest.starts_with(&format!("{name}@sha256:")), "{digest}");
    assert!(image.size > 0);
    let listed = list(&scene, None);
    let mut listed: Vec<_> = listed.into_iter().filter(|one| one.id == pulled).collect();
    if environment::containerd_images() {
        // That store's list counts what is unpacked, its inspection does not.
        assert!(listed[0].size >= image.size, "{listed:?}");
        listed[0].size = image.size;
    }
    assert_eq!(listed, std::slice::from_ref(&image));
    let tagged = format!("{name}:latest");
    for reference in [
        &pulled,
        &digest,
        &tagged,
        &pulled["sha256:".len()..][..16].to_owned(),
    ] {
        assert_eq!(status(&scene, reference).unwrap().id, pulled, "{reference}");
        assert_eq!(
            list(&scene, Some(reference)),
            std::slice::from_ref(&image),
            "{reference}"
        );
    }

    // The kubelet gives what PullImage answered, and says what the user wrote.
    let id = scene.create(&pod, "main", |config| {
        config.image = Some(cri::ImageSpec {
            image: pulled.clone(),
            user_specified_image: name.clone(),
            ..Default::default()
        });
    });
    let (container, listed) = (scene.status(&id), scene.listed(&id).unwrap());
    assert_eq!((&container.image_id, &listed.image_id), (&pulled, &pulled));
    assert_eq!(
        (&container.image_ref, &listed.image_ref),
        (&digest, &digest)
    );
    for spec in [container.image.unwrap(), listed.image.unwrap()] {
        assert_eq!(
            (spec.image, spec.user_specified_image),
            (name.clone(), name.clone())
        );
    }
    scene.remove(&id).unwrap();
    remove(&scene, &name).unwrap();
    assert_eq!(status(&scene, &pulled), None);
}

#[test]
#[ignore = "needs an engine"]
fn by_digest_alone() {
    let scene = Scene::new();
    let pod = scene.pod();
    let name = named("1");
    let id = pull(&scene, &name).unwrap();
    let digest = status(&scene, &id).unwrap().repo_digests[0].clone();
    remove(&scene, &name).unwrap();

    assert_eq!(pull(&scene, &digest).unwrap(), id);
    let image = status(&scene, &digest).unwrap();
    assert_eq!(
        (image.repo_tags, image.repo_digests),
        (vec![], vec![digest.clone()])
    );
    let container = scene.start(&pod, "main", |config| {
        config.image = Some(configs::image(&digest));
    });
    let told = scene.status(&container);
    assert_eq!(
        (told.image_ref, told.image_id),
        (digest.clone(), id.clone())
    );
    assert_eq!(told.image.unwrap().image, digest);
    scene.remove(&container).unwrap();
    remove(&scene, &digest).unwrap();
    assert_eq!(status(&scene, &id), None);
}

#[test]
#[ignore = "needs an engine"]
fn removed_with_every_name_whichever_is_given() {
    let scene = Scene::new();
    let tags = ["1", "2", "3"].map(|tag| named(&format!("tags:{tag}")));
    for how in ["a tag", "the digest", "the ID"] {
        let ids = tags.each_ref().map(|tag| pull(&scene, tag).unwrap());
        assert_eq!(ids[0], ids[1]);
        let image = status(&scene, &ids[0]).unwrap();
        let mut told = image.repo_tags;
        told.sort();
        assert_eq!(told, tags, "{how}");
        let reference = match how {
            "a tag" => &tags[1],
            "the digest" => &image.repo_digests[0],
            _ => &image.id,
        };
        remove(&scene, reference).unwrap();
        for gone in tags.iter().chain([&image.id, &image.repo_digests[0]]) {
            assert_eq!(status(&scene, gone), None, "by {how}: {gone} is gone");
            assert!(scene.engine.image(gone).is_none(), "by {how}: {gone}");
        }
        remove(&scene, reference).expect("removing again is fine");
    }
}

#[test]
#[ignore = "needs an engine"]
fn an_image_in_use_keeps_all_its_names() {
    let scene = Scene::new();
    let pod = scene.pod();
    let name = named("2:latest");
    let id = pull(&scene, &name).unwrap();
    let container = scene.create(&pod, "main", |config| {
        config.image = Some(configs::image(&id));
    });
    let before = status(&scene, &id);
    for reference in [&name, &id] {
        refused(
            remove(&scene, reference),
            Code::FailedPrecondition,
            &container,
        );
        assert_eq!(status(&scene, &name), before);
    }
    scene.remove(&container).unwrap();
    remove(&scene, &name).unwrap();
    assert_eq!(status(&scene, &id), None);
}

#[test]
#[ignore = "needs an engine"]
fn what_is_missing_or_said_wrongly() {
    let scene = Scene::new();
    let nobodys = format!("{CRI_TOOLS}/nobody-has-this:1");
    refused(pull(&scene, &nobodys), Code::NotFound, "nobody-has-this:1");
    refused(
        pull(&scene, &named("3:no-such-tag")),
        Code::NotFound,
        "no-such-tag",
    );
    remove(&scene, &nobodys).expect("what is gone is gone");
    assert_eq!(status(&scene, &nobodys), None);
    for wrong in [
        "registry.k8s.io/UPPER:1",
        "a b",
        "x:y:z",
        "https://registry.k8s.io/pause:3.9",
    ] {
        let status = pull(&scene, wrong).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{wrong:?}: {status}");
    }
    refused(pull(&scene, ""), Code::InvalidArgument, "image.image");
    refused(remove(&scene, ""), Code::InvalidArgument, "image.image");
    let none = cri::PullImageRequest::default();
    refused(scene.cri.pull_image(none), Code::InvalidArgument, "image");
    let none = cri::RemoveImageRequest::default();
    refused(scene.cri.remove_image(none), Code::InvalidArgument, "image");
    let none = cri::ImageStatusRequest::default();
    refused(scene.cri.image_status(none), Code::InvalidArgument, "image");
    let auth = scene.cri.pull_image(cri::PullImageRequest {
        image: Some(configs::image(&named("3"))),
        auth: Some(cri::AuthConfig {
            auth: "%%%".into(),
            ..Default::default()
        }),
        ..Default::default()
    });
    refused(auth, Code::InvalidArgument, "auth.auth");
}

/// A tag may look like the beginning of another image's ID; it means the tag.
#[test]
#[ignore = "needs an engine"]
fn a_tag_that_looks_like_an_id_means_the_tag() {
    let scene = Scene::new();
    let pod = scene.pod();
    let busybox = status(&scene, environment::BUSYBOX).unwrap().id;
    let lookalike = busybox["sha256:".len()..][..12].to_owned();
    let base = scene.create(&pod, "base", |_| {});
    let repository = format!("springline.test/{}", scene.name());
    let other = scene.engine.commit(&base, &repository, "1", &json!({}));
    scene
        .engine
        .tag(&format!("{repository}:1"), &lookalike, "latest");
    scene.remove(&base).unwrap();
    let found = status(&scene, &lookalike).unwrap();
    assert_eq!(found.id, other);
    assert_eq!(status(&scene, &busybox).unwrap().id, busybox);
    remove(&scene, &lookalike).unwrap();
    assert!(scene.engine.image(environment::BUSYBOX).is_some());
    assert_eq!(status(&scene, &other), None);
}

#[test]
#[ignore = "needs an engine"]
fn the_images_user_is_told() {
    let scene = Scene::new();
    for (suffix, uid, name) in [
        ("user-uid", Some(1002), ""),
        ("user-username", None, "www-data"),
        ("user-uid-group", Some(1003), ""),
    ] {
        let reference = named(&format!("{suffix}:latest"));
        pull(&scene, &reference).unwrap();
        let image = status(&scene, &reference).unwrap();
        assert_eq!(image.uid.map(|uid| uid.value), uid, "{suffix}");
        assert_eq!(image.username, name, "{suffix}");
        let listed = list(&scene, Some(&reference));
        assert_eq!(listed[0].uid.map(|uid| uid.value), uid, "{suffix}: list");
        remove(&scene, &reference).unwrap();
    }
}

#[test]
#[ignore = "needs an engine"]
fn the_pause_image_is_pinned() {
    let scene = Scene::new();
    let pod = scene.pod();
    let used = scene.engine.container(&pod.id).unwrap()["Image"].clone();
    let pinned: Vec<_> = list(&scene, None)
        .into_iter()
        .filter(|image| image.pinned)
        .collect();
    assert_eq!(pinned.len(), 1, "{pinned:?}");
    assert_eq!(json!(pinned[0].id), used);
    assert!(
        pinned[0].size < 100_000,
        "our own: {} bytes",
        pinned[0].size
    );
    assert!(!pinned[0].repo_tags.is_empty());
}

#[test]
#[ignore = "needs an engine"]
fn the_image_file_system_is_told() {
    let scene = Scene::new();
    let info = scene
        .cri
        .image_fs_info(cri::ImageFsInfoRequest::default())
        .unwrap();
    for fs in info
        .image_filesystems
        .iter()
        .chain(&info.container_filesystems)
    {
        let mountpoint = &fs.fs_id.as_ref().unwrap().mountpoint;
        assert!(std::path::Path::new(mountpoint).is_dir(), "{mountpoint}");
        assert!(fs.timestamp > 1_600_000_000_000_000_000);
        assert!(fs.inodes_used.is_none_or(|inodes| inodes.value > 0));
    }
    assert_eq!(info.image_filesystems.len(), 1);
    assert!(info.image_filesystems[0].used_bytes.unwrap().value > 100_000);
    assert_eq!(info.container_filesystems.len(), 1);
}
