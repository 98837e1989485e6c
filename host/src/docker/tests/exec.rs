//! Execs: an upgraded connection with framed output, and an exit that the engine tells apart from its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::{Answer, Heard, ScriptedEngine, json};
use crate::runtime::ports::{ContainerEngine, EngineError, ExecOutput};

const UPGRADED: &[u8] = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

fn frame(stream: u8, text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![stream, 0, 0, 0];
    bytes.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
    bytes.extend(text);
    bytes
}

/// An engine whose exec says `said` on its stream, and `states` one after the other when asked (the last for ever).
fn engine(said: Vec<u8>, states: &'static [&'static str]) -> ScriptedEngine {
    let asked = AtomicU32::new(0);
    ScriptedEngine::new("1.41", move |heard: &Heard| {
        if heard.line.ends_with("/containers/x/exec") {
            json(201, r#"{"Id":"e1"}"#)
        } else if heard.line.ends_with("/exec/e1/start") {
            Answer::Bytes(said.clone())
        } else {
            let n = asked.fetch_add(1, Ordering::Relaxed) as usize;
            json(200, states[n.min(states.len() - 1)])
        }
    })
}

fn said(frames: &[Vec<u8>]) -> Vec<u8> {
    [UPGRADED, &frames.concat()].concat()
}

async fn run(engine: &ScriptedEngine, limit: usize) -> Result<ExecOutput, EngineError> {
    let cmd = ["cat".to_owned(), "a b".to_owned()];
    engine.client().exec_sync("x", &cmd, limit, None).await
}

#[tokio::test]
async fn output_is_taken_apart_and_cut() {
    let frames = [
        frame(1, b"out"),
        frame(2, b"err"),
        frame(1, b"more"),
        frame(2, b""),
    ];
    let engine = engine(
        said(&frames),
        &[r#"{"Running":false,"ExitCode":3,"Pid":7}"#],
    );
    let output = run(&engine, 5).await.unwrap();
    assert_eq!(output.stdout, b"outmo");
    assert_eq!(output.stderr, b"err");
    assert_eq!(output.exit_code, 3);
    assert_eq!(
        engine.lines(),
        [
            "POST /v1.41/containers/x/exec",
            "POST /v1.41/exec/e1/start",
            "GET /v1.41/exec/e1/json",
        ]
    );
    let heard = engine.all();
    let start = heard.iter().find(|h| h.line.ends_with("/start")).unwrap();
    assert!(
        start.head.to_lowercase().contains("upgrade: tcp"),
        "{}",
        start.head
    );
    let create: Value = serde_json::from_slice(&heard[2].body).unwrap();
    let mark = create["Env"][0].as_str().unwrap();
    assert!(mark.starts_with("SPRINGLINE_EXEC="), "{mark}");
    assert_eq!(
        create,
        serde_json::json!({
            "AttachStdin": false, "AttachStdout": true, "AttachStderr": true, "Tty": false,
            "Cmd": ["cat", "a b"], "Env": [mark],
        })
    );
    let start: Value = serde_json::from_slice(&start.body).unwrap();
    assert_eq!(start, serde_json::json!({"Detach": false, "Tty": false}));
}

#[tokio::test]
async fn an_end_of_output_is_no_end_of_the_command() {
    let engine = engine(
        said(&[frame(1, b"early")]),
        &[
            r#"{"Running":true,"ExitCode":null,"Pid":7}"#,
            r#"{"Running":true,"ExitCode":null,"Pid":7}"#,
            r#"{"Running":false,"ExitCode":null,"Pid":7}"#,
            r#"{"Running":false,"ExitCode":9,"Pid":7}"#,
        ],
    );
    let output = run(&engine, 100).await.unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.exit_code),
        (&b"early"[..], 9)
    );
    assert_eq!(engine.count("/exec/e1/json"), 4);
}

#[tokio::test]
async fn why_a_command_could_not_run_is_on_stderr() {
    let reason = "OCI runtime exec failed: no such file";
    let never = r#"{"Running":false,"ExitCode":127,"Pid":0}"#;
    for (name, start) in [
        ("in the stream", said(&[frame(1, reason.as_bytes())])),
        (
            "as a refusal",
            super::http(400, "", &format!(r#"{{"message":"{reason}"}}"#)),
        ),
    ] {
        let states: &'static [&'static str] = Box::leak(Box::new([never]));
        let output = run(&engine(start, states), 1000).await.expect(name);
        assert_eq!(output.exit_code, 127, "{name}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), reason, "{name}");
        assert!(output.stdout.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn what_is_no_exec() {
    let ended = r#"{"Running":false,"ExitCode":0,"Pid":7}"#;
    for (name, start, want) in [
        (
            "gone",
            super::http(404, "", r#"{"message":"words"}"#),
            "not found",
        ),
        (
            "paused",
            super::http(409, "", r#"{"message":"words"}"#),
            "conflict",
        ),
        ("without frames", said(&[b"plain text".to_vec()]), "garbled"),
        (
            "half a frame",
            said(&[frame(1, b"four")[..10].to_vec()]),
            "garbled",
        ),
        ("no HTTP", b"what?\r\n\r\n".to_vec(), "garbled"),
        ("no answer", Vec::new(), "unreachable"),
        (
            "not upgraded",
            super::http(500, "", r#"{"message":"words"}"#),
            "failed",
        ),
    ] {
        let states: &'static [&'static str] = Box::leak(Box::new([ended]));
        let got = match run(&engine(start, states), 1000).await {
            Err(EngineError::NotFound(_)) => "not found",
            Err(EngineError::Conflict(_)) => "conflict",
            Err(EngineError::Garbled(_)) => "garbled",
            Err(EngineError::Unreachable { .. }) => "unreachable",
            Err(EngineError::Failed(_)) => "failed",
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(got, want, "{name}");
    }
}

#[tokio::test]
async fn a_timeout_never_kills_what_is_not_in_the_container() {
    let gone = Arc::new(tokio::sync::Notify::new());
    let mut bystander = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let state = format!(
        r#"{{"Running":true,"Pid":{},"ContainerID":"{}"}}"#,
        bystander.id(),
        "0123456789abcdef".repeat(4)
    );
    let engine = ScriptedEngine::new("1.41", move |heard: &Heard| {
        if heard.line.ends_with("/containers/x/exec") {
            json(201, r#"{"Id":"e1"}"#)
        } else if heard.line.ends_with("/exec/e1/start") {
            Answer::Hold(UPGRADED.to_vec(), Arc::clone(&gone))
        } else {
            json(200, &state)
        }
    });
    let after = std::time::Duration::from_millis(50);
    let cmd = ["sleep".to_owned()];
    let result = engine.client().exec_sync("x", &cmd, 10, Some(after)).await;
    assert_eq!(result, Err(EngineError::Timeout { after }));
    assert_eq!(engine.count("/exec/e1/json"), 1);
    assert_eq!(bystander.try_wait().unwrap(), None, "it lives");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
