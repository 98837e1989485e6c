//! The hostile plugins of `tests/fixtures/plugins`, as real guests of a real toolchain, in the plugin host.
//!
//! Ignored unless asked for, since the components must be built: `cargo xtask test` does so and names their folder in
//! `SPRINGLINE_TEST_PLUGINS`. What handmade guests can do is in the plugin host's own tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use springline::draft::{Draft, Grant};
use springline::model::engine::EngineFacts;
use springline::plugin::{Artifact, Limits, Manifest, PluginHost, PluginSource};
use springline::runtime::ports::{
    Configured, Hook, PluginCall, PluginError, PluginStatus, Plugins, Subject,
};

/// What this file knows how to hold; a fixture that is not among them fails a test.
const FIXTURES: [&str; 6] = [
    "chatter",
    "denied-write",
    "memory-bomb",
    "spin",
    "trap",
    "wasi-import",
];

fn folder() -> PathBuf {
    std::env::var_os("SPRINGLINE_TEST_PLUGINS")
        .expect("SPRINGLINE_TEST_PLUGINS names the folder with the built fixtures")
        .into()
}

/// May label, and has a minute for everything: only what a case sets is tight, so that a slow machine fails none.
fn manifest(fixture: &str) -> Manifest {
    let minute = Duration::from_secs(60);
    Manifest {
        grant: Grant {
            write: vec!["/Labels".parse().unwrap()],
            take_over: Vec::new(),
        },
        limits: Limits {
            deadline: minute,
            cpu: minute,
            ..Limits::default()
        },
        ..Manifest::new(fixture)
    }
}

async fn load(manifest: Manifest) -> Arc<PluginHost> {
    let path = folder().join(format!("fixture-{}.wasm", manifest.id));
    let host = PluginHost::with_plugins(vec![PluginSource {
        manifest,
        artifact: Artifact::File(path),
    }]);
    host.ready().await.unwrap();
    Arc::new(host)
}

fn call() -> PluginCall {
    let mut draft = Draft::default();
    draft.put(&"/Image".parse().unwrap(), json!("sha256:1"));
    PluginCall {
        hook: Hook::Container,
        subject: Subject {
            pod_uid: "u1".into(),
            pod_namespace: "default".into(),
            pod_name: "web".into(),
            sandbox_id: Some("5b1".into()),
            container_name: Some("app".into()),
            container_id: None,
            attempt: 0,
        },
        request: Arc::new(json!({"config": {}})),
        annotations: Arc::new(BTreeMap::new()),
        engine: Arc::new(EngineFacts::for_tests()),
        draft,
        dry_run: false,
    }
}

/// The one plugin of a host that loaded it, and has called it this often without success.
fn status(host: &PluginHost, failures: u64) -> PluginStatus {
    let [status] = <[PluginStatus; 1]>::try_from(host.status()).unwrap();
    assert_eq!(status.error, None, "{}", status.id);
    assert_eq!(status.hooks, ["container"], "{}", status.id);
    assert_eq!((status.calls, status.failures), (failures, failures));
    status
}

fn broken(ended: Result<Configured, PluginError>) -> String {
    match ended {
        Err(PluginError::Broken { hook, reason, .. }) => {
            assert_eq!(hook, "container");
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs built fixtures"]
fn every_fixture_is_among_the_cases() {
    let built: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let name = name.strip_prefix("fixture-")?.strip_suffix(".wasm")?;
            Some(name.to_owned())
        })
        .collect();
    assert_eq!(built, FIXTURES.map(str::to_owned).into());
}

#[tokio::test]
#[ignore = "needs built fixtures"]
async fn those_that_run_wild_are_ended_within_their_limits() {
    type Tighten = fn(&mut Limits);
    let cases: [(&str, &str, Tighten, &str); 6] = [
        ("a trap", "trap", |_| {}, "panicked"),
        (
            "spinning against the clock of the guest",
            "spin",
            |limits| limits.cpu = Duration::from_millis(50),
            "it computed for longer than 50ms",
        ),
        (
            "spinning against the wall clock",
            "spin",
            |limits| limits.deadline = Duration::from_millis(50),
            "it did not end within 50ms",
        ),
        (
            "calling the host",
            "chatter",
            |_| {},
            "it made more than 2000 host calls",
        ),
        (
            "calling the host against the wall clock",
            "chatter",
            |limits| {
                limits.host_calls = u32::MAX;
                limits.deadline = Duration::from_millis(50);
            },
            "it did not end within 50ms",
        ),
        (
            "taking memory",
            "memory-bomb",
            |_| {},
            "bytes of memory and may have 33554432",
        ),
    ];
    for (name, fixture, tighten, says) in cases {
        let mut manifest = manifest(fixture);
        tighten(&mut manifest.limits);
        let host = load(manifest).await;
        // Twice: what the first call leaves behind is nothing to the second.
        for calls in 1..=2 {
            let given = call();
            let reason = broken(host.configure(given.clone()).await);
            assert!(reason.contains(says), "{name}: {reason:?}");
            assert_eq!(given.draft, call().draft, "{name}");
            status(&host, calls);
        }
    }
}

/// On one thread: only a guest that yields lets the others run.
#[tokio::test]
#[ignore = "needs built fixtures"]
async fn others_are_served_while_a_guest_runs_wild() {
    let neighbour = load(manifest("denied-write")).await;
    for fixture in ["spin", "chatter"] {
        let mut manifest = manifest(fixture);
        manifest.limits.host_calls = u32::MAX;
        let host = load(manifest).await;
        let wild = tokio::spawn(async move { host.configure(call()).await });
        tokio::task::yield_now().await;
        for _ in 0..10 {
            let served = neighbour.configure(call()).await;
            assert!(
                matches!(served, Err(PluginError::Fatal { .. })),
                "{served:?}"
            );
        }
        assert!(!wild.is_finished(), "{fixture} runs still");
        wild.abort();
        assert!(wild.await.unwrap_err().is_cancelled(), "{fixture}");
    }
}

#[tokio::test]
#[ignore = "needs built fixtures"]
async fn a_forbidden_write_is_refused_and_the_one_before_it_dropped() {
    let host = load(manifest("denied-write")).await;
    let given = call();
    let error = host.configure(given.clone()).await.unwrap_err();
    let PluginError::Fatal { plugin, message } = error else {
        panic!("{error:?}");
    };
    assert_eq!(plugin, "denied-write");
    assert!(message.starts_with("not granted: "), "{message}");
    assert!(message.contains("/Name"), "{message}");
    assert_eq!(given.draft, call().draft);
    status(&host, 1);
}

#[tokio::test]
#[ignore = "needs built fixtures"]
async fn an_import_that_no_host_has_is_named_when_it_is_loaded() {
    let host = load(manifest("wasi-import")).await;
    let [status] = <[PluginStatus; 1]>::try_from(host.status()).unwrap();
    let error = status.error.unwrap();
    assert!(
        error.contains("wasi:clocks/monotonic-clock@0.2.0"),
        "{error}"
    );
    assert_eq!(status.hooks, Vec::<String>::new());
    let configured = host.configure(call()).await.unwrap();
    assert_eq!(configured.draft, call().draft, "it serves nothing");
    assert!(Path::new(&status.source).starts_with(folder()));
}
