//! CreateContainer: what must be there, what is refused, names that are taken, and what a failure leaves behind.

use std::slice::from_ref;

use serde_json::json;
use springline::error::Kind;
use springline::model::container::ContainerConfig;
use springline::model::engine::{EngineFacts, Version};
use springline::model::ids::ImageReference;
use springline::model::mount::{Mount, MountSource, Propagation};
use springline::model::sandbox::NamespaceMode;
use springline::runtime::ports::{PluginError, SandboxStore};

use crate::assert_refused;
use crate::fake::{APP_IMAGE, Behaviour, How, When, World, WorldBuilder, container, pod};

const NAME: &str = "k8s_app_web_default_uid-web_0";

/// A process that runs is not enough: without the mark nobody knows what the sandbox lacks.
#[tokio::test]
async fn a_sandbox_without_its_mark_takes_no_container() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    SandboxStore::remove(world.store.as_ref(), &pod.id)
        .await
        .unwrap();
    let request = world.create_request(&pod, &container("app"));
    let result = world.runtime.create_container(request).await;
    assert_refused("no mark", result, Kind::FailedPrecondition, "pod sandbox");
}

#[tokio::test]
async fn the_body_carries_identity_and_joins_the_sandbox() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let mut request = world.create_request(&pod, &container("app"));
    request.sandbox_id.truncate(9);
    let id = world.runtime.create_container(request).await.unwrap();
    let facts = world.engine.look(id.as_str()).unwrap();
    assert_eq!(facts.name, NAME);
    let joined = format!("container:{}", pod.id);
    assert_eq!(
        (facts.network_mode, facts.ipc_mode, facts.pid_mode),
        (joined.clone(), joined.clone(), joined)
    );
    for (label, want) in [
        ("io.kubernetes.docker.type", "container"),
        ("io.kubernetes.sandbox.id", pod.id.as_str()),
        (
            "io.kubernetes.container.logpath",
            "/var/log/pods/web/app/0.log",
        ),
        ("io.springline.image-requested", "app:1"),
        ("part", "app"),
        ("annotation.why", "tests"),
    ] {
        assert_eq!(facts.labels[label], want, "{label}");
    }
    // The image by its ID: a name could mean another one by the time the engine reads it.
    assert_eq!(facts.image, facts.image_id);
    let seen = world.plugins.seen().pop().unwrap();
    assert_eq!(seen.subject.sandbox_id.as_deref(), Some(pod.id.as_str()));
    assert_eq!(seen.subject.container_name.as_deref(), Some("app"));
    assert_eq!(
        seen.request["image"]["config"]["Cmd"],
        json!(["sleep", "600"])
    );
}

#[tokio::test]
async fn sandbox_and_image_must_be_there() {
    let world = World::new();
    let ready = world.run(pod("web")).await;
    let stopped = world.run(pod("stopped")).await;
    world.runtime.stop_pod_sandbox(&stopped.id).await.unwrap();
    let other = world.create(&ready, &container("other")).await;
    let before = world.engine.container_ids();
    for (case, sandbox, image, kind, begins) in [
        (
            "no sandbox",
            "0123456789ab",
            APP_IMAGE,
            Kind::NotFound,
            "pod sandbox",
        ),
        (
            "a container",
            other.as_str(),
            APP_IMAGE,
            Kind::NotFound,
            "pod sandbox",
        ),
        (
            "empty",
            "",
            APP_IMAGE,
            Kind::InvalidArgument,
            "pod_sandbox_id",
        ),
        (
            "stopped",
            stopped.id.as_str(),
            APP_IMAGE,
            Kind::FailedPrecondition,
            "pod sandbox",
        ),
        (
            "no image",
            ready.id.as_str(),
            "registry.test/no:1",
            Kind::NotFound,
            "image",
        ),
    ] {
        let mut request = world.create_request(&ready, &container("app"));
        request.sandbox_id = sandbox.to_owned();
        request.config.image = ImageReference::new(image);
        let refused = world.runtime.create_container(request).await;
        assert_refused(case, refused, kind, begins);
    }
    assert_eq!(world.engine.container_ids(), before);
}

#[tokio::test]
async fn what_a_container_may_not_ask_for_is_refused_by_name() {
    type Change = fn(&mut ContainerConfig);
    let cases: [(&str, Change, Kind, &str); 7] = [
        (
            "privileged in an unprivileged sandbox",
            |c| c.security.privileged = true,
            Kind::InvalidArgument,
            "config.linux.security_context.privileged",
        ),
        (
            "log path upwards",
            |c| c.log_path = "../../etc/passwd".into(),
            Kind::InvalidArgument,
            "config.log_path",
        ),
        (
            "absolute log path",
            |c| c.log_path = "/etc/passwd".into(),
            Kind::InvalidArgument,
            "config.log_path",
        ),
        (
            "target without a name",
            |c| c.security.namespaces.pid = NamespaceMode::Target,
            Kind::InvalidArgument,
            "config.linux.security_context.namespace_options.target_id",
        ),
        (
            "huge pages",
            |c| {
                c.resources.hugepages.insert("2MB".into(), 1);
            },
            Kind::Unimplemented,
            "config.linux.resources.hugepage_limits[2MB]",
        ),
        (
            "cgroup files",
            |c| {
                c.resources.unified.insert("memory.high".into(), "1".into());
            },
            Kind::Unimplemented,
            "config.linux.resources.unified[memory.high]",
        ),
        (
            "two mounts at one place",
            |c| {
                let mount = Mount {
                    container_path: "/data".into(),
                    source: MountSource::Host("/tmp".into()),
                    readonly: false,
                    recursive_read_only: false,
                    selinux_relabel: false,
                    propagation: Propagation::Private,
                };
                c.mounts = vec![mount.clone(), mount];
            },
            Kind::InvalidArgument,
            "config.mounts[1].container_path",
        ),
    ];
    let world = World::new();
    let pod = world.run(pod("web")).await;
    for (case, change, kind, field) in cases {
        let mut config = container("app");
        change(&mut config);
        let request = world.create_request(&pod, &config);
        let refused = world.runtime.create_container(request).await;
        assert_refused(case, refused, kind, field);
        assert_eq!(world.engine.container_ids(), from_ref(&pod.id), "{case}");
    }
}

#[tokio::test]
async fn a_target_must_run_in_the_same_sandbox() {
    let world = World::new();
    let web = world.run(pod("web")).await;
    let other = world.run(pod("other")).await;
    let own = |name: &str| {
        let mut config = container(name);
        config.security.namespaces.pid = NamespaceMode::Container;
        config
    };
    let target = world.start(&web, &own("app")).await;
    let elsewhere = world.start(&other, &own("app")).await;
    let idle = world.create(&web, &own("idle")).await;
    let debug = |target_id: &str| {
        let mut config = container("debug");
        config.security.namespaces.pid = NamespaceMode::Target;
        config.security.namespaces.target_id = target_id.to_owned();
        config
    };
    let field = "config.linux.security_context.namespace_options.target_id";
    for (case, target_id, kind, begins) in [
        ("missing", "abcdef012345", Kind::NotFound, "container"),
        (
            "elsewhere",
            elsewhere.as_str(),
            Kind::InvalidArgument,
            field,
        ),
        (
            "does not run",
            idle.as_str(),
            Kind::FailedPrecondition,
            field,
        ),
        (
            "the sandbox itself",
            web.id.as_str(),
            Kind::NotFound,
            "container",
        ),
    ] {
        let request = world.create_request(&web, &debug(target_id));
        let refused = world.runtime.create_container(request).await;
        assert_refused(case, refused, kind, begins);
    }
    let id = world.start(&web, &debug(&target[..8])).await;
    let facts = world.engine.look(&id).unwrap();
    assert_eq!(facts.pid_mode, format!("container:{target}"));
}

#[tokio::test]
async fn host_paths_that_are_not_there_are_made() {
    for api in [Version::new(1, 41), Version::new(1, 51)] {
        let world = WorldBuilder {
            facts: EngineFacts {
                api,
                ..EngineFacts::for_tests()
            },
            ..WorldBuilder::default()
        }
        .build();
        let pod = world.run(pod("web")).await;
        let path = world.folder().join("new/folder");
        let mut config = container("app");
        config.mounts.push(Mount {
            container_path: "/data".into(),
            source: MountSource::Host(path.display().to_string()),
            readonly: false,
            recursive_read_only: false,
            selinux_relabel: false,
            propagation: Propagation::Private,
        });
        let id = world.create(&pod, &config).await;
        // A new engine is told to; for an old one it is done before, or the fake would have refused.
        let options = &world.engine.body(&id)["HostConfig"]["Mounts"][0]["BindOptions"];
        let new = api >= Version::new(1, 42);
        assert_eq!(options["CreateMountpoint"] == true, new, "{api}");
        assert_eq!(path.is_dir(), !new, "{api}");
    }
}

#[tokio::test]
async fn platform_fields_that_nobody_handles_are_refused_by_name() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    world.plugins.set(Behaviour::HandlesNothing);
    let base = "config.linux.security_context";
    for (case, security, field) in [
        ("nothing said", json!({}), Some("seccomp")),
        ("the default", json!({"seccomp": {}}), None),
        (
            "no new privileges",
            json!({"seccomp": {}, "no_new_privs": true}),
            Some("no_new_privs"),
        ),
        (
            "a mask of one's own",
            json!({"seccomp": {}, "masked_paths": ["/bin/ls"]}),
            Some("masked_paths"),
        ),
        (
            "read-only paths",
            json!({"seccomp": {}, "readonly_paths": ["/bin"]}),
            Some("readonly_paths"),
        ),
    ] {
        let mut request = world.create_request(&pod, &container(&case.replace([' ', '\''], "-")));
        request.document = json!({"config": {"linux": {"security_context": security}}});
        let result = world.runtime.create_container(request).await;
        match field {
            None => drop(result.expect(case)),
            Some(field) => {
                let field = format!("{base}.{field}");
                assert_refused(case, result, Kind::Unimplemented, &field);
            }
        }
    }
    assert_eq!(world.engine.container_ids().len(), 2, "sandbox and default");
}

/// Every call of every port fails in turn, before and after it did its work.
#[tokio::test]
async fn a_failure_anywhere_leaves_nothing() {
    let calls = {
        let world = World::new();
        let pod = world.run(pod("web")).await;
        world.script.reset();
        world.create(&pod, &container("app")).await;
        world.script.calls()
    };
    for how in [How::Refuse, How::LoseAnswer] {
        for (index, call) in calls.iter().enumerate() {
            let case = format!("{how:?} at {index}, {} {}", call.what, call.on);
            let world = World::new();
            let pod = world.run(pod("web")).await;
            world.script.reset();
            world.script.fault(When::Call(index), how.clone());
            let request = world.create_request(&pod, &container("app"));
            let result = world.runtime.create_container(request).await;
            result.expect_err(&case);
            let left = world.engine.container_ids().len() - 1;
            let lost = how == How::LoseAnswer && call.what == "engine.create";
            assert_eq!(left, usize::from(lost), "{case}");
            world.script.reset();
            world.create(&pod, &container("app")).await;
            assert_eq!(world.engine.container_ids().len(), 2, "{case}: adopted");
        }
    }
    let world = World::new();
    let pod = world.run(pod("web")).await;
    world.plugins.set(Behaviour::Fails(PluginError::Broken {
        plugin: "p".into(),
        hook: "container",
        reason: "trap".into(),
    }));
    let request = world.create_request(&pod, &container("app"));
    let refused = world.runtime.create_container(request).await;
    assert_refused("a plugin", refused, Kind::Internal, "plugin p failed");
    assert_eq!(world.engine.container_ids(), [pod.id]);
}
