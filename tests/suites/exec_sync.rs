//! ExecSync: what a command writes and how it ends, its limits, and that a timeout leaves nothing behind.

use std::time::Duration;

use cri_api::runtime::v1 as cri;
use e2e::{Scene, configs, environment, eventually, refused};
use tonic::Code;

/// CRI: each stream is cut here, and the call succeeds.
/// What the kubelet takes in one message, less what the message needs beside the streams.
const LIMIT: usize = (16 << 20) - 64;

#[test]
#[ignore = "needs an engine"]
fn streams_are_kept_apart_and_codes_told() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |config| {
        config.working_dir = "/usr".into();
        config.envs = vec![cri::KeyValue {
            key: "A".into(),
            value: "a b".into(),
        }];
        configs::security(config).run_as_user = Some(cri::Int64Value { value: 33 });
    });
    for (name, script, stdout, stderr, code) in [
        ("nothing", "", &b""[..], &b""[..], 0),
        ("both", "echo out; echo err >&2", b"out\n", b"err\n", 0),
        ("failure", "echo why >&2; exit 42", b"", b"why\n", 42),
        ("highest code", "exit 255", b"", b"", 255),
        ("bytes", r"printf 'a\0\377\r\n'", b"a\0\xff\r\n", b"", 0),
        (
            "place",
            r#"echo "$A|$PWD|$(id -u)""#,
            b"a b|/usr|33\n",
            b"",
            0,
        ),
        ("no input", "cat; echo end", b"end\n", b"", 0),
    ] {
        let output = scene.exec(&id, &["/bin/sh", "-c", script]).unwrap();
        assert_eq!(output.stdout, stdout, "{name}");
        assert_eq!(output.stderr, stderr, "{name}");
        assert_eq!(output.exit_code, code, "{name}");
    }
}

#[test]
#[ignore = "needs an engine"]
fn what_cannot_run_says_so_on_stderr() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    // Older engines take what is not there for what may not be run.
    let missing = match environment::engine_name().as_str() {
        "20" | "26" => 126,
        _ => 127,
    };
    for (cmd, code, says) in [
        ("/no/such/program", missing, "no such file"),
        ("no-such-program", missing, "no-such-program"),
        ("/etc/passwd", 126, "permission denied"),
    ] {
        let output = scene.exec(&id, &[cmd]).unwrap();
        assert_eq!(output.exit_code, code, "{cmd}");
        assert_eq!(output.stdout, b"", "{cmd}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(says), "{cmd}: {stderr}");
    }
}

#[test]
#[ignore = "needs an engine"]
fn a_stream_that_ended_early_is_no_end() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    let script = "echo said; exec >&- 2>&-; while ! [ -e /tmp/go ]; do sleep 0.1; done; exit 9";
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| scene.exec(&id, &["/bin/sh", "-c", script]));
        scene.sh(&id, "touch /tmp/go");
        let output = waiting.join().unwrap().unwrap();
        assert_eq!(
            (output.stdout.as_slice(), output.exit_code),
            (&b"said\n"[..], 9)
        );
    });
}

#[test]
#[ignore = "needs an engine"]
fn streams_are_cut_at_16_mib() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    for (name, bytes, kept) in [
        ("just fits", LIMIT, LIMIT),
        ("one more", LIMIT + 1, LIMIT),
        ("much more", LIMIT + (3 << 20), LIMIT),
    ] {
        let script = format!("head -c {bytes} /dev/zero; exit 3");
        let output = scene.exec(&id, &["/bin/sh", "-c", &script]).unwrap();
        assert_eq!((output.stdout.len(), output.exit_code), (kept, 3), "{name}");
        assert_eq!(output.stderr, b"", "{name}");
    }
}

/// Processes of the container whose command line has this word.
fn processes(scene: &Scene, id: &str, word: &str) -> usize {
    // The brackets keep grep from finding itself.
    let (first, rest) = word.split_at(1);
    let count = scene.sh(
        id,
        &format!("ps -o args | grep -c '[{first}]{rest}' || true"),
    );
    count.parse().unwrap()
}

#[test]
#[ignore = "needs an engine"]
fn a_timeout_leaves_no_process() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    let exec = |cri: &e2e::cri::Cri, script: &str, timeout: i64| {
        cri.exec_sync(cri::ExecSyncRequest {
            container_id: id.clone(),
            cmd: ["/bin/sh", "-c", script].map(String::from).into(),
            timeout,
        })
    };
    for (name, script) in [
        ("a shell and its children", "sleep 4711 & sleep 4711; true"),
        ("deaf to TERM", "trap '' TERM; while :; do sleep 4711; done"),
        ("its outputs closed", "exec >&- 2>&-; sleep 4711"),
        ("much to say", "yes 4711"),
    ] {
        refused(exec(&scene.cri, script, 1), Code::DeadlineExceeded, "");
        assert_eq!(processes(&scene, &id, "4711"), 0, "{name}");
    }
    // The caller's own deadline ends the command too, a moment later.
    let hasty = scene.cri.with_deadline(Duration::from_secs(1));
    let status = exec(&hasty, "sleep 4712", 0).unwrap_err();
    assert!(
        [Code::DeadlineExceeded, Code::Cancelled].contains(&status.code()),
        "{status}"
    );
    eventually("the command's end", || {
        (processes(&scene, &id, "4712") == 0).then_some(())
    });
    assert_eq!(scene.sh(&id, "echo alive"), "alive");
}

#[test]
#[ignore = "needs an engine"]
fn many_at_once() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.start(&pod, "main", |_| {});
    std::thread::scope(|threads| {
        let all: Vec<_> = (0..12)
            .map(|n| {
                let (scene, id) = (&scene, &id);
                threads.spawn(move || scene.sh(id, &format!("echo {n}; echo {n} >&2")))
            })
            .collect();
        for (n, thread) in all.into_iter().enumerate() {
            assert_eq!(thread.join().unwrap(), n.to_string());
        }
    });
}

#[test]
#[ignore = "needs an engine"]
fn only_in_what_runs_and_only_a_command() {
    let scene = Scene::new();
    let pod = scene.pod();
    let id = scene.create(&pod, "main", |_| {});
    refused(scene.exec(&id, &["true"]), Code::FailedPrecondition, &id);
    refused(scene.exec(&id, &[]), Code::InvalidArgument, "cmd");
    refused(
        scene.exec("", &["true"]),
        Code::InvalidArgument,
        "container_id",
    );
    refused(scene.exec(&pod.id, &["true"]), Code::NotFound, &pod.id);
    let negative = scene.cri.exec_sync(cri::ExecSyncRequest {
        container_id: id,
        cmd: vec!["true".into()],
        timeout: -1,
    });
    refused(negative, Code::InvalidArgument, "timeout");
}
