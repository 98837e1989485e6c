//! ExecSync.

use std::time::Duration;

use springline::error::Kind;
use springline::model::container::EngineState;
use springline::runtime::ports::ExecOutput;

use crate::assert_refused;
use crate::fake::{Exec, World, container, pod};

fn cmd() -> Vec<String> {
    vec!["sh".into(), "-c".into(), "exit 3".into()]
}

#[tokio::test]
async fn the_output_comes_with_the_exit_code() {
    const LIMIT: usize = 16 * 1024 * 1024;
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    world.engine.set_exec(Exec::Answer(ExecOutput {
        stdout: vec![b'o'; LIMIT + 1],
        stderr: b"e".to_vec(),
        exit_code: 3,
    }));
    let output = world
        .runtime
        .exec_sync(&id[..12], &cmd(), None)
        .await
        .unwrap();
    // Cut, and no error (CVE-2022-1708).
    assert_eq!(output.stdout.len(), LIMIT);
    assert_eq!((output.stderr.as_slice(), output.exit_code), (&b"e"[..], 3));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_too_long_is_a_deadline() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    world.engine.set_exec(Exec::Forever);
    let timeout = Some(Duration::from_secs(1));
    let result = world.runtime.exec_sync(&id, &cmd(), timeout).await;
    assert_refused(
        "timeout",
        result,
        Kind::DeadlineExceeded,
        "deadline exceeded: the command",
    );
}

#[tokio::test]
async fn only_in_a_container_that_runs() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.create(&pod, &container("app")).await;
    for (case, id, kind, begins) in [
        (
            "created",
            id.as_str(),
            Kind::FailedPrecondition,
            "container",
        ),
        ("missing", "0123456789ab", Kind::NotFound, "container"),
        ("a sandbox", pod.id.as_str(), Kind::NotFound, "container"),
        ("empty", "", Kind::InvalidArgument, "container_id"),
    ] {
        let result = world.runtime.exec_sync(id, &cmd(), None).await;
        assert_refused(case, result, kind, begins);
    }
    world.runtime.start_container(&id).await.unwrap();
    world.engine.set_state(&id, EngineState::Paused);
    let result = world.runtime.exec_sync(&id, &cmd(), None).await;
    assert_refused("paused", result, Kind::FailedPrecondition, "container");
    assert_eq!(world.script.count("engine.exec"), 0);
}
