//! Coming, going, hanging and being exchanged: the engine's life as the client sees it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::{Answer, ScriptedEngine, http, json, until};
use crate::runtime::ports::{ContainerEngine, EngineError, Version};

fn container(_: &super::Heard) -> Answer {
    json(200, r#"{"Id":"x"}"#)
}

#[tokio::test]
async fn the_api_version_is_agreed_on() {
    for (engine_has, want) in [
        ("1.40", "v1.40"),
        ("1.41", "v1.41"),
        ("1.51", "v1.51"),
        ("1.60", "v1.51"),
    ] {
        let engine = ScriptedEngine::new(engine_has, container);
        engine.client().inspect("x").await.unwrap();
        assert_eq!(engine.lines(), [format!("GET /{want}/containers/x/json")]);
    }
    let engine = ScriptedEngine::new("1.39", container);
    let error = engine.client().inspect("x").await.unwrap_err();
    assert!(
        matches!(error, EngineError::TooOld { needs, has, .. }
            if needs == Version::new(1, 40) && has == Version::new(1, 39)),
        "{error:?}"
    );
    assert_eq!(engine.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn facts_are_learnt_once_by_many() {
    let engine = ScriptedEngine::new("1.41", container);
    let client = engine.client();
    let calls = (0..20).map(|_| client.inspect("x"));
    for result in futures_util::future::join_all(calls).await {
        result.unwrap();
    }
    assert_eq!(
        (engine.count("GET /version"), engine.count("/info")),
        (1, 1)
    );
    assert_eq!(engine.lines().len(), 20);
}

#[tokio::test]
async fn an_engine_that_comes_and_goes() {
    let mut engine = ScriptedEngine::absent();
    let client = engine.client();
    let away = |error: EngineError| matches!(error, EngineError::Unreachable { .. });
    assert!(away(client.inspect("x").await.unwrap_err()));
    assert!(away(client.ping().await.unwrap_err()));
    assert!(away(client.facts().await.unwrap_err()));

    engine.start("1.41", container);
    client.inspect("x").await.unwrap();
    assert_eq!(client.facts().await.unwrap().api, Version::new(1, 41));

    engine.stop();
    assert!(away(client.inspect("x").await.unwrap_err()));
    engine.start("1.44", container);
    client.inspect("x").await.unwrap();
    assert_eq!(client.facts().await.unwrap().api, Version::new(1, 44));
    let lines = engine.lines();
    assert_eq!(lines.last().unwrap(), "GET /v1.44/containers/x/json");
}

#[tokio::test]
async fn a_socket_that_nobody_listens_at() {
    let engine = ScriptedEngine::absent();
    drop(std::os::unix::net::UnixListener::bind(engine.socket()).unwrap());
    let error = engine.client().inspect("x").await.unwrap_err();
    assert!(
        matches!(error, EngineError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("engine.sock"), "{error}");
}

#[tokio::test]
async fn an_engine_exchanged_for_an_older_one_is_asked_again() {
    let mut engine = ScriptedEngine::new("1.51", container);
    let client = engine.client();
    client.inspect("x").await.unwrap();
    // No call fails in between.
    engine.start("1.41", |heard| {
        if heard.line.contains("/v1.51/") {
            let words = r#"{"message":"client version 1.51 is too new"}"#;
            return Answer::Bytes(http(400, "Api-Version: 1.41\r\n", words));
        }
        container(heard)
    });
    client.inspect("x").await.unwrap();
    assert_eq!(client.facts().await.unwrap().api, Version::new(1, 41));

    // A 400 of its own is no reason to ask again.
    engine.start("1.41", |_| {
        Answer::Bytes(http(400, "Api-Version: 1.41\r\n", r#"{"message":"words"}"#))
    });
    let before = engine.count("/containers/x/json");
    let error = client.inspect("x").await.unwrap_err();
    assert_eq!(error, EngineError::BadRequest("words".into()));
    assert_eq!(engine.count("/containers/x/json"), before + 1);
}

#[tokio::test]
async fn a_silent_engine_costs_each_call_its_own_deadline() {
    let gone = Arc::new(Notify::new());
    let engine = ScriptedEngine::new("1.41", {
        let gone = Arc::clone(&gone);
        move |_| Answer::Hold(Vec::new(), Arc::clone(&gone))
    });
    let client = engine.client();
    client.facts().await.unwrap();
    // From here the clock jumps to the next deadline whenever nothing else can happen.
    tokio::time::pause();
    for (name, want, result) in [
        ("inspect", 10, client.inspect("x").await.map(drop)),
        ("ping", 3, client.ping().await),
        ("start", 120, client.start("x").await),
        (
            "stop",
            100 + 60,
            client.stop("x", Duration::from_secs(100)).await,
        ),
    ] {
        let after = Duration::from_secs(want);
        assert_eq!(result, Err(EngineError::Timeout { after }), "{name}");
    }
    gone.notified().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_on_the_wire() {
    let gone = Arc::new(Notify::new());
    let engine = ScriptedEngine::new("1.41", {
        let gone = Arc::clone(&gone);
        move |_| Answer::Hold(Vec::new(), Arc::clone(&gone))
    });
    let client = engine.client();
    let call = tokio::spawn(async move { client.start("x").await });
    until(|| engine.count("/start") == 1).await;
    call.abort();
    gone.notified().await;
}
