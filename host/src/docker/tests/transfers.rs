//! Pulls and loads: a stream of JSON that began well.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use tokio::sync::Notify;

use super::{Answer, ScriptedEngine, json, until};
use crate::model::image::RegistryAuth;
use crate::runtime::ports::{ContainerEngine, EngineError, PullProgress};

fn quiet() -> PullProgress {
    Arc::new(|_| {})
}

fn stream(lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{lines}").into_bytes()
}

#[tokio::test]
async fn a_pull_says_what_it_wants() {
    let engine = ScriptedEngine::new("1.41", |_| {
        Answer::Bytes(stream("{\"status\":\"Done\"}\r\n"))
    });
    let client = engine.client();
    let auth = RegistryAuth {
        username: "u".into(),
        password: "p>?".into(),
        server_address: "h:1".into(),
        ..RegistryAuth::default()
    };
    client.pull("h:1/a/b", None, quiet()).await.unwrap();
    client.pull("b:2", Some(&auth), quiet()).await.unwrap();
    client
        .pull("b@sha256:00", Some(&RegistryAuth::default()), quiet())
        .await
        .unwrap();
    assert_eq!(
        engine.lines(),
        [
            "POST /v1.41/images/create?fromImage=h%3A1%2Fa%2Fb&tag=latest",
            "POST /v1.41/images/create?fromImage=b&tag=2",
            "POST /v1.41/images/create?fromImage=b&tag=sha256%3A00",
        ]
    );
    let sent: Vec<Option<String>> = engine.all()[2..]
        .iter()
        .map(|h| {
            let line = h
                .head
                .lines()
                .find(|l| l.to_lowercase().starts_with("x-registry-auth"))?;
            let value = line.split_once(": ")?.1;
            let bytes = base64::engine::general_purpose::URL_SAFE
                .decode(value)
                .ok()?;
            String::from_utf8(bytes).ok()
        })
        .collect();
    let want = r#"{"password":"p>?","serveraddress":"h:1","username":"u"}"#;
    assert_eq!(sent, [None, Some(want.to_owned()), None]);
}

#[tokio::test]
async fn progress_is_told_as_it_comes() {
    let engine = ScriptedEngine::new("1.41", |_| {
        Answer::Bytes(stream(
            "{\"status\":\"Pulling from a\",\"id\":\"1\"}\r\n\r\n{\"status\":\"Downloading\",\"progressDetail\":{\"current\":1,\"total\":2},\
             \"progress\":\"[=> ] 1B/2B\",\"id\":\"f00\"}\n{\"progressDetail\":null}\n{\"status\":\"Status: Downloaded\"}",
        ))
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let progress: PullProgress = {
        let told = Arc::clone(&told);
        Arc::new(move |step| told.lock().unwrap().push(step.to_owned()))
    };
    engine.client().pull("a", None, progress).await.unwrap();
    assert_eq!(
        *told.lock().unwrap(),
        [
            "1 Pulling from a",
            "f00 Downloading [=> ] 1B/2B",
            "Status: Downloaded"
        ]
    );
}

#[tokio::test]
async fn failures_inside_the_stream() {
    let begun = "{\"status\":\"Pulling\"}\r\n";
    for (name, bytes, want) in [
        (
            "unknown manifest",
            stream(&format!(
                "{begun}{{\"errorDetail\":{{\"message\":\"manifest unknown\"}},\"error\":\"manifest unknown\"}}\r\n"
            )),
            "not found",
        ),
        (
            "by its code",
            stream(r#"{"errorDetail":{"code":401,"message":"words"},"error":"words"}"#),
            "denied",
        ),
        (
            "old form",
            stream(r#"{"error":"unauthorized: authentication required"}"#),
            "denied",
        ),
        (
            "disk",
            stream(r#"{"errorDetail":{"message":"no space left on device"}}"#),
            "failed",
        ),
        (
            "before it begins",
            super::http(
                404,
                "",
                r#"{"message":"pull access denied for a, repository does not exist or may require 'docker login': denied: requested access"}"#,
            ),
            "denied",
        ),
        (
            "before it begins, unknown",
            super::http(
                404,
                "",
                r#"{"message":"manifest for a:1 not found: manifest unknown"}"#,
            ),
            "not found",
        ),
        (
            "before it begins, 500",
            super::http(
                500,
                "",
                r#"{"message":"Get \"https://h/v2/\": unauthorized: x"}"#,
            ),
            "denied",
        ),
        (
            "before it begins, 404 of few words",
            super::http(404, "", r#"{"message":"words"}"#),
            "not found",
        ),
        ("no JSON", stream("what?\n"), "garbled"),
        (
            "half of it",
            stream(&format!("{begun}{{\"status\":\"Pul")),
            "garbled",
        ),
        (
            "broken off",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n".to_vec(),
            "unreachable",
        ),
    ] {
        let kind = |result: Result<(), EngineError>| match result {
            Err(EngineError::NotFound(_)) => "not found",
            Err(EngineError::Denied(_)) => "denied",
            Err(EngineError::Failed(_)) => "failed",
            Err(EngineError::Garbled(_)) => "garbled",
            Err(EngineError::Unreachable { .. }) => "unreachable",
            other => panic!("{name}: {other:?}"),
        };
        let engine = ScriptedEngine::new("1.41", move |_| Answer::Bytes(bytes.clone()));
        assert_eq!(
            kind(engine.client().pull("a", None, quiet()).await),
            want,
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_pull_is_never_cut_and_ends_when_dropped() {
    let gone = Arc::new(Notify::new());
    let engine = ScriptedEngine::new("1.41", {
        let gone = Arc::clone(&gone);
        move |_| Answer::Hold(stream("{\"status\":\"Waiting\"}\r\n"), Arc::clone(&gone))
    });
    let client = engine.client();
    client.facts().await.unwrap();
    let told = Arc::new(Mutex::new(0));
    let progress: PullProgress = {
        let told = Arc::clone(&told);
        Arc::new(move |_| *told.lock().unwrap() += 1)
    };
    let pull = tokio::spawn(async move { client.pull("a", None, progress).await });
    until(|| *told.lock().unwrap() == 1).await;
    // A week without a byte.
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(7 * 24 * 3600)).await;
    assert!(!pull.is_finished());
    pull.abort();
    gone.notified().await;
}

#[tokio::test]
async fn an_archive_is_loaded() {
    let engine = ScriptedEngine::new("1.41", |heard| {
        if heard.body.starts_with(b"good") {
            return Answer::Bytes(stream("{\"stream\":\"Loaded image: a\"}\n"));
        }
        json(
            200,
            r#"{"errorDetail":{"message":"unexpected EOF"},"error":"unexpected EOF"}"#,
        )
    });
    let client = engine.client();
    client.load_image(b"good".repeat(100_000)).await.unwrap();
    let error = client.load_image(b"bad".to_vec()).await.unwrap_err();
    assert_eq!(error, EngineError::Failed("unexpected EOF".into()));
    let heard = engine.all();
    assert_eq!(heard[2].line, "POST /v1.41/images/load?quiet=1");
    assert_eq!(heard[2].body.len(), 400_000);
    assert!(
        heard[2]
            .head
            .to_lowercase()
            .contains("content-type: application/x-tar")
    );
}
