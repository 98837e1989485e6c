//! Limits: at create, changed later, read back, and felt by the process.

use cri_api::runtime::v1 as cri;
use e2e::{Scene, configs, refused};
use serde_json::{Value, json};
use tonic::Code;

const MIB: i64 = 1 << 20;

fn update(
    scene: &Scene,
    id: &str,
    change: impl FnOnce(&mut cri::LinuxContainerResources),
) -> Result<(), tonic::Status> {
    let mut linux = cri::LinuxContainerResources::default();
    change(&mut linux);
    let request = cri::UpdateContainerResourcesRequest {
        container_id: id.into(),
        linux: Some(linux),
        ..Default::default()
    };
    scene.cri.update_container_resources(request).map(|_| ())
}

/// Limits as the status tells them.
fn told(scene: &Scene, id: &str) -> cri::LinuxContainerResources {
    scene.status(id).resources.unwrap().linux.unwrap()
}

/// The memory limit that the container's own cgroup has, read from inside it.
fn memory_in_force(scene: &Scene, id: &str) -> i64 {
    let v1 = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
    let v2 = "/sys/fs/cgroup/memory.max";
    scene
        .sh(id, &format!("cat {v1} 2>/dev/null || cat {v2}"))
        .parse()
        .unwrap()
}

fn host_config(scene: &Scene, id: &str) -> Value {
    scene.engine.container(id).unwrap()["HostConfig"].clone()
}

/// Whether the node's kernel accounts swap.
fn swap(scene: &Scene) -> bool {
    scene.engine.ask("GET", "/info", None)["SwapLimit"] == json!(true)
}

#[test]
#[ignore = "needs an engine"]
fn limits_at_create() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        let resources = configs::resources(config);
        resources.cpu_period = 50_000;
        resources.cpu_quota = 25_000;
        resources.cpu_shares = 300;
        resources.memory_limit_in_bytes = 64 * MIB;
        resources.oom_score_adj = 500;
        resources.cpuset_cpus = "0".into();
        resources.cpuset_mems = "0".into();
        // As the kubelet sends them always: they ask for nothing.
        resources.hugepage_limits = vec![cri::HugepageLimit {
            page_size: "2MB".into(),
            limit: 0,
        }];
    });
    let host = host_config(&scene, &id);
    for (field, want) in [
        ("CpuPeriod", json!(50_000)),
        ("CpuQuota", json!(25_000)),
        ("CpuShares", json!(300)),
        ("Memory", json!(64 * MIB)),
        ("OomScoreAdj", json!(500)),
        ("CpusetCpus", json!("0")),
        ("CpusetMems", json!("0")),
    ] {
        assert_eq!(host[field], want, "{field}");
    }
    if swap(&scene) {
        assert_eq!(
            host["MemorySwap"],
            json!(64 * MIB),
            "no swap unless asked for"
        );
    }
    let told = told(&scene, &id);
    assert_eq!(
        (told.cpu_period, told.cpu_quota, told.cpu_shares),
        (50_000, 25_000, 300)
    );
    assert_eq!(
        (told.memory_limit_in_bytes, told.oom_score_adj),
        (64 * MIB, 500)
    );
    assert_eq!(
        (told.cpuset_cpus.as_str(), told.cpuset_mems.as_str()),
        ("0", "0")
    );
    assert_eq!(memory_in_force(&scene, &id), 64 * MIB);
    assert_eq!(scene.sh(&id, "cat /proc/1/oom_score_adj"), "500");
    assert_eq!(
        scene.sh(&id, "grep Cpus_allowed_list /proc/1/status | tr -d '\\t'"),
        "Cpus_allowed_list:0"
    );
}

#[test]
#[ignore = "needs an engine"]
fn limits_change_while_it_runs() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        let resources = configs::resources(config);
        resources.memory_limit_in_bytes = 64 * MIB;
        resources.cpu_shares = 300;
        resources.oom_score_adj = 500;
    });
    for (name, memory) in [("raised", 192 * MIB), ("lowered", 48 * MIB)] {
        update(&scene, &id, |linux| linux.memory_limit_in_bytes = memory)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(memory_in_force(&scene, &id), memory, "{name}");
        let told = told(&scene, &id);
        assert_eq!(told.memory_limit_in_bytes, memory, "{name}");
        assert_eq!(told.cpu_shares, 300, "{name}: what is not said stays");
    }
    update(&scene, &id, |linux| {
        linux.cpu_shares = 600;
        linux.cpu_period = 100_000;
        linux.cpu_quota = 30_000;
        linux.cpuset_cpus = "0".into();
        linux.cpuset_mems = "0".into();
        // The kubelet repeats it in every resize.
        linux.oom_score_adj = 500;
    })
    .unwrap();
    let told = told(&scene, &id);
    assert_eq!(
        (told.cpu_period, told.cpu_quota, told.cpu_shares),
        (100_000, 30_000, 600)
    );
    assert_eq!(told.cpuset_cpus, "0");
    assert_eq!(told.memory_limit_in_bytes, 48 * MIB);
    assert_eq!(
        scene.sh(&id, "grep Cpus_allowed_list /proc/1/status | tr -d '\\t'"),
        "Cpus_allowed_list:0"
    );
}

#[test]
#[ignore = "needs an engine"]
fn limits_change_before_it_starts() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.create(&pod, "main", |config| {
        configs::resources(config).memory_limit_in_bytes = 64 * MIB;
    });
    update(&scene, &id, |linux| linux.memory_limit_in_bytes = 96 * MIB).unwrap();
    scene.try_start(&id).unwrap();
    assert_eq!(memory_in_force(&scene, &id), 96 * MIB);
}

#[test]
#[ignore = "needs an engine"]
fn what_cannot_change_is_refused_and_nothing_changes() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        configs::resources(config).memory_limit_in_bytes = 64 * MIB;
    });
    type Change = fn(&mut cri::LinuxContainerResources);
    let cases: [(&str, Code, Change); 6] = [
        ("linux.oom_score_adj", Code::Unimplemented, |linux| {
            linux.oom_score_adj = 7
        }),
        ("linux.hugepage_limits[2MB]", Code::Unimplemented, |linux| {
            linux.hugepage_limits = vec![cri::HugepageLimit {
                page_size: "2MB".into(),
                limit: 1,
            }];
        }),
        ("linux.unified[memory.high]", Code::Unimplemented, |linux| {
            linux.unified = [("memory.high".to_owned(), "1".to_owned())].into();
        }),
        (
            "linux.memory_limit_in_bytes",
            Code::InvalidArgument,
            |linux| {
                linux.memory_limit_in_bytes = -1;
            },
        ),
        ("linux.cpu_shares", Code::InvalidArgument, |linux| {
            linux.cpu_shares = -1
        }),
        ("linux.oom_score_adj", Code::InvalidArgument, |linux| {
            linux.oom_score_adj = 1001
        }),
    ];
    for (field, code, change) in cases {
        let answer = update(&scene, &id, |linux| {
            linux.memory_limit_in_bytes = 96 * MIB;
            change(linux);
        });
        refused(answer, code, field);
        assert_eq!(memory_in_force(&scene, &id), 64 * MIB, "{field}");
    }
    let request = cri::UpdateContainerResourcesRequest {
        container_id: id.clone(),
        ..Default::default()
    };
    let answer = |request| scene.cri.update_container_resources(request);
    refused(answer(request.clone()), Code::InvalidArgument, "linux");
    let windows = cri::UpdateContainerResourcesRequest {
        windows: Some(cri::WindowsContainerResources::default()),
        ..request
    };
    refused(answer(windows), Code::Unimplemented, "windows");
    refused(
        update(&scene, "", |_| {}),
        Code::InvalidArgument,
        "container_id",
    );
    refused(
        update(&scene, "0123456789ab", |_| {}),
        Code::NotFound,
        "0123456789ab",
    );
}

#[test]
#[ignore = "needs an engine"]
fn a_low_oom_score_is_set_as_far_as_the_engine_can() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        configs::resources(config).oom_score_adj = -997;
    });
    let status = scene
        .cri
        .status(cri::StatusRequest { verbose: true })
        .unwrap();
    let engine: Value = serde_json::from_str(&status.info["engine"]).unwrap();
    let least = engine["minOomScoreAdj"].as_i64().unwrap();
    let found: i64 = scene.sh(&id, "cat /proc/1/oom_score_adj").parse().unwrap();
    assert_eq!(found, least.max(-997));
    assert_eq!(told(&scene, &id).oom_score_adj, found);
    // What the kubelet repeats when it resizes is what it asked for, not what was set.
    update(&scene, &id, |linux| {
        linux.oom_score_adj = -997;
        linux.cpu_shares = 300;
    })
    .unwrap();
    assert_eq!(told(&scene, &id).cpu_shares, 300);
}

#[test]
#[ignore = "needs an engine"]
fn swap_is_counted_with_memory() {
    let scene = Scene::new();
    let pod = scene.pod();
    let limits = |name: &str, memory: i64, swap: i64| {
        scene.container_config(name, |config| {
            let resources = configs::resources(config);
            resources.memory_limit_in_bytes = memory;
            resources.memory_swap_limit_in_bytes = swap;
        })
    };
    let field = "config.linux.resources.memory_swap_limit_in_bytes";
    let less = limits("less", 64 * MIB, 32 * MIB);
    let more = limits("more", 64 * MIB, 128 * MIB);
    if swap(&scene) {
        refused(scene.try_create(&pod, &less), Code::InvalidArgument, field);
        let id = scene.try_create(&pod, &more).unwrap();
        assert_eq!(host_config(&scene, &id)["MemorySwap"], json!(128 * MIB));
        assert_eq!(told(&scene, &id).memory_swap_limit_in_bytes, 128 * MIB);
        update(&scene, &id, |linux| linux.memory_limit_in_bytes = 256 * MIB).unwrap();
        assert_eq!(host_config(&scene, &id)["Memory"], json!(256 * MIB));
    } else {
        refused(scene.try_create(&pod, &more), Code::Unimplemented, field);
    }
    let equal = scene.try_create(&pod, &limits("equal", 64 * MIB, 64 * MIB));
    equal.expect("no more than memory asks for no swap");
}
