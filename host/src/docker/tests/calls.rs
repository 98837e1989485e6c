//! What calls look like on the wire, and what answers are made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json as value};

use super::{Answer, Boxed, ScriptedEngine, http, json};
use crate::docker::DockerEngine;
use crate::runtime::ports::{ContainerEngine, ContainerQuery, EngineError};

#[tokio::test]
async fn paths_and_bodies() {
    let engine = ScriptedEngine::new("1.41", |heard| match heard.line.as_str() {
        line if line.contains("/create?") => json(201, r#"{"Id":"new","Warnings":["w"]}"#),
        line if line.contains("/json?all") => json(200, "[]"),
        line if line.starts_with("GET") => json(200, r#"{"Id":"a"}"#),
        line if line.contains("/update") => json(200, "{}"),
        _ => Answer::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
    });
    let client = engine.client();
    // What no typed client knows: it arrives as it is.
    let body = value!({"Image": "i", "HostConfig": {"FieldOfTomorrow": {"a": [1, null, "é"]}}});
    let created = client.create("k8s_a.b-c_0", &body).await.unwrap();
    assert_eq!(
        (created.id.as_str(), created.warnings),
        ("new", vec!["w".to_owned()])
    );
    let sent: Value = serde_json::from_slice(&engine.all().last().unwrap().body).unwrap();
    assert_eq!(sent, body);

    client.start("x").await.unwrap();
    client.stop("x", Duration::from_millis(1200)).await.unwrap();
    client.stop("x", Duration::ZERO).await.unwrap();
    client
        .stop("x", Duration::from_secs(u64::MAX))
        .await
        .unwrap();
    client.remove("x").await.unwrap();
    client.inspect("x").await.unwrap();
    client.update("x", &body).await.unwrap();
    let query = ContainerQuery {
        labels: vec![("a".into(), "1 2".into())],
        id: Some("0af".into()),
    };
    client.list(&query).await.unwrap();
    client.remove_image("h:1/a:b").await.unwrap();
    client.ping().await.unwrap();
    assert_eq!(
        engine.lines(),
        [
            "POST /v1.41/containers/create?name=k8s_a.b-c_0",
            "POST /v1.41/containers/x/start",
            "POST /v1.41/containers/x/stop?t=2",
            "POST /v1.41/containers/x/stop?t=0",
            "POST /v1.41/containers/x/stop?t=2147483647",
            "DELETE /v1.41/containers/x?force=1&v=1",
            "GET /v1.41/containers/x/json",
            "POST /v1.41/containers/x/update",
            "GET /v1.41/containers/json?all=1&filters=\
             %7B%22id%22%3A%5B%220af%22%5D%2C%22label%22%3A%5B%22a%3D1%202%22%5D%7D",
            "DELETE /v1.41/images/h:1/a:b?force=0&noprune=0",
            "GET /_ping",
        ]
    );
    let head = &engine.all().last().unwrap().head.to_lowercase();
    assert!(head.contains("host: localhost"), "{head}");
}

#[tokio::test]
async fn what_cannot_name_anything_never_reaches_the_engine() {
    let engine = ScriptedEngine::new("1.41", |_| json(200, "{}"));
    let client = engine.client();
    for id in ["", "..", "a/b", "a b", "a?x=1", "a%2Fb", "é"] {
        assert!(
            matches!(client.start(id).await, Err(EngineError::NotFound(_))),
            "{id:?}"
        );
        let query = ContainerQuery {
            id: Some(id.into()),
            ..ContainerQuery::default()
        };
        assert_eq!(client.list(&query).await.unwrap(), [], "{id:?}");
    }
    assert_eq!(engine.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn statuses_are_told_apart() {
    for (status, want) in [
        (204, None),
        (304, None),
        (400, Some(EngineError::BadRequest("words".into()))),
        (401, Some(EngineError::Denied("words".into()))),
        (404, Some(EngineError::NotFound("words".into()))),
        (409, Some(EngineError::Conflict("words".into()))),
        (500, Some(EngineError::Failed("words".into()))),
        (503, Some(EngineError::Failed("words".into()))),
        (301, Some(EngineError::Failed("words".into()))),
    ] {
        let engine = ScriptedEngine::new("1.41", move |_| {
            if status == 304 || status == 204 {
                return Answer::Bytes(format!("HTTP/1.1 {status} X\r\n\r\n").into_bytes());
            }
            json(status, r#"{"message":"words"}"#)
        });
        assert_eq!(engine.client().start("x").await.err(), want, "{status}");
    }
}

#[derive(Debug, PartialEq)]
enum Kind {
    Garbled,
    Unreachable,
}

type Ask = fn(DockerEngine) -> Boxed<Result<(), EngineError>>;

#[tokio::test]
async fn answers_that_make_no_sense() {
    let asks: [(&str, Ask); 4] = [
        ("inspect", |e| {
            Box::pin(async move { e.inspect("x").await.map(drop) })
        }),
        ("list", |e| {
            Box::pin(async move { e.list(&ContainerQuery::default()).await.map(drop) })
        }),
        ("image", |e| {
            Box::pin(async move { e.image("x:1").await.map(drop) })
        }),
        ("create", |e| {
            Box::pin(async move { e.create("x", &value!({})).await.map(drop) })
        }),
    ];
    for (name, bytes, want) in [
        (
            "no HTTP",
            b"\x16\x03\x01 what?\r\n\r\n".to_vec(),
            Kind::Garbled,
        ),
        ("no JSON", http(200, "", "<html>"), Kind::Garbled),
        (
            "half of it",
            http(200, "", r#"{"Id":"a","State":{"Sta"#),
            Kind::Garbled,
        ),
        ("another shape", http(200, "", r#""text""#), Kind::Garbled),
        (
            "wrong inside",
            http(200, "", r#"{"Id":{"a":1}}"#),
            Kind::Garbled,
        ),
        ("null", http(200, "", "null"), Kind::Garbled),
        ("empty", http(200, "", ""), Kind::Garbled),
        ("nothing at all", Vec::new(), Kind::Unreachable),
        (
            "half a head",
            b"HTTP/1.1 200 OK\r\nConte".to_vec(),
            Kind::Unreachable,
        ),
        (
            "broken off",
            b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"Id\":\"a\"".to_vec(),
            Kind::Unreachable,
        ),
        (
            "broken off in a chunk",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{\"Id\":\"a\"".to_vec(),
            Kind::Unreachable,
        ),
    ] {
        for (ask_name, ask) in asks {
            let bytes = bytes.clone();
            let engine = ScriptedEngine::new("1.41", move |_| Answer::Bytes(bytes.clone()));
            let got = match ask(engine.client()).await {
                Err(EngineError::Garbled(_)) => Kind::Garbled,
                Err(EngineError::Unreachable { .. }) => Kind::Unreachable,
                other => panic!("{name}, {ask_name}: {other:?}"),
            };
            assert_eq!(got, want, "{name}, {ask_name}");
        }
    }
}

#[tokio::test]
async fn a_removal_that_is_under_way_is_waited_for() {
    let gone = r#"{"message":"no such container"}"#;
    let done = r#"{"StatusCode":0}"#;
    let failed = r#"{"StatusCode":0,"Error":{"Message":"busy"}}"#;
    let busy = Some(EngineError::Failed("words".into()));
    for (name, wait, deletes, want, calls) in [
        ("it ends", (200, done), [409, 0], None, 2),
        ("it has ended", (404, gone), [409, 0], None, 2),
        (
            "it fails, ours then works",
            (200, failed),
            [409, 204],
            None,
            3,
        ),
        (
            "it fails, and ours finds it gone",
            (200, failed),
            [409, 404],
            None,
            3,
        ),
        (
            "it fails, and so does ours",
            (200, failed),
            [409, 500],
            busy.clone(),
            3,
        ),
        (
            "the wait fails",
            (500, r#"{"message":"words"}"#),
            [409, 0],
            busy,
            2,
        ),
    ] {
        let nth = AtomicUsize::new(0);
        let engine = ScriptedEngine::new("1.41", move |heard| match heard.line.as_str() {
            line if line.starts_with("DELETE") => {
                match deletes[nth.fetch_add(1, Ordering::Relaxed)] {
                    204 => Answer::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
                    status => json(status, r#"{"message":"words"}"#),
                }
            }
            "POST /v1.41/containers/x/wait?condition=removed" => json(wait.0, wait.1),
            line => panic!("{line}"),
        });
        assert_eq!(engine.client().remove("x").await.err(), want, "{name}");
        assert_eq!(engine.lines().len(), calls, "{name}");
    }
}

#[tokio::test]
async fn a_removal_that_stays_under_way_is_a_conflict_in_the_end() {
    let gone = Arc::new(tokio::sync::Notify::new());
    let engine = ScriptedEngine::new("1.41", move |heard| match heard.line.as_str() {
        line if line.starts_with("DELETE") => json(409, r#"{"message":"words"}"#),
        _ => Answer::Hold(Vec::new(), Arc::clone(&gone)),
    });
    let client = engine.client();
    client.facts().await.unwrap();
    tokio::time::pause();
    let result = client.remove("x").await;
    assert_eq!(result, Err(EngineError::Conflict("words".into())));
}

#[tokio::test]
async fn a_name_like_an_id_is_asked_for_as_a_tag_first() {
    let engine = ScriptedEngine::new("1.41", |heard| {
        if heard.line.contains(":latest") {
            return json(404, r#"{"message":"no such image"}"#);
        }
        json(200, r#"{"Id":"sha256:a"}"#)
    });
    let client = engine.client();
    for reference in ["beef", "beef:1", "a/beef", "sha256:beef", &"a".repeat(64)] {
        client.image(reference).await.unwrap();
    }
    client.remove_image("beef").await.unwrap();
    let long = format!("GET /v1.41/images/{}/json", "a".repeat(64));
    assert_eq!(
        engine.lines(),
        [
            "GET /v1.41/images/beef:latest/json",
            "GET /v1.41/images/beef/json",
            "GET /v1.41/images/beef:1/json",
            "GET /v1.41/images/a/beef/json",
            "GET /v1.41/images/sha256:beef/json",
            &long,
            "DELETE /v1.41/images/beef:latest?force=0&noprune=0",
            "DELETE /v1.41/images/beef?force=0&noprune=0",
        ]
    );
}

#[tokio::test]
async fn disk_usage_is_asked_for_by_type_where_that_is_known() {
    for (api, path) in [
        ("1.41", "GET /v1.41/system/df"),
        ("1.42", "GET /v1.42/system/df?type=image"),
    ] {
        let engine =
            ScriptedEngine::new(api, |_| json(200, r#"{"LayersSize":7,"Containers":null}"#));
        assert_eq!(engine.client().image_usage().await.unwrap().bytes, 7);
        assert_eq!(engine.lines(), [path]);
    }
}
