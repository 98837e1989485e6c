//! UpdateContainerResources: what is said changes, what is not said stays, what cannot change is refused by name.

use springline::error::Kind;
use springline::model::resources::LinuxResources;

use crate::assert_refused;
use crate::fake::{World, container, pod};

fn limits() -> LinuxResources {
    LinuxResources::default()
}

#[tokio::test]
async fn what_is_said_changes_and_the_rest_stays() {
    const MIB: i64 = 1 << 20;
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let mut config = container("app");
    config.resources = LinuxResources {
        memory_limit: 64 * MIB,
        cpu_shares: 100,
        oom_score_adj: 900,
        ..limits()
    };
    let id = world.start(&pod, &config).await;
    let at_first = world.engine.look(&id).unwrap().resources;
    for (case, asked, want) in [
        (
            "memory up, whose swap has to follow",
            LinuxResources {
                memory_limit: 128 * MIB,
                ..limits()
            },
            LinuxResources {
                memory_limit: 128 * MIB,
                memory_swap_limit: 128 * MIB,
                ..at_first.clone()
            },
        ),
        (
            "everything, with what CRI repeats",
            LinuxResources {
                cpu_period: 100_000,
                cpu_quota: 20_000,
                cpu_shares: 200,
                memory_limit: 32 * MIB,
                memory_swap_limit: 48 * MIB,
                oom_score_adj: 900,
                cpuset_cpus: "1".into(),
                cpuset_mems: "0".into(),
                oom_group: Some(true),
                ..limits()
            },
            LinuxResources {
                cpu_period: 100_000,
                cpu_quota: 20_000,
                cpu_shares: 200,
                memory_limit: 32 * MIB,
                memory_swap_limit: 48 * MIB,
                oom_score_adj: 900,
                cpuset_cpus: "1".into(),
                cpuset_mems: "0".into(),
                ..limits()
            },
        ),
    ] {
        let result = world.runtime.update_container_resources(&id[..12], &asked);
        result.await.expect(case);
        let status = world.runtime.container_status(&id).await.unwrap();
        assert_eq!(status.resources, want, "{case}");
    }
}

#[tokio::test]
async fn nothing_said_asks_the_engine_nothing() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    let asked = limits();
    let nothing = world.runtime.update_container_resources(&id, &asked);
    nothing.await.unwrap();
    assert_eq!(world.script.count("engine.update"), 0);
}

#[tokio::test]
async fn what_cannot_change_is_refused_by_name() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    let before = world.engine.look(&id).unwrap().resources;
    for (case, asked, kind, field) in [
        (
            "oom_score_adj",
            LinuxResources {
                oom_score_adj: 5,
                ..limits()
            },
            Kind::Unimplemented,
            "linux.oom_score_adj",
        ),
        (
            "huge pages",
            LinuxResources {
                hugepages: [("1GB".to_owned(), 1)].into(),
                ..limits()
            },
            Kind::Unimplemented,
            "linux.hugepage_limits[1GB]",
        ),
        (
            "cgroup files",
            LinuxResources {
                unified: [("memory.high".to_owned(), "1".to_owned())].into(),
                ..limits()
            },
            Kind::Unimplemented,
            "linux.unified[memory.high]",
        ),
        (
            "swap alone",
            LinuxResources {
                memory_swap_limit: 64,
                ..limits()
            },
            Kind::InvalidArgument,
            "linux.memory_swap_limit_in_bytes",
        ),
    ] {
        let result = world.runtime.update_container_resources(&id, &asked).await;
        assert_refused(case, result, kind, field);
    }
    assert_eq!(world.script.count("engine.update"), 0);
    assert_eq!(world.engine.look(&id).unwrap().resources, before);
    for (case, id, kind, begins) in [
        ("missing", "0123456789ab", Kind::NotFound, "container"),
        ("a sandbox", pod.id.as_str(), Kind::NotFound, "container"),
        ("empty", "", Kind::InvalidArgument, "container_id"),
    ] {
        let result = world
            .runtime
            .update_container_resources(id, &limits())
            .await;
        assert_refused(case, result, kind, begins);
    }
}
