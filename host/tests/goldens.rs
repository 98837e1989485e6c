//! Translation by example: `goldens/<sandbox|container>/<case>/cri.json` through the real front to `docker.json`, the body
//! that the engine gets, or `error.txt`. A new case is a new folder; `UPDATE_GOLDENS=1` writes what is expected anew.
//!
//! No field is forgotten: each one of CRI's two configurations stands in some case, and in docs/translation.md.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod fake;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fake::{APP_IMAGE, Behaviour, Front, World, WorldBuilder, descriptors};
use prost_reflect::{Kind, MessageDescriptor};
use serde_json::{Value, json};
use springline::model::engine::{EngineFacts, Version};
use springline::runtime::image::pause;
use springline::runtime::ports::SandboxStore;

const HOST: &str = env!("CARGO_MANIFEST_DIR");

fn cases(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(HOST).join("tests/goldens").join(kind);
    let mut cases: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The world of a case: a plain new engine, changed by `facts.json`; and whether a plugin handles platform fields in it.
fn world(case: &Path) -> (World, bool) {
    let mut facts = EngineFacts::for_tests();
    let mut plugins = true;
    let path = case.join("facts.json");
    let changes = if path.exists() {
        read_json(&path)
    } else {
        json!({})
    };
    for (name, value) in changes.as_object().unwrap() {
        let text = || value.as_str().unwrap().to_owned();
        let flag = || value.as_bool().unwrap();
        match name.as_str() {
            "api" => {
                let text = text();
                let (major, minor) = text.split_once('.').unwrap();
                facts.api = Version::new(major.parse().unwrap(), minor.parse().unwrap());
            }
            "cgroup_driver" => facts.cgroup_driver = text(),
            "min_oom_score_adj" => facts.min_oom_score_adj = value.as_i64().unwrap(),
            "swap_limit" => facts.swap_limit = flag(),
            "seccomp" => facts.seccomp = flag(),
            "apparmor" => facts.apparmor = flag(),
            "selinux" => facts.selinux = flag(),
            "runtimes" => {
                facts.runtimes = value
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|name| name.as_str().unwrap().to_owned())
                    .collect();
            }
            "plugins" => {
                assert_eq!(value, "none", "{case:?}");
                plugins = false;
            }
            other => panic!("{case:?}: facts.json has an unknown {other}"),
        }
    }
    let builder = WorldBuilder {
        facts,
        ..WorldBuilder::default()
    };
    (builder.build(), plugins)
}

/// Puts `value` at `pointer` where nothing stands.
fn fill_in(document: &mut Value, pointer: &str, value: Value) {
    let mut at = document;
    for key in pointer.trim_start_matches('/').split('/') {
        at = at.as_object_mut().unwrap().entry(key).or_insert(json!({}));
    }
    if *at == json!({}) {
        *at = value;
    }
}

fn pod_metadata() -> Value {
    json!({"name": "pod", "uid": "uid", "namespace": "default"})
}

/// What came of a case: the body, or code and message.
async fn outcome(kind: &str, case: &Path) -> Result<Value, String> {
    let (world, plugins) = world(case);
    let front = Front::serve(&world).await;
    let mut request = read_json(&case.join("cri.json"));
    let mut names = vec![(
        world
            .store
            .files_dir("x")
            .parent()
            .unwrap()
            .display()
            .to_string(),
        "<files>",
    )];
    let handled = if plugins {
        Behaviour::HandlesAll
    } else {
        Behaviour::HandlesNothing
    };
    let (rpc, answer_field) = if kind == "sandbox" {
        fill_in(&mut request, "/config/metadata", pod_metadata());
        names.push((pause::reference(), "<pause>"));
        ("RunPodSandbox", "pod_sandbox_id")
    } else {
        let pod = make_pod(&front, &mut request).await;
        fill_in(&mut request, "/config/metadata", json!({"name": "app"}));
        fill_in(&mut request, "/config/image", json!({"image": APP_IMAGE}));
        let target = "/config/linux/security_context/namespace_options/target_id";
        if let Some(target) = request.pointer_mut(target).filter(|id| **id == "target") {
            let id = make_target(&front, &pod).await;
            *target = json!(id);
            names.push((id, "<target>"));
        }
        names.push((pod, "<sandbox>"));
        ("CreateContainer", "container_id")
    };
    world.plugins.set(handled);
    match front.call(rpc, &request).await {
        Ok(answer) => {
            let id = answer[answer_field].as_str().unwrap();
            let facts = world.engine.look(id).unwrap();
            if kind == "container" {
                names.push((facts.image_id, "<image>"));
            }
            for (label, name) in [("create-key", "<key>"), ("config-hash", "<hash>")] {
                names.push((
                    facts.labels[&format!("io.springline.{label}")].clone(),
                    name,
                ));
            }
            Ok(replaced(&world.engine.body(id), &names))
        }
        Err(status) => {
            let text = format!("{:?}: {}\n", status.code(), status.message());
            Err(names
                .iter()
                .fold(text, |text, (what, name)| text.replace(what, name)))
        }
    }
}

async fn make_pod(front: &Front, request: &mut Value) -> String {
    fill_in(request, "/sandbox_config/metadata", pod_metadata());
    let run = json!({"config": request["sandbox_config"]});
    let pod = front.call("RunPodSandbox", &run).await.unwrap();
    request["pod_sandbox_id"] = pod["pod_sandbox_id"].clone();
    pod["pod_sandbox_id"].as_str().unwrap().to_owned()
}

async fn make_target(front: &Front, pod: &str) -> String {
    let create = json!({
        "pod_sandbox_id": pod,
        "config": {
            "metadata": {"name": "target"},
            "image": {"image": APP_IMAGE},
            "linux": {"security_context": {"namespace_options": {"pid": "CONTAINER"}}},
        },
        "sandbox_config": {"metadata": pod_metadata()},
    });
    let made = front.call("CreateContainer", &create).await.unwrap();
    front.call("StartContainer", &made).await.unwrap();
    made["container_id"].as_str().unwrap().to_owned()
}

/// The document with everything that differs from run to run under a name.
fn replaced(value: &Value, names: &[(String, &str)]) -> Value {
    match value {
        Value::String(text) => names
            .iter()
            .fold(text.clone(), |text, (what, name)| text.replace(what, name))
            .into(),
        Value::Array(list) => list.iter().map(|value| replaced(value, names)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), replaced(value, names)))
            .collect(),
        other => other.clone(),
    }
}

async fn hold(kind: &str) {
    let update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let mut wrong = Vec::new();
    for case in cases(kind) {
        let (file, other, text) = match outcome(kind, &case).await {
            Ok(body) => ("docker.json", "error.txt", format!("{body:#}\n")),
            Err(text) => ("error.txt", "docker.json", text),
        };
        let name = case.file_name().unwrap().to_str().unwrap();
        let refused = file == "error.txt";
        if name.starts_with("refused-") != refused {
            wrong.push(format!("{kind}/{name}: the name says otherwise:\n{text}"));
        }
        if update {
            fs::write(case.join(file), &text).unwrap();
            let _ = fs::remove_file(case.join(other));
            continue;
        }
        let want = fs::read_to_string(case.join(file)).unwrap_or_default();
        if want != text || case.join(other).exists() {
            wrong.push(format!(
                "{kind}/{name}/{file}:\n--- wanted\n{want}\n--- got\n{text}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn sandboxes() {
    hold("sandbox").await;
}

#[tokio::test]
async fn containers() {
    hold("container").await;
}

/// Every message that a configuration can hold, by its name.
fn messages() -> BTreeMap<String, MessageDescriptor> {
    let mut found = BTreeMap::new();
    let mut open: Vec<MessageDescriptor> = ["PodSandboxConfig", "ContainerConfig"]
        .into_iter()
        .map(|name| {
            descriptors()
                .get_message_by_name(&format!("runtime.v1.{name}"))
                .unwrap()
        })
        .collect();
    while let Some(message) = open.pop() {
        if message.is_map_entry() || found.contains_key(message.name()) {
            continue;
        }
        open.extend(message.fields().filter_map(|field| match field.kind() {
            Kind::Message(inner) => Some(inner),
            _ => None,
        }));
        found.insert(message.name().to_owned(), message);
    }
    found
}

/// Notes each `message.field` that stands in a document.
fn note_fields(value: &Value, message: &MessageDescriptor, seen: &mut BTreeSet<String>) {
    for (key, value) in value.as_object().unwrap() {
        let field = message
            .get_field_by_name(key)
            .unwrap_or_else(|| panic!("{key}"));
        seen.insert(format!("{}.{key}", message.name()));
        if let Kind::Message(inner) = field.kind()
            && !field.is_map()
        {
            match value {
                Value::Array(list) => list.iter().for_each(|one| note_fields(one, &inner, seen)),
                one => note_fields(one, &inner, seen),
            }
        }
    }
}

#[test]
fn every_field_stands_in_a_case() {
    let mut seen = BTreeSet::new();
    for (kind, request) in [
        ("sandbox", "RunPodSandboxRequest"),
        ("container", "CreateContainerRequest"),
    ] {
        let message = descriptors()
            .get_message_by_name(&format!("runtime.v1.{request}"))
            .unwrap();
        for case in cases(kind) {
            note_fields(&read_json(&case.join("cri.json")), &message, &mut seen);
        }
    }
    let missing: Vec<String> = messages()
        .values()
        .flat_map(|message| {
            message
                .fields()
                .map(|field| format!("{}.{}", message.name(), field.name()))
                .collect::<Vec<_>>()
        })
        .filter(|name| !seen.contains(name))
        .collect();
    assert!(missing.is_empty(), "in no case: {missing:#?}");
}

/// docs/translation.md has a table per message, a row per field, and no row for what is no field.
#[test]
fn every_field_stands_in_the_documentation() {
    let text = fs::read_to_string(Path::new(HOST).join("../docs/translation.md")).unwrap();
    let mut documented: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            section = title.trim().to_owned();
        } else if let Some(row) = line.strip_prefix("| `")
            && !section.is_empty()
        {
            let field = row.split('`').next().unwrap().to_owned();
            documented.entry(section.clone()).or_default().insert(field);
        }
    }
    let wanted: BTreeMap<String, BTreeSet<String>> = messages()
        .into_iter()
        .map(|(name, message)| {
            let fields = message.fields().map(|field| field.name().to_owned());
            (name, fields.collect())
        })
        .collect();
    for (message, fields) in &wanted {
        let empty = BTreeSet::new();
        let rows = documented.get(message).unwrap_or(&empty);
        let missing: Vec<_> = fields.difference(rows).collect();
        let stale: Vec<_> = rows.difference(fields).collect();
        assert!(missing.is_empty(), "{message}: no row for {missing:?}");
        assert!(stale.is_empty(), "{message}: rows for no field: {stale:?}");
    }
    let stale: Vec<_> = documented
        .keys()
        .filter(|name| !wanted.contains_key(*name))
        .collect();
    assert!(stale.is_empty(), "tables for no message: {stale:?}");
}
