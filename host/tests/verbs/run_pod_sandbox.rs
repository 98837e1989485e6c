//! RunPodSandbox: its steps, the mark, and what a failure leaves behind.

use std::sync::Arc;

use serde_json::json;
use springline::error::Kind;
use springline::model::engine::EngineFacts;
use springline::model::sandbox::{NamespaceMode, PortMapping, Protocol, SandboxState};
use springline::runtime::Settings;
use springline::runtime::ports::{PluginError, SandboxStore};
use springline::runtime::sandbox::list::SandboxFilter;
use springline::runtime::sandbox::run::RunSandbox;

use crate::assert_refused;
use crate::fake::{Behaviour, How, RegistryImage, StoredImage, When, World, WorldBuilder, pod};

async fn states(world: &World) -> Vec<SandboxState> {
    let all = SandboxFilter::default();
    let listed = world.runtime.list_pod_sandbox(&all).await.unwrap();
    listed.into_iter().map(|sandbox| sandbox.state).collect()
}

#[tokio::test]
async fn steps_come_in_order() {
    let world = World::new();
    let made = world.run(pod("web")).await;
    let mut last = None;
    for (what, on) in [
        ("engine.facts", ""),
        ("engine.image", "springline/pause"),
        ("store.put_file", "resolv.conf"),
        ("plugins.configure", "sandbox"),
        ("engine.create", "k8s_POD_web_default_uid-web_0"),
        ("store.put", &format!("{} unmarked", made.id)),
        ("engine.start", &made.id),
        ("network.attach", &made.id),
        ("store.put", &format!("{} marked", made.id)),
    ] {
        let at = world.script.position(what, on);
        assert!(
            at.is_some() && at > last,
            "{what} {on}: {at:?} after {last:?}"
        );
        last = at;
    }
    assert_eq!(world.network.attached(), [made.id].into());
}

#[tokio::test]
async fn ready_needs_the_mark_and_the_process() {
    for (step, on) in [
        ("store.put", "unmarked"),
        ("engine.start", ""),
        ("network.attach", ""),
        ("store.put", "marked"),
    ] {
        let world = World::new();
        let nth = usize::from(on == "marked");
        world.script.fault(When::Nth(step, nth), How::Hang);
        let runtime = Arc::clone(&world.runtime);
        let request = world.run_request(&pod("web"));
        let running = tokio::spawn(async move { runtime.run_pod_sandbox(request).await });
        world.script.wait_for("engine.create", "").await;
        while world.script.count(step) <= nth {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            states(&world).await,
            [SandboxState::NotReady],
            "at {step} {on}"
        );
        let half = world.engine.container_ids().remove(0);
        let half = world.runtime.pod_sandbox_status(&half).await.unwrap();
        assert!(half.addresses.is_empty(), "not to rely on, at {step} {on}");
        world.script.release();
        let id = running.await.unwrap().unwrap();
        assert_eq!(
            states(&world).await,
            [SandboxState::Ready],
            "after {step} {on}"
        );
        world.engine.exit(id.as_str(), 0);
        assert_eq!(states(&world).await, [SandboxState::NotReady], "ended");
        let status = world.runtime.pod_sandbox_status(id.as_str()).await.unwrap();
        assert_eq!(status.summary.state, SandboxState::NotReady);
        assert!(status.addresses.is_empty());
    }
}

/// Every call of every port fails in turn, before and after it did its work.
#[tokio::test]
async fn a_failure_anywhere_is_taken_back() {
    let calls = {
        let world = World::new();
        world.run(pod("web")).await;
        world.script.calls()
    };
    for how in [How::Refuse, How::LoseAnswer] {
        for (index, call) in calls.iter().enumerate() {
            let case = format!("{how:?} at {index}, {} {}", call.what, call.on);
            let world = World::new();
            world.script.fault(When::Call(index), how.clone());
            let request = world.run_request(&pod("web"));
            let result = world.runtime.run_pod_sandbox(request.clone()).await;
            result.expect_err(&case);
            if how == How::LoseAnswer && call.what == "engine.create" {
                // Nobody knows its ID. It is no sandbox to rely on, and the next try adopts it.
                assert_eq!(states(&world).await, [SandboxState::NotReady], "{case}");
                world.assert_no_traces(&case);
            } else {
                world.assert_clean(&case);
            }
            world.script.reset();
            world.runtime.run_pod_sandbox(request).await.expect(&case);
            assert_eq!(states(&world).await, [SandboxState::Ready], "{case}");
            assert_eq!(world.store.ids().len(), 1, "{case}");
            assert_eq!(world.store.file_keys().len(), 1, "{case}");
        }
    }
}

/// The taking back fails as well: what stays is not READY and can be removed.
#[tokio::test]
async fn what_cannot_be_taken_back_can_be_removed() {
    for step in ["engine.start", "network.attach"] {
        for undo in [
            "engine.remove",
            "network.detach",
            "store.remove",
            "store.remove_files",
        ] {
            let case = format!("{step} and then {undo}");
            let world = World::new();
            world.script.fault(When::Nth(step, 0), How::LoseAnswer);
            world.script.fault(When::Nth(undo, 0), How::Refuse);
            let request = world.run_request(&pod("web"));
            world
                .runtime
                .run_pod_sandbox(request)
                .await
                .expect_err(&case);
            world.script.reset();
            let left: Vec<_> = world
                .runtime
                .list_pod_sandbox(&SandboxFilter::default())
                .await
                .unwrap();
            for sandbox in left {
                assert_eq!(sandbox.state, SandboxState::NotReady, "{case}");
                let id = sandbox.id.as_str();
                world.runtime.stop_pod_sandbox(id).await.expect(&case);
                world.runtime.remove_pod_sandbox(id).await.expect(&case);
            }
            let ids = world.engine.container_ids();
            assert!(ids.is_empty(), "{case}: {ids:?}");
        }
    }
}

#[tokio::test]
async fn resolv_conf_is_whole_before_the_sandbox_exists() {
    let world = World::new();
    // The fake engine refuses a bind mount whose source is not there at the create call.
    let made = world.run(pod("web")).await;
    let body = world.engine.body(&made.id);
    let mount = &body["HostConfig"]["Mounts"][0];
    assert_eq!(mount["Target"], "/etc/resolv.conf");
    let content = std::fs::read_to_string(mount["Source"].as_str().unwrap()).unwrap();
    assert_eq!(
        content,
        "search default.svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n"
    );

    let mut plain = pod("plain");
    plain.dns = Some(Default::default());
    let made = world.run(plain).await;
    let body = world.engine.body(&made.id);
    assert!(body["HostConfig"].get("Mounts").is_none(), "{body}");
    assert_eq!(world.store.file_keys().len(), 1);
}

#[tokio::test]
async fn the_host_network_is_not_attached() {
    let world = World::new();
    let mut config = pod("web");
    config.security.namespaces.network = NamespaceMode::Node;
    config.port_mappings.push(PortMapping {
        protocol: Protocol::Tcp,
        container_port: 80,
        host_port: 8080,
        host_ip: String::new(),
    });
    let made = world.run(config).await;
    assert_eq!(world.script.count("network.attach"), 0);
    let body = world.engine.body(&made.id);
    assert_eq!(body["HostConfig"]["NetworkMode"], "host");
    assert!(body["HostConfig"].get("PortBindings").is_none(), "{body}");
    let status = world.runtime.pod_sandbox_status(&made.id).await.unwrap();
    assert_eq!(status.summary.state, SandboxState::Ready);
    assert_eq!(status.namespaces.network, NamespaceMode::Node);
    assert!(status.addresses.is_empty());
    world.runtime.stop_pod_sandbox(&made.id).await.unwrap();
    world.runtime.remove_pod_sandbox(&made.id).await.unwrap();
    assert_eq!(world.script.count("network.detach"), 0);
    world.assert_clean("removed");
}

#[tokio::test]
async fn runtime_handlers_are_those_of_the_engine() {
    let world = WorldBuilder {
        facts: EngineFacts {
            runtimes: vec!["runc".into(), "crun".into()],
            ..EngineFacts::for_tests()
        },
        ..WorldBuilder::default()
    }
    .build();
    let mut config = pod("web");
    config.runtime_handler = "kata".into();
    let request = world.run_request(&config);
    let refused = world.runtime.run_pod_sandbox(request).await;
    assert_refused("unknown", refused, Kind::InvalidArgument, "runtime_handler");
    world.assert_clean("unknown");

    config.runtime_handler = "crun".into();
    let made = world.run(config).await;
    assert_eq!(world.engine.body(&made.id)["HostConfig"]["Runtime"], "crun");
    let status = world.runtime.pod_sandbox_status(&made.id).await.unwrap();
    assert_eq!(status.summary.runtime_handler, "crun");
    // Its containers run under it too.
    let id = world.create(&made, &crate::fake::container("app")).await;
    assert_eq!(world.engine.body(&id)["HostConfig"]["Runtime"], "crun");
}

#[tokio::test]
async fn the_oom_score_is_clamped_to_what_the_engine_can_set() {
    for (least, want) in [(-1000, json!(-998)), (-500, json!(-500)), (0, json!(null))] {
        let world = WorldBuilder {
            facts: EngineFacts {
                min_oom_score_adj: least,
                ..EngineFacts::for_tests()
            },
            ..WorldBuilder::default()
        }
        .build();
        // The fake engine refuses to start a container with less than it can set.
        let made = world.run(pod("web")).await;
        let body = world.engine.body(&made.id);
        assert_eq!(body["HostConfig"]["OomScoreAdj"], want, "{least}");
    }
}

#[tokio::test]
async fn platform_fields_that_nobody_handles_are_refused_by_name() {
    let security =
        |fields: serde_json::Value| json!({"config": {"linux": {"security_context": fields}}});
    for (case, document, field) in [
        (
            "no seccomp field means unconfined",
            security(json!({})),
            "config.linux.security_context.seccomp",
        ),
        (
            "localhost seccomp",
            security(json!({"seccomp": {"profile_type": "Localhost", "localhost_ref": "/p"}})),
            "config.linux.security_context.seccomp",
        ),
        (
            "selinux",
            security(json!({"seccomp": {}, "selinux_options": {"type": "t"}})),
            "config.linux.security_context.selinux_options",
        ),
        (
            "apparmor",
            security(json!({"seccomp": {}, "apparmor": {"profile_type": "Localhost"}})),
            "config.linux.security_context.apparmor",
        ),
        (
            "privileged is no confinement for a sandbox",
            security(json!({"privileged": true})),
            "config.linux.security_context.seccomp",
        ),
        (
            "windows",
            json!({"config": {
                "linux": {"security_context": {"seccomp": {}}},
                "windows": {"security_context": {"host_process": true}},
            }}),
            "config.windows.security_context.host_process",
        ),
    ] {
        let world = WorldBuilder {
            behaviour: Behaviour::HandlesNothing,
            ..WorldBuilder::default()
        }
        .build();
        let request = RunSandbox {
            config: pod("web"),
            document: Arc::new(document),
        };
        let refused = world.runtime.run_pod_sandbox(request.clone()).await;
        assert_refused(case, refused, Kind::Unimplemented, field);
        world.assert_clean(case);
        world.plugins.set(Behaviour::HandlesAll);
        world.runtime.run_pod_sandbox(request).await.expect(case);
    }
}

#[tokio::test]
async fn plugins_see_the_request_and_shape_the_body() {
    let world = World::new();
    let seccomp = ("/HostConfig/SecurityOpt/seccomp", json!("unconfined"));
    world.plugins.set(Behaviour::Writes(vec![seccomp]));
    let made = world.run(pod("web")).await;
    let body = world.engine.body(&made.id);
    assert_eq!(
        body["HostConfig"]["SecurityOpt"],
        json!(["seccomp=unconfined"])
    );
    assert_eq!(body["Labels"]["io.springline.plugin-chain"], "c0ffee");
    let seen = world.plugins.seen().remove(0);
    assert_eq!(seen.subject.pod_uid, "uid-web");
    assert_eq!(seen.subject.sandbox_id, None);
    assert_eq!(seen.annotations["note"], "x");
    assert_eq!(*seen.request, crate::fake::document(&made.config));

    world.plugins.set(Behaviour::Fails(PluginError::Denied {
        plugin: "policy".into(),
        message: "no".into(),
    }));
    let request = world.run_request(&pod("other"));
    let refused = world.runtime.run_pod_sandbox(request).await;
    assert_refused("denied", refused, Kind::PermissionDenied, "plugin policy");
    assert_eq!(world.engine.container_ids().len(), 1);
}

#[tokio::test]
async fn another_pause_image_is_fetched_once() {
    let world = WorldBuilder {
        settings: Settings {
            sandbox_image: Some("registry.test/pause:3".into()),
        },
        ..WorldBuilder::default()
    }
    .build();
    let request = world.run_request(&pod("a"));
    let missing = world.runtime.run_pod_sandbox(request).await;
    assert_refused(
        "not there",
        missing,
        Kind::NotFound,
        "pulling the sandbox image",
    );
    world.assert_clean("not there");
    let image = StoredImage {
        id: "sha256:aa".into(),
        config: json!({"Entrypoint": ["/pause"]}),
        programs: vec!["/pause".into()],
        ..StoredImage::default()
    };
    let served = RegistryImage {
        image,
        password: None,
    };
    world.engine.serve_image("registry.test/pause:3", served);
    let a = world.run(pod("a")).await;
    world.run(pod("b")).await;
    assert_eq!(
        world.script.count("engine.pull"),
        2,
        "one refused, one done"
    );
    assert_eq!(world.engine.body(&a.id)["Image"], "registry.test/pause:3");
}
