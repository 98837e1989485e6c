//! Tests of the plugin host as a whole, over guests written in WebAssembly text.

mod chain;
mod guest;
mod hostile;
mod imports;
mod load;
mod shipped;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Artifact, Limits, Manifest, PluginHost, PluginSource};
use crate::draft::{Draft, Grant, Pointer};
use crate::model::engine::EngineFacts;
use crate::runtime::ports::{Hook, PluginCall, Subject};

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

fn grant(write: &[&str]) -> Grant {
    Grant {
        write: write.iter().map(|p| pointer(p)).collect(),
        take_over: Vec::new(),
    }
}

/// A manifest with which a slow machine fails no test: only what a test sets is tight.
fn manifest(id: &str) -> Manifest {
    let minute = Duration::from_secs(60);
    Manifest {
        grant: grant(&["/Labels"]),
        limits: Limits {
            deadline: minute,
            cpu: minute,
            ..Limits::default()
        },
        ..Manifest::new(id)
    }
}

fn source(manifest: Manifest, component: Vec<u8>) -> PluginSource {
    PluginSource {
        manifest,
        artifact: Artifact::Bytes(component),
    }
}

fn host(sources: Vec<PluginSource>) -> PluginHost {
    PluginHost::with_plugins(sources)
}

fn call(request: Value) -> PluginCall {
    let mut draft = Draft::default();
    draft.put(&pointer("/Image"), json!("sha256:1"));
    draft.put(&pointer("/Env/PATH"), json!("/bin"));
    draft.put(&pointer("/HostConfig/Memory"), json!(64));
    PluginCall {
        hook: Hook::Container,
        subject: Subject {
            pod_uid: "u1".into(),
            pod_namespace: "default".into(),
            pod_name: "web".into(),
            sandbox_id: Some("5b1".into()),
            container_name: Some("app".into()),
            container_id: None,
            attempt: 2,
        },
        request: Arc::new(request),
        annotations: Arc::new(BTreeMap::from([("a/b".into(), "note".into())])),
        engine: Arc::new(EngineFacts::for_tests()),
        draft,
        dry_run: false,
    }
}
