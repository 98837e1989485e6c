//! Pod sandboxes: their life, their identity on the engine, their network, and what a failure leaves (nothing).

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use cri_api::runtime::v1 as cri;
use cri_api::runtime::v1::{ContainerState, NamespaceMode, PodSandboxState};
use e2e::{Pod, Scene, configs, refused};
use serde_json::json;
use tonic::Code;

fn list(scene: &Scene, filter: cri::PodSandboxFilter) -> Vec<String> {
    let filter = Some(filter);
    let answer = scene
        .cri
        .list_pod_sandbox(cri::ListPodSandboxRequest { filter });
    answer
        .unwrap()
        .items
        .into_iter()
        .map(|pod| pod.id)
        .collect()
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn port(host: u16, container: u16) -> cri::PortMapping {
    cri::PortMapping {
        protocol: cri::Protocol::Tcp.into(),
        container_port: container.into(),
        host_port: host.into(),
        host_ip: String::new(),
    }
}

/// Records of sandboxes that the daemon keeps.
fn records(scene: &Scene) -> Vec<String> {
    let folder = fs::read_dir(scene.root().join("sandboxes")).unwrap();
    folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
#[ignore = "needs an engine"]
fn a_pod_lives_and_goes() {
    let scene = Scene::new();
    let pod = scene.run("", |config| {
        config.labels.insert("app".into(), "web".into());
        config.annotations.insert("note".into(), "a, b".into());
    });
    let status = scene.pod_status(&pod.id);
    assert_eq!(status.state(), PodSandboxState::SandboxReady);
    assert_eq!(status.metadata, pod.config.metadata);
    assert_eq!(status.labels, pod.config.labels);
    assert_eq!(status.annotations, pod.config.annotations);
    assert!(status.created_at > 1_600_000_000_000_000_000);
    let ip = status.network.unwrap().ip;
    assert!(ip.parse::<std::net::IpAddr>().is_ok(), "{ip:?}");
    assert!(scene.is_ready(&pod.id));

    let container = scene.start(&pod, "main", |_| {});
    scene.stop_pod(&pod.id).unwrap();
    assert!(!scene.is_ready(&pod.id));
    assert_eq!(
        scene.status(&container).state(),
        ContainerState::ContainerExited
    );
    scene.stop_pod(&pod.id).expect("stopping again is fine");

    scene.remove_pod(&pod.id).unwrap();
    refused(scene.try_pod_status(&pod.id), Code::NotFound, &pod.id);
    refused(scene.try_status(&container), Code::NotFound, &container);
    assert!(scene.engine.container(&pod.id).is_none());
    assert!(scene.engine.container(&container).is_none());
    assert!(!records(&scene).iter().any(|file| file.contains(&pod.id)));
    scene.remove_pod(&pod.id).expect("removing again is fine");
    scene
        .stop_pod(&pod.id)
        .expect("stopping what is gone is fine");
}

/// Engines answer a stop a moment before their lists show it; ours is answered when they do.
#[test]
#[ignore = "needs an engine"]
fn what_was_stopped_is_listed_so_at_once() {
    let scene = Scene::new();
    let pods: Vec<Pod> = (0..6)
        .map(|n| scene.run(&format!("-{n}"), |_| {}))
        .collect();
    let containers: Vec<String> = pods
        .iter()
        .map(|pod| scene.start(pod, "main", |_| {}))
        .collect();
    std::thread::scope(|threads| {
        for (pod, container) in pods.iter().zip(&containers) {
            let scene = &scene;
            threads.spawn(move || {
                scene.stop(container, 0).unwrap();
                let listed = scene.listed(container).unwrap().state();
                assert_eq!(listed, ContainerState::ContainerExited);
                scene.stop_pod(&pod.id).unwrap();
                assert!(!scene.is_ready(&pod.id));
            });
        }
    });
}

#[test]
#[ignore = "needs an engine"]
fn removing_a_pod_that_runs_takes_all_with_it() {
    let scene = Scene::new();
    let pod = scene.pod();
    let container = scene.start(&pod, "main", |_| {});
    scene.remove_pod(&pod.id).unwrap();
    assert!(scene.engine.container(&pod.id).is_none());
    assert!(scene.engine.container(&container).is_none());
}

#[test]
#[ignore = "needs an engine"]
fn lists_filter_by_id_state_and_labels() {
    let scene = Scene::new();
    let with_label = |value: &'static str| {
        move |config: &mut cri::PodSandboxConfig| {
            config.labels.insert("role".into(), value.into());
        }
    };
    let (front, back) = (
        scene.run("-front", with_label("front")),
        scene.run("-back", with_label("back")),
    );
    scene.stop_pod(&back.id).unwrap();
    let mine: BTreeMap<String, String> = front.config.labels.clone();
    let scene_only = BTreeMap::from([(e2e::node::SCENE_LABEL.to_owned(), scene.name().to_owned())]);
    let state = |state: PodSandboxState| {
        Some(cri::PodSandboxStateValue {
            state: state.into(),
        })
    };
    for (name, filter, want) in [
        (
            "labels that both have: newest first",
            cri::PodSandboxFilter {
                label_selector: scene_only.clone(),
                ..Default::default()
            },
            vec![&back, &front],
        ),
        (
            "labels that one has",
            cri::PodSandboxFilter {
                label_selector: mine,
                ..Default::default()
            },
            vec![&front],
        ),
        (
            "ready ones",
            cri::PodSandboxFilter {
                label_selector: scene_only.clone(),
                state: state(PodSandboxState::SandboxReady),
                ..Default::default()
            },
            vec![&front],
        ),
        (
            "others",
            cri::PodSandboxFilter {
                label_selector: scene_only.clone(),
                state: state(PodSandboxState::SandboxNotready),
                ..Default::default()
            },
            vec![&back],
        ),
        (
            "an ID",
            cri::PodSandboxFilter {
                id: back.id.clone(),
                ..Default::default()
            },
            vec![&back],
        ),
        (
            "a short ID",
            cri::PodSandboxFilter {
                id: front.id[..16].into(),
                ..Default::default()
            },
            vec![&front],
        ),
        (
            "an ID in another state",
            cri::PodSandboxFilter {
                id: back.id.clone(),
                state: state(PodSandboxState::SandboxReady),
                ..Default::default()
            },
            vec![],
        ),
    ] {
        let want: Vec<&str> = want.iter().map(|pod: &&Pod| pod.id.as_str()).collect();
        assert_eq!(list(&scene, filter), want, "{name}");
    }
}

/// What lets a node change adapters without recreating its pods.
#[test]
#[ignore = "needs an engine"]
fn identity_on_the_engine_is_dockershims() {
    let scene = Scene::new();
    let pod = scene.run("", |config| {
        config.metadata.as_mut().unwrap().attempt = 3;
        config.labels.insert("app".into(), "web".into());
        config.annotations.insert("note".into(), "x".into());
    });
    let container = scene.create(&pod, "main", |config| {
        config.metadata.as_mut().unwrap().attempt = 2;
        config.labels.insert("tier".into(), "front".into());
        config.annotations.insert("hash".into(), "1a".into());
    });
    let name = scene.name();
    let sandbox = scene.engine.container(&pod.id).unwrap();
    assert_eq!(
        sandbox["Name"],
        json!(format!("/k8s_POD_{name}_e2e_uid-{name}_3"))
    );
    let labels = &sandbox["Config"]["Labels"];
    for (key, value) in [
        ("io.kubernetes.docker.type", "podsandbox"),
        ("io.kubernetes.container.name", "POD"),
        ("app", "web"),
        ("annotation.note", "x"),
    ] {
        assert_eq!(labels[key], json!(value), "sandbox: {key}");
    }
    let inspected = scene.engine.container(&container).unwrap();
    assert_eq!(
        inspected["Name"],
        json!(format!("/k8s_main_{name}_e2e_uid-{name}_2"))
    );
    let labels = &inspected["Config"]["Labels"];
    let log_path = format!("{}/main.log", pod.config.log_directory);
    for (key, value) in [
        ("io.kubernetes.docker.type", "container"),
        ("io.kubernetes.sandbox.id", pod.id.as_str()),
        ("io.kubernetes.container.logpath", &log_path),
        ("tier", "front"),
        ("annotation.hash", "1a"),
    ] {
        assert_eq!(labels[key], json!(value), "container: {key}");
    }
}

#[test]
#[ignore = "needs an engine"]
fn host_ports_lead_to_the_pod() {
    let scene = Scene::new();
    let host_port = free_port();
    let pod = scene.run("", |config| {
        config.port_mappings = vec![port(host_port, 8080)]
    });
    let id = scene.start(&pod, "web", |config| {
        let serve = "mkdir /srv && echo hello >/srv/index.html && exec httpd -f -p 8080 -h /srv";
        configs::script(config, serve);
    });
    let answer = e2e::eventually("the published port answers", || {
        let mut stream = TcpStream::connect(("127.0.0.1", host_port)).ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.contains("200 OK").then_some(text)
    });
    assert!(answer.ends_with("hello\n"), "{answer}");
    scene.stop(&id, 0).unwrap();
}

#[test]
#[ignore = "needs an engine"]
fn a_port_that_is_taken_leaves_nothing() {
    let scene = Scene::new();
    // On every address, as the engine would publish it.
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let config = scene.pod_config("", |config| {
        config.port_mappings = vec![port(taken.local_addr().unwrap().port(), 80)];
        config.dns_config = Some(cri::DnsConfig {
            servers: vec!["192.0.2.1".into()],
            ..Default::default()
        });
    });
    let error = scene.try_run(&config).unwrap_err();
    assert!(
        error.message().contains("port") || error.message().contains("address already in use"),
        "{error}"
    );
    let label = format!("{}={}", e2e::node::SCENE_LABEL, scene.name());
    assert_eq!(scene.engine.labelled(&label), [""; 0]);
    let uid = &config.metadata.as_ref().unwrap().uid;
    for folder in ["sandboxes", "files"] {
        for entry in fs::read_dir(scene.root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap_or_default();
            let left = path.to_str().unwrap().contains(uid) || text.contains(uid.as_str());
            assert!(!left, "left over: {}", path.display());
        }
    }
    drop(taken);
    scene
        .try_run(&config)
        .expect("the same pod, once the port is free");
}

#[test]
#[ignore = "needs an engine"]
fn host_network_pods_are_in_the_nodes_network() {
    let scene = Scene::new();
    let pod = scene.run("", |config| {
        configs::pod_namespaces(config).network = NamespaceMode::Node.into();
        config.hostname = String::new();
    });
    let id = scene.start(&pod, "main", |config| {
        configs::namespaces_of(config).network = NamespaceMode::Node.into();
    });
    let ours = fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(
        scene.sh(&id, "readlink /proc/self/ns/net"),
        ours.to_str().unwrap()
    );
    let status = scene.pod_status(&pod.id);
    assert_eq!(
        status.network.unwrap_or_default().ip,
        "",
        "the node's address is not the pod's"
    );
    let options = status.linux.unwrap().namespaces.unwrap().options.unwrap();
    assert_eq!(options.network(), NamespaceMode::Node);
}

#[test]
#[ignore = "needs an engine"]
fn host_name_and_dns_reach_every_container() {
    let scene = Scene::new();
    let pod = scene.run("", |config| {
        config.hostname = "harbour-7".into();
        config.dns_config = Some(cri::DnsConfig {
            servers: vec!["192.0.2.53".into(), "2001:db8::53".into()],
            searches: vec!["ns.svc.test".into(), "svc.test".into()],
            options: vec!["ndots:5".into()],
        });
    });
    for name in ["one", "two"] {
        let id = scene.start(&pod, name, |_| {});
        assert_eq!(scene.sh(&id, "hostname"), "harbour-7");
        assert_eq!(
            scene.sh(&id, "cat /etc/resolv.conf"),
            "search ns.svc.test svc.test\nnameserver 192.0.2.53\nnameserver 2001:db8::53\noptions ndots:5",
            "{name}"
        );
    }
}

#[test]
#[ignore = "needs an engine"]
fn sysctls_are_the_pods() {
    let scene = Scene::new();
    let pod = scene.run("", |config| {
        configs::pod_linux(config).sysctls = [
            ("net.ipv4.ip_unprivileged_port_start", "77"),
            ("kernel.shm_rmid_forced", "1"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    });
    let id = scene.start(&pod, "main", |_| {});
    let read = |path: &str| scene.sh(&id, &format!("cat /proc/sys/{path}"));
    assert_eq!(read("net/ipv4/ip_unprivileged_port_start"), "77");
    assert_eq!(read("kernel/shm_rmid_forced"), "1");
    let bad = scene.pod_config("-bad", |config| {
        let sysctls = &mut configs::pod_linux(config).sysctls;
        sysctls.insert("kernel.no_such_thing".into(), "1".into());
    });
    let error = scene.try_run(&bad).unwrap_err();
    assert!(error.message().contains("kernel.no_such_thing"), "{error}");
}

/// READY is what the record says: a container that merely runs proves nothing.
#[test]
#[ignore = "needs an engine"]
fn a_sandbox_without_its_mark_is_not_ready() {
    let mut scene = Scene::alone();
    let pod = scene.pod();
    let container = scene.start(&pod, "main", |_| {});
    assert!(scene.is_ready(&pod.id));
    scene.daemon().stop();
    let record = scene.root().join(format!("sandboxes/{}.json", pod.id));
    fs::remove_file(&record).unwrap();
    scene.daemon().start_again();
    scene.reconnect();
    assert!(!scene.is_ready(&pod.id));
    let running = scene.engine.container(&pod.id).unwrap();
    assert_eq!(
        running["State"]["Running"],
        json!(true),
        "nobody stopped it"
    );
    assert_eq!(
        scene.status(&container).state(),
        ContainerState::ContainerRunning
    );
    scene.stop_pod(&pod.id).unwrap();
    scene.remove_pod(&pod.id).unwrap();
    assert!(scene.engine.container(&pod.id).is_none());
    assert!(scene.engine.container(&container).is_none());
}

#[test]
#[ignore = "needs an engine"]
fn a_sandbox_whose_process_died_is_not_ready() {
    let scene = Scene::new();
    let pod = scene.pod();
    scene
        .engine
        .ask("POST", &format!("/containers/{}/kill", pod.id), None);
    e2e::eventually("NOTREADY", || (!scene.is_ready(&pod.id)).then_some(()));
    let new = scene.container_config("main", |_| {});
    refused(
        scene.try_create(&pod, &new),
        Code::FailedPrecondition,
        &pod.id,
    );
    // The kubelet's next step: the same pod, one attempt on.
    let again = scene.run("", |config| config.metadata.as_mut().unwrap().attempt = 1);
    assert!(scene.is_ready(&again.id));
}

#[test]
#[ignore = "needs an engine"]
fn what_was_removed_behind_our_back_can_be_removed() {
    let scene = Scene::new();
    let pod = scene.pod();
    scene.engine.remove(&pod.id);
    refused(scene.try_pod_status(&pod.id), Code::NotFound, &pod.id);
    scene.stop_pod(&pod.id).unwrap();
    scene.remove_pod(&pod.id).unwrap();
    assert!(!records(&scene).iter().any(|file| file.contains(&pod.id)));
}

#[test]
#[ignore = "needs an engine"]
fn incomplete_requests_name_the_field() {
    let scene = Scene::new();
    for (name, field, change) in [
        (
            "no metadata",
            "config.metadata",
            (|config| config.metadata = None) as fn(&mut cri::PodSandboxConfig),
        ),
        ("no name", "config.metadata.name", |config| {
            config.metadata.as_mut().unwrap().name.clear();
        }),
        (
            "a name with an underscore",
            "config.metadata.name",
            |config| {
                config.metadata.as_mut().unwrap().name = "a_b".into();
            },
        ),
        ("no UID", "config.metadata.uid", |config| {
            config.metadata.as_mut().unwrap().uid.clear();
        }),
        (
            "a DNS server that is none",
            "config.dns_config.servers[0]",
            |config| {
                config.dns_config = Some(cri::DnsConfig {
                    servers: vec!["example".into()],
                    ..Default::default()
                });
            },
        ),
        (
            "a port that is none",
            "config.port_mappings[0].container_port",
            |config| {
                config.port_mappings = vec![cri::PortMapping {
                    container_port: 70000,
                    ..Default::default()
                }];
            },
        ),
        (
            "a protocol of the future",
            "config.port_mappings[0].protocol",
            |config| {
                config.port_mappings = vec![cri::PortMapping {
                    protocol: 9,
                    container_port: 80,
                    ..Default::default()
                }];
            },
        ),
        (
            "a label that is ours",
            "config.labels[io.kubernetes.docker.type]",
            |config| {
                let labels = &mut config.labels;
                labels.insert("io.kubernetes.docker.type".into(), "container".into());
            },
        ),
    ] {
        println!("{name}");
        let config = scene.pod_config("", change);
        refused(scene.try_run(&config), Code::InvalidArgument, field);
    }
    let nothing = scene
        .cri
        .run_pod_sandbox(cri::RunPodSandboxRequest::default());
    refused(nothing, Code::InvalidArgument, "config");
    let handler = scene.cri.run_pod_sandbox(cri::RunPodSandboxRequest {
        config: Some(scene.pod_config("", |_| {})),
        runtime_handler: "no-such".into(),
    });
    refused(handler, Code::InvalidArgument, "runtime_handler");
}
