//! A daemon that comes and goes, and an engine that does: running pods notice neither.

use std::time::Duration;

use cri_api::runtime::v1 as cri;
use e2e::daemon::Options;
use e2e::proxy::Proxy;
use e2e::{Scene, configs, environment, eventually};
use tonic::Code;

/// Everything that the CRI says of the scene's pods and containers.
fn all_that_is_told(scene: &Scene) -> Vec<String> {
    let selector = [(e2e::node::SCENE_LABEL.to_owned(), scene.name().to_owned())];
    let pods = scene.cri.list_pod_sandbox(cri::ListPodSandboxRequest {
        filter: Some(cri::PodSandboxFilter {
            label_selector: selector.clone().into(),
            ..Default::default()
        }),
    });
    let containers = scene.cri.list_containers(cri::ListContainersRequest {
        filter: Some(cri::ContainerFilter {
            label_selector: selector.into(),
            ..Default::default()
        }),
    });
    let (pods, containers) = (pods.unwrap().items, containers.unwrap().containers);
    assert_eq!((pods.len(), containers.len()), (2, 4));
    let pods = pods.iter().map(|pod| {
        let status = scene.pod_status(&pod.id);
        format!("{pod:?}\n{status:?}")
    });
    let containers = containers.iter().map(|container| {
        let status = scene.status(&container.id);
        format!("{container:?}\n{status:?}")
    });
    pods.chain(containers).collect()
}

/// Process and start time of each container, as the engine has them.
fn processes(scene: &Scene, ids: &[&str]) -> Vec<String> {
    ids.iter()
        .map(|id| {
            let state = &scene.engine.container(id).unwrap()["State"];
            format!("{} {}", state["Pid"], state["StartedAt"])
        })
        .collect()
}

#[test]
#[ignore = "needs an engine"]
fn restarts_and_crashes_change_nothing() {
    let mut scene = Scene::alone();
    let pod = scene.run("", |config| {
        config.annotations.insert("note".into(), "x".into());
        config.dns_config = Some(cri::DnsConfig {
            servers: vec!["192.0.2.53".into()],
            ..Default::default()
        });
    });
    let other = scene.run("-stopped", |_| {});
    let running = scene.start(&pod, "running", |config| {
        configs::resources(config).memory_limit_in_bytes = 64 << 20;
    });
    let created = scene.create(&pod, "created", |_| {});
    scene.run_to_end(&pod, "ended", "exit 3", |_| {});
    let failed = scene.create(&other, "failed", |config| {
        config.command = vec!["/none".into()]
    });
    scene.try_start(&failed).unwrap_err();
    scene.stop_pod(&other.id).unwrap();
    let told = all_that_is_told(&scene);
    let ids = [
        pod.id.as_str(),
        other.id.as_str(),
        running.as_str(),
        created.as_str(),
    ];
    let found = processes(&scene, &ids);
    for crash in [true, false, true] {
        scene.restart(crash);
        let again = all_that_is_told(&scene);
        for (now, before) in again.iter().zip(&told) {
            assert_eq!(now, before, "crash: {crash}");
        }
        assert_eq!(again.len(), told.len(), "crash: {crash}");
        assert_eq!(processes(&scene, &ids), found, "crash: {crash}");
    }
    assert_eq!(
        scene.sh(&running, "cat /etc/resolv.conf"),
        "nameserver 192.0.2.53"
    );
    scene
        .try_start(&created)
        .expect("what was created before can be started");
    let new = scene.start(&pod, "new", |_| {});
    assert_eq!(
        scene.sh(&new, "cat /etc/resolv.conf"),
        "nameserver 192.0.2.53"
    );
}

#[test]
#[ignore = "needs an engine"]
fn pods_can_be_taken_down_by_the_next_daemon() {
    let mut scene = Scene::alone();
    let pod = scene.run("", |config| {
        config.dns_config = Some(cri::DnsConfig {
            servers: vec!["192.0.2.53".into()],
            ..Default::default()
        });
    });
    let container = scene.start(&pod, "main", |_| {});
    scene.restart(true);
    scene.stop_pod(&pod.id).unwrap();
    scene.remove_pod(&pod.id).unwrap();
    assert!(scene.engine.container(&container).is_none());
    assert_eq!((records(&scene), files(&scene)), (0, 0));
}

/// IDs of all that the scene has on the engine.
fn on_the_engine(scene: &Scene) -> Vec<String> {
    let label = format!("{}={}", e2e::node::SCENE_LABEL, scene.name());
    scene.engine.labelled(&label)
}

/// The kubelet repeats what it got no answer to, and takes down what is not ready.
#[test]
#[ignore = "needs an engine"]
fn a_crash_at_any_instant_leaves_no_half_pod_that_looks_whole() {
    let mut scene = Scene::alone();
    for round in 0..10_u64 {
        let config = scene.pod_config(&format!("-{round}"), |config| {
            config.dns_config = Some(cri::DnsConfig {
                servers: vec!["192.0.2.53".into()],
                ..Default::default()
            });
        });
        let (cri, request) = (
            scene.cri.clone(),
            cri::RunPodSandboxRequest {
                config: Some(config.clone()),
                ..Default::default()
            },
        );
        let caller = std::thread::spawn(move || cri.run_pod_sandbox(request));
        // Another instant each round: the time picks it, nothing waits for it.
        std::thread::sleep(Duration::from_millis(round * 30));
        scene.restart(true);
        let answer = caller.join().unwrap().map(|_| "answered");
        println!(
            "round {round}: {:?}",
            answer.map_err(|status| status.code())
        );

        for id in on_the_engine(&scene) {
            if scene.is_ready(&id) {
                let pod = e2e::Pod {
                    id,
                    config: config.clone(),
                };
                let container = scene.start(&pod, "main", |_| {});
                let dns = scene.sh(&container, "cat /etc/resolv.conf");
                assert_eq!(
                    dns, "nameserver 192.0.2.53",
                    "round {round}: READY is whole"
                );
                scene.remove(&container).unwrap();
            }
        }
        let id = scene.try_run(&config).expect("the same pod again");
        assert!(scene.is_ready(&id), "round {round}");
        for id in on_the_engine(&scene) {
            scene.stop_pod(&id).unwrap();
            scene.remove_pod(&id).unwrap();
        }
        assert_eq!(on_the_engine(&scene).join(" "), "", "round {round}");
        assert_eq!(records(&scene), 0, "round {round}");
    }
    // Files of a sandbox that never came to be are swept by the next daemon.
    scene.restart(false);
    eventually("files are swept", || (files(&scene) == 0).then_some(()));
}

fn records(scene: &Scene) -> usize {
    let records = std::fs::read_dir(scene.root().join("sandboxes")).unwrap();
    records.count()
}

fn files(scene: &Scene) -> usize {
    let files = std::fs::read_dir(scene.root().join("files")).unwrap();
    files.count()
}

fn runtime_ready(scene: &Scene) -> (bool, String, String) {
    let answer = scene.cri.status(cri::StatusRequest::default()).unwrap();
    let conditions = answer.status.unwrap().conditions;
    let ready = conditions.iter().find(|c| c.r#type == "RuntimeReady");
    let ready = ready.unwrap();
    (ready.status, ready.reason.clone(), ready.message.clone())
}

#[test]
#[ignore = "needs an engine"]
fn an_engine_that_comes_late_goes_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("engine.sock");
    let mut scene = Scene::alone_with(Options {
        engine_socket: socket.clone(),
        ..Options::default()
    });
    let (ready, reason, message) = runtime_ready(&scene);
    assert!(!ready);
    assert!(!reason.is_empty());
    assert!(message.contains(socket.to_str().unwrap()), "{message}");
    let quick = scene.cri.with_deadline(Duration::from_secs(10));
    let refused = quick.list_pod_sandbox(cri::ListPodSandboxRequest::default());
    assert_eq!(refused.unwrap_err().code(), Code::Unavailable);

    let target = environment::engine_socket();
    let engine = Proxy::open(&socket, &target);
    eventually("the engine is seen", || {
        runtime_ready(&scene).0.then_some(())
    });
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});

    drop(engine);
    eventually("its absence is seen", || {
        (!runtime_ready(&scene).0).then_some(())
    });
    let status = quick.list_containers(cri::ListContainersRequest::default());
    assert_eq!(status.unwrap_err().code(), Code::Unavailable);
    assert!(scene.daemon().runs());

    let _engine = Proxy::open(&socket, &target);
    eventually("its return is seen", || {
        runtime_ready(&scene).0.then_some(())
    });
    assert!(scene.is_ready(&pod.id));
    assert_eq!(scene.sh(&id, "echo alive"), "alive");
    scene.remove_pod(&pod.id).unwrap();
}
