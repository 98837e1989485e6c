//! Exec, Attach and PortForward: what is allowed, when the URL is asked for and again when the client comes.

use futures_util::TryStreamExt;
use springline::error::Kind;
use springline::model::container::EngineState;
use springline::runtime::ports::{ExecOutput, ExecSpec, Output, StreamBackend, StreamSpec};
use tokio::io::AsyncReadExt;

use crate::assert_refused;
use crate::fake::{Exec, FakeStreams, World, container, pod};

const ALL: StreamSpec = StreamSpec {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};
const TTY_WITH_STDERR: StreamSpec = StreamSpec { tty: true, ..ALL };
const NONE: StreamSpec = StreamSpec {
    stdin: false,
    stdout: false,
    stderr: false,
    tty: false,
};

fn spec(cmd: &[&str], streams: StreamSpec) -> ExecSpec {
    ExecSpec {
        cmd: cmd.iter().map(|word| (*word).to_owned()).collect(),
        streams,
    }
}

#[tokio::test]
async fn exec_and_attach_only_where_and_as_it_is_possible() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let runs = world.start(&pod, &container("app")).await;
    let created = world.create(&pod, &container("later")).await;
    let paused = world.start(&pod, &container("paused")).await;
    world.engine.set_state(&paused, EngineState::Paused);
    let cases = [
        ("created", created.as_str(), ALL, Kind::FailedPrecondition),
        ("paused", &paused, ALL, Kind::FailedPrecondition),
        ("missing", "0123456789ab", ALL, Kind::NotFound),
        ("a sandbox", &pod.id, ALL, Kind::NotFound),
        ("empty", "", ALL, Kind::InvalidArgument),
        ("stderr", &runs, TTY_WITH_STDERR, Kind::InvalidArgument),
        ("stdin", &runs, NONE, Kind::InvalidArgument),
    ];
    for (case, id, streams, kind) in cases {
        let begins = match kind {
            Kind::InvalidArgument if id.is_empty() => "container_id",
            Kind::InvalidArgument => case,
            _ => "container",
        };
        let command = spec(&["sh"], streams);
        let runtime = &world.runtime;
        assert_refused(case, runtime.may_exec(id, &command).await, kind, begins);
        assert_refused(case, runtime.may_attach(id, streams).await, kind, begins);
        let exec = StreamBackend::exec(runtime.as_ref(), id, &command).await;
        assert_refused(case, exec.map(drop), kind, begins);
        let attach = StreamBackend::attach(runtime.as_ref(), id, streams).await;
        assert_refused(case, attach.map(drop), kind, begins);
    }
    let nothing = world.runtime.may_exec(&runs, &spec(&[], ALL)).await;
    assert_refused("no command", nothing, Kind::InvalidArgument, "cmd");
    assert_eq!(world.script.count("engine.exec_session"), 0);
    assert_eq!(world.script.count("engine.attach"), 0);
}

#[tokio::test]
async fn a_session_is_the_engines() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let id = world.start(&pod, &container("app")).await;
    world.engine.set_exec(Exec::Answer(ExecOutput {
        stdout: b"out".to_vec(),
        stderr: b"err".to_vec(),
        exit_code: 3,
    }));
    let command = spec(&["sh"], ALL);
    let full = world.runtime.may_exec(&id[..12], &command).await.unwrap();
    assert_eq!(
        full, id,
        "the whole ID, so that it stays the same container"
    );
    let session = world.runtime.exec(&full, &command).await.unwrap();
    assert!(session.stdin.is_some());
    let said: Vec<Output> = session.output.try_collect().await.unwrap();
    let want = [Output::Stdout("out".into()), Output::Stderr("err".into())];
    assert_eq!(said, want);
    assert_eq!(session.control.exit_code().await.unwrap(), 3);
    world.runtime.attach(&full, ALL).await.unwrap();
    assert_eq!(world.script.count("engine.attach"), 1);
}

#[tokio::test]
async fn ports_of_a_ready_sandbox() {
    let world = World::new();
    let pod = world.run(pod("web")).await;
    let app = world.start(&pod, &container("app")).await;
    let runtime = world.runtime.as_ref();
    for (case, id, kind, begins) in [
        ("missing", "0123456789ab", Kind::NotFound, "pod sandbox"),
        ("a container", app.as_str(), Kind::NotFound, "pod sandbox"),
        ("empty", "", Kind::InvalidArgument, "pod_sandbox_id"),
    ] {
        assert_refused(case, runtime.may_port_forward(id).await, kind, begins);
        assert_refused(case, runtime.dial(id, 80).await, kind, begins);
    }
    let full = runtime.may_port_forward(&pod.id[..12]).await.unwrap();
    assert_eq!(full, pod.id);
    let mut stream = StreamBackend::dial(runtime, &full, FakeStreams::OPEN_PORT)
        .await
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "ahoy");
    let closed = runtime.dial(&full, 81).await;
    let begins = format!("cannot connect to port 81 of pod sandbox {full}");
    assert_refused("closed", closed, Kind::FailedPrecondition, &begins);

    let dials = world.script.count("dialer.dial");
    runtime.stop_pod_sandbox(&pod.id).await.unwrap();
    for result in [
        runtime.may_port_forward(&pod.id).await.map(drop),
        runtime
            .dial(&pod.id, FakeStreams::OPEN_PORT)
            .await
            .map(drop),
    ] {
        assert_refused("stopped", result, Kind::FailedPrecondition, "pod sandbox");
    }
    assert_eq!(world.script.count("dialer.dial"), dials);
}
