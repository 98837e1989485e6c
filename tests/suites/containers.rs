//! Containers: their life, how they end and what is said of it, repeats and conflicts.

use cri_api::runtime::v1 as cri;
use cri_api::runtime::v1::ContainerState;
use e2e::{Scene, configs, eventually, refused};
use serde_json::json;
use tonic::Code;

#[test]
#[ignore = "needs an engine"]
fn a_container_lives_and_goes() {
    let scene = Scene::new();
    let pod = scene.pod();
    let config = scene.container_config("main", |config| {
        config.metadata.as_mut().unwrap().attempt = 4;
        config.labels.insert("tier".into(), "front".into());
        config.annotations.insert("note".into(), "x y".into());
    });
    let id = scene.try_create(&pod, &config).unwrap();
    let status = scene.status(&id);
    assert_eq!(status.state(), ContainerState::ContainerCreated);
    assert_eq!(
        (status.started_at, status.finished_at),
        (0, 0),
        "unset is 0"
    );
    assert_eq!(status.metadata, config.metadata);
    assert_eq!(status.labels, config.labels);
    assert_eq!(status.annotations, config.annotations);
    assert_eq!(
        status.log_path,
        format!("{}/main.log", pod.config.log_directory)
    );
    let listed = scene.listed(&id).unwrap();
    assert_eq!(listed.pod_sandbox_id, pod.id);
    // The engine lists whole seconds.
    assert_eq!(
        listed.created_at / 1_000_000_000,
        status.created_at / 1_000_000_000
    );
    assert_eq!(listed.image_id, status.image_id);
    assert_eq!(listed.image_ref, status.image_ref);

    scene.try_start(&id).unwrap();
    scene
        .try_start(&id)
        .expect("starting what runs is fine: the answer was lost");
    let status = scene.status(&id);
    assert_eq!(status.state(), ContainerState::ContainerRunning);
    assert!(status.started_at >= status.created_at, "{status:?}");
    assert_eq!(status.finished_at, 0);
    assert_eq!(scene.listed(&id).unwrap().state(), status.state());

    scene.stop(&id, 30).unwrap();
    let status = scene.exited(&id);
    assert!(status.finished_at >= status.started_at, "{status:?}");
    assert_eq!((status.exit_code, status.reason.as_str()), (0, "Completed"));
    scene.stop(&id, 30).expect("stopping again is fine");

    scene.remove(&id).unwrap();
    refused(scene.try_status(&id), Code::NotFound, &id);
    assert!(scene.listed(&id).is_none());
    scene.remove(&id).expect("removing again is fine");
    scene.stop(&id, 0).expect("stopping what is gone is fine");
    refused(scene.try_start(&id), Code::NotFound, &id);
    refused(scene.exec(&id, &["true"]), Code::NotFound, &id);
}

#[test]
#[ignore = "needs an engine"]
fn ends_are_told_apart() {
    let scene = Scene::new();
    let pod = scene.pod();
    for (name, script, memory, code, reason) in [
        ("well", "exit 0", 0, 0, "Completed"),
        ("badly", "exit 3", 0, 3, "Error"),
        // The engine hears of the kernel's kill apart from the end; one that came right after it might overtake it.
        (
            "too-big",
            "tail /dev/zero; sleep 2; exit 137",
            32 << 20,
            137,
            "OOMKilled",
        ),
    ] {
        let (_, status) = scene.run_to_end(&pod, name, script, |config| {
            configs::resources(config).memory_limit_in_bytes = memory;
        });
        assert_eq!(
            (status.exit_code, status.reason.as_str()),
            (code, reason),
            "{name}"
        );
        assert!(status.started_at >= status.created_at, "{name}: {status:?}");
        assert!(
            status.finished_at >= status.started_at,
            "{name}: {status:?}"
        );
    }
    let killed = scene.start(&pod, "killed", |_| {});
    let path = format!("/containers/{killed}/kill");
    scene.engine.ask("POST", &path, None);
    let status = scene.exited(&killed);
    assert_eq!((status.exit_code, status.reason.as_str()), (137, "Error"));
}

/// The kubelet counts its back-off from these times.
#[test]
#[ignore = "needs an engine"]
fn what_cannot_run_has_the_time_of_its_failure() {
    let scene = Scene::new();
    let pod = scene.pod();
    for (name, command, says) in [
        ("missing", "/no/such/program", "no such file"),
        ("forbidden", "/etc/passwd", "permission denied"),
    ] {
        let id = scene.create(&pod, name, |config| config.command = vec![command.into()]);
        let error = scene.try_start(&id).unwrap_err();
        assert!(error.message().contains(says), "{name}: {error}");
        let status = scene.exited(&id);
        assert_eq!(status.reason, "ContainerCannotRun", "{name}");
        assert_ne!(status.exit_code, 0, "{name}");
        assert!(status.started_at >= status.created_at, "{name}: {status:?}");
        assert_eq!(status.finished_at, status.started_at, "{name}");
        assert!(status.message.contains(says), "{name}: {}", status.message);
        assert_eq!(scene.status(&id), status, "{name}: asked again");
        scene.remove(&id).unwrap();
    }
}

#[test]
#[ignore = "needs an engine"]
fn stop_asks_first_and_kills_when_grace_is_over() {
    let scene = Scene::new();
    let pod = scene.pod();
    let ready = "echo ready; while :; do sleep 0.1; done";
    for (name, trap, signal, grace, code) in [
        (
            "hears-term",
            "trap 'exit 7' TERM",
            cri::Signal::RuntimeDefault,
            30,
            7,
        ),
        (
            "hears-another",
            "trap 'exit 8' USR1",
            cri::Signal::Sigusr1,
            30,
            8,
        ),
        ("deaf", "trap '' TERM", cri::Signal::RuntimeDefault, 1, 137),
        (
            "at-once",
            "trap '' TERM",
            cri::Signal::RuntimeDefault,
            0,
            137,
        ),
    ] {
        let id = scene.start(&pod, name, |config| {
            configs::script(config, &format!("{trap}; {ready}"));
            config.stop_signal = signal.into();
        });
        let log = scene.status(&id).log_path;
        eventually("the trap is set", || {
            scene.logged(&log).contains("ready").then_some(())
        });
        scene.stop(&id, grace).unwrap();
        let status = scene.exited(&id);
        assert_eq!(status.exit_code, code, "{name}");
        if signal != cri::Signal::RuntimeDefault {
            assert_eq!(status.stop_signal(), signal, "{name}");
        }
    }
}

#[test]
#[ignore = "needs an engine"]
fn removing_one_that_runs_ends_it() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        configs::script(
            config,
            "trap '' TERM; echo last words; while :; do sleep 1; done",
        );
    });
    let log = scene.status(&id).log_path;
    scene.remove(&id).unwrap();
    assert!(scene.engine.container(&id).is_none());
    assert_eq!(
        scene.logged(&log),
        "last words\n",
        "the log is the kubelet's and stays"
    );
}

#[test]
#[ignore = "needs an engine"]
fn every_verb_takes_a_short_id() {
    let scene = Scene::new();
    let pod = scene.pod();
    let short_pod = e2e::Pod {
        id: pod.id[..13].into(),
        ..pod.clone()
    };
    let id = scene.create(&short_pod, "main", |_| {});
    let short = &id[..13];
    scene.try_start(short).unwrap();
    assert_eq!(scene.status(short).id, id);
    assert_eq!(scene.listed(short).unwrap().id, id);
    assert_eq!(scene.sh(short, "echo hello"), "hello");
    let of_pod = scene.cri.list_containers(cri::ListContainersRequest {
        filter: Some(cri::ContainerFilter {
            pod_sandbox_id: short_pod.id.clone(),
            ..Default::default()
        }),
    });
    assert_eq!(of_pod.unwrap().containers.len(), 1);
    let update = scene
        .cri
        .update_container_resources(cri::UpdateContainerResourcesRequest {
            container_id: short.into(),
            linux: Some(cri::LinuxContainerResources {
                cpu_shares: 512,
                ..Default::default()
            }),
            ..Default::default()
        });
    update.unwrap();
    scene.stop(short, 5).unwrap();
    scene.remove(short).unwrap();
    assert_eq!(scene.pod_status(&short_pod.id).id, pod.id);
    scene.stop_pod(&short_pod.id).unwrap();
    scene.remove_pod(&short_pod.id).unwrap();
    refused(scene.try_pod_status(&pod.id), Code::NotFound, "");
}

#[test]
#[ignore = "needs an engine"]
fn lists_filter_by_state_and_labels() {
    let scene = Scene::new();
    let pod = scene.pod();
    let created = scene.create(&pod, "created", |config| {
        config.labels.insert("which".into(), "created".into());
    });
    let running = scene.start(&pod, "running", |_| {});
    let (_, ended) = scene.run_to_end(&pod, "ended", "exit 0", |_| {});
    let list = |filter: cri::ContainerFilter| {
        let filter = Some(cri::ContainerFilter {
            pod_sandbox_id: pod.id.clone(),
            ..filter
        });
        let answer = scene
            .cri
            .list_containers(cri::ListContainersRequest { filter });
        let ids = answer.unwrap().containers.into_iter().map(|c| c.id);
        ids.collect::<Vec<_>>().join(" ")
    };
    let state = |state: ContainerState| cri::ContainerFilter {
        state: Some(cri::ContainerStateValue {
            state: state.into(),
        }),
        ..Default::default()
    };
    let label = cri::ContainerFilter {
        label_selector: [("which".to_owned(), "created".to_owned())].into(),
        ..Default::default()
    };
    assert_eq!(
        list(cri::ContainerFilter::default()),
        [ended.id.as_str(), &running, &created].join(" "),
        "all states, newest first"
    );
    assert_eq!(list(state(ContainerState::ContainerCreated)), created);
    assert_eq!(list(state(ContainerState::ContainerRunning)), running);
    assert_eq!(list(state(ContainerState::ContainerExited)), ended.id);
    assert_eq!(list(label), created);
}

#[test]
#[ignore = "needs an engine"]
fn a_repeated_create_never_ends_in_name_in_use() {
    let scene = Scene::new();
    let pod = scene.pod();
    let config = scene.container_config("main", |_| {});
    let first = scene.try_create(&pod, &config).unwrap();
    let again = scene.try_create(&pod, &config).unwrap();
    assert_eq!(again, first, "the answer was lost: the same container");

    let mut other = config.clone();
    other.envs.push(cri::KeyValue {
        key: "A".into(),
        value: "1".into(),
    });
    let replaced = scene.try_create(&pod, &other).unwrap();
    assert_ne!(
        replaced, first,
        "another configuration is another container"
    );
    assert!(
        scene.engine.container(&first).is_none(),
        "never started: replaced"
    );

    scene.try_start(&replaced).unwrap();
    let beside = scene.try_create(&pod, &other).unwrap();
    assert_ne!(beside, replaced);
    assert_eq!(
        scene.status(&replaced).state(),
        ContainerState::ContainerRunning,
        "what runs is not touched"
    );
    assert_eq!(scene.status(&beside).metadata, config.metadata);

    scene.stop(&replaced, 0).unwrap();
    scene.remove(&beside).unwrap();
    let new = scene.try_create(&pod, &other).unwrap();
    assert!(
        scene.engine.container(&replaced).is_none(),
        "dead: replaced"
    );
    let inspected = scene.engine.container(&new).unwrap();
    let name = inspected["Name"].as_str().unwrap();
    assert!(name.ends_with("_0"), "{name} has the plain name again");
}

#[test]
#[ignore = "needs an engine"]
fn a_name_that_somebody_else_holds_is_left_alone() {
    let scene = Scene::new();
    let name = scene.name().to_owned();
    let pod = scene.pod();
    let holder = format!("k8s_main_{name}_e2e_uid-{name}_0");
    let foreign = scene.engine.ask(
        "POST",
        &format!("/containers/create?name={holder}"),
        Some(&json!({
            "Image": e2e::environment::BUSYBOX,
            "Cmd": ["true"],
            "Labels": {e2e::node::SCENE_LABEL: name},
        })),
    );
    let foreign = foreign["Id"].as_str().unwrap();
    let id = scene.start(&pod, "main", |_| {});
    assert_ne!(id, foreign);
    assert!(scene.engine.container(foreign).is_some());
    assert!(
        scene.listed(foreign).is_none(),
        "what is not ours is not listed"
    );
    refused(scene.try_status(foreign), Code::NotFound, foreign);
    scene
        .remove(foreign)
        .expect("what is not ours is not there");
    assert!(scene.engine.container(foreign).is_some());
    assert_eq!(scene.status(&id).metadata.unwrap().name, "main");
}

/// `docker commit` pauses; the kubelet would kill what is UNKNOWN.
#[test]
#[ignore = "needs an engine"]
fn a_paused_container_runs() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    let pause = |verb: &str| {
        scene
            .engine
            .ask("POST", &format!("/containers/{id}/{verb}"), None)
    };
    pause("pause");
    let status = scene.status(&id);
    assert_eq!(status.state(), ContainerState::ContainerRunning);
    assert_eq!(status.reason, "Paused");
    assert_eq!(scene.listed(&id).unwrap().state(), status.state());
    pause("unpause");
    assert_eq!(scene.status(&id).reason, "");
}

#[test]
#[ignore = "needs an engine"]
fn incomplete_requests_name_the_field() {
    let scene = Scene::new();
    let pod = scene.pod();
    type Change = fn(&mut cri::ContainerConfig);
    let cases: [(&str, &str, Change); 14] = [
        ("no metadata", "config.metadata", |c| c.metadata = None),
        ("no name", "config.metadata.name", |c| {
            c.metadata.as_mut().unwrap().name.clear();
        }),
        ("the sandbox's name", "config.metadata.name", |c| {
            c.metadata.as_mut().unwrap().name = "POD".into();
        }),
        ("no image", "config.image", |c| c.image = None),
        ("an empty image", "config.image.image", |c| {
            c.image = Some(configs::image(""));
        }),
        ("a log outside", "config.log_path", |c| {
            c.log_path = "../x".into()
        }),
        ("an absolute log", "config.log_path", |c| {
            c.log_path = "/x".into()
        }),
        ("no name of a variable", "config.envs[0].key", |c| {
            c.envs = vec![cri::KeyValue::default()];
        }),
        ("bytes that are no text", "config.envs[0].value", |c| {
            c.envs = vec![cri::KeyValue {
                key: "A".into(),
                value: vec![0xff],
            }];
        }),
        ("a relative mount", "config.mounts[0].container_path", |c| {
            c.mounts = vec![configs::mount("/tmp", "x")];
        }),
        ("a mount of nothing", "config.mounts[0].host_path", |c| {
            c.mounts = vec![configs::mount("", "/x")];
        }),
        (
            "one place, two mounts",
            "config.mounts[1].container_path",
            |c| {
                c.mounts = vec![configs::mount("/tmp", "/x"), configs::mount("/etc", "/x")];
            },
        ),
        ("a device's rights", "config.devices[0].permissions", |c| {
            c.devices = vec![cri::Device {
                container_path: "/dev/x".into(),
                host_path: "/dev/null".into(),
                permissions: "rx".into(),
            }];
        }),
        (
            "a group without a user",
            "security_context.run_as_group",
            |c| {
                configs::security(c).run_as_group = Some(cri::Int64Value { value: 7 });
            },
        ),
    ];
    for (name, field, change) in cases {
        println!("{name}");
        let config = scene.container_config("main", change);
        refused(
            scene.try_create(&pod, &config),
            Code::InvalidArgument,
            field,
        );
    }
    let create = |config, sandbox_config, id: &str| {
        scene.cri.create_container(cri::CreateContainerRequest {
            pod_sandbox_id: id.into(),
            config,
            sandbox_config,
        })
    };
    let config = || Some(scene.container_config("main", |_| {}));
    let sandbox = || Some(pod.config.clone());
    refused(
        create(None, sandbox(), &pod.id),
        Code::InvalidArgument,
        "config",
    );
    refused(
        create(config(), None, &pod.id),
        Code::InvalidArgument,
        "sandbox_config",
    );
    refused(
        create(config(), sandbox(), ""),
        Code::InvalidArgument,
        "pod_sandbox_id",
    );
    refused(
        create(config(), sandbox(), "0123456789ab"),
        Code::NotFound,
        "0123456789ab",
    );
    let mut unknown = config().unwrap();
    unknown.image = Some(configs::image("registry.k8s.io/no-such:1"));
    refused(
        create(Some(unknown), sandbox(), &pod.id),
        Code::NotFound,
        "no-such:1",
    );
    refused(scene.stop("", 0), Code::InvalidArgument, "container_id");
    refused(
        scene.stop("0123456789ab", -1),
        Code::InvalidArgument,
        "timeout",
    );
    let label = format!("{}={}", e2e::node::SCENE_LABEL, scene.name());
    assert_eq!(
        scene.engine.labelled(&label).join(" "),
        pod.id,
        "nothing but the sandbox"
    );
}
