//! The host functions that read, called as a guest would, without a guest.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::{call, grant, manifest, pointer};
use crate::draft::Draft;
use crate::plugin::Manifest;
use crate::plugin::bindings::types::Refusal;
use crate::plugin::bindings::{files, node, request};
use crate::plugin::context::HookContext;

pub(super) fn context(manifest: Manifest) -> HookContext {
    let call = call(json!({
        "config": {
            "metadata": {"name": "app"},
            "linux": {"security_context": {"seccomp": {"profile_type": "Localhost"}}},
            "a/b": {"~": 1},
            "args": ["x", "y"],
        },
    }));
    let draft = call.draft.clone();
    HookContext::new(&Arc::new(manifest), &call, draft)
}

pub(super) fn wide() -> Manifest {
    Manifest {
        grant: grant(&[
            "/Labels",
            "/Env",
            "/HostConfig/SecurityOpt",
            "/HostConfig/Mounts",
            "/HostConfig/DeviceRequests",
            "/HostConfig/Memory",
            "/HostConfig/PidsLimit",
            "/HostConfig/NewThing",
            "/Image",
            "/User",
        ]),
        settings: json!({"level": "strict", "list": [1]}),
        ..manifest("p")
    }
}

#[test]
fn request_pointers_give_json_text() {
    let mut context = context(wide());
    for (at, want) in [
        ("/config/metadata/name", Some("\"app\"")),
        (
            "/config/linux/security_context",
            Some("{\"seccomp\":{\"profile_type\":\"Localhost\"}}"),
        ),
        ("/config/a~1b/~0", Some("1")),
        ("/config/args/1", Some("\"y\"")),
        ("/config/args/2", None),
        ("/config/nothing", None),
        ("config", None),
        ("/config/~2", None),
    ] {
        let text = request::Host::get(&mut context, at.into()).unwrap();
        assert_eq!(text.as_deref(), want, "{at}");
    }
    let whole = request::Host::get(&mut context, String::new())
        .unwrap()
        .unwrap();
    assert!(whole.starts_with("{\"config\""), "{whole}");
}

#[test]
fn the_rest_of_the_request_is_there() {
    let mut context = context(wide());
    let subject = request::Host::current(&mut context).unwrap();
    assert_eq!(subject.pod_uid, "u1");
    assert_eq!(subject.container_name.as_deref(), Some("app"));
    assert_eq!((subject.container_id, subject.attempt), (None, 2));
    let mut annotation = |key: &str| request::Host::annotation(&mut context, key.into()).unwrap();
    assert_eq!(annotation("a/b").as_deref(), Some("note"));
    assert_eq!(annotation("a~1b"), None, "a key, no pointer");
    let mut setting = |at: &str| request::Host::setting(&mut context, at.into()).unwrap();
    assert_eq!(setting("/level").as_deref(), Some("\"strict\""));
    assert_eq!(setting("/list/0").as_deref(), Some("1"));
    assert_eq!(setting("/none"), None);
    assert_eq!(
        setting("").as_deref(),
        Some("{\"level\":\"strict\",\"list\":[1]}")
    );
    assert!(!request::Host::dry_run(&mut context).unwrap());

    let mut bare = self::context(manifest("p"));
    assert_eq!(
        request::Host::setting(&mut bare, String::new()).unwrap(),
        None
    );
}

#[test]
fn only_pointers_are_taken_as_handled_and_not_without_end() {
    let mut context = context(wide());
    for text in ["", "config", "/a~", "/config/linux", "/config/linux"] {
        request::Host::handled(&mut context, text.into()).unwrap();
    }
    assert_eq!(context.handled, [pointer("/config/linux")].into());
    let ended = (0..600).try_for_each(|n| request::Host::handled(&mut context, format!("/x/{n}")));
    assert!(ended.unwrap_err().to_string().contains("512 fields"));
}

/// The kind of a refusal.
pub(super) fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Conflict(_) => "conflict",
        Refusal::NotGranted(_) => "not-granted",
        Refusal::BadValue(_) => "bad-value",
        Refusal::UnknownPointer(_) => "unknown-pointer",
        Refusal::TooLate(_) => "too-late",
        Refusal::Quota(_) => "quota",
        Refusal::Other(_) => "other",
    }
}

#[test]
fn what_one_call_reads_is_bounded() {
    let mut given = call(json!({"big": "x".repeat(10_000_000)}));
    given.dry_run = true;
    let mut context = HookContext::new(&Arc::new(wide()), &given, Draft::default());
    let mut get = || request::Host::get(&mut context, "/big".into());
    let reads = (0..10).take_while(|_| get().is_ok()).count();
    assert_eq!(reads, 6, "64 MiB are enough for six");
}

#[test]
fn node_facts_are_a_fixed_dictionary() {
    let mut context = context(wide());
    let engine = Arc::make_mut(&mut context.engine);
    engine.os = "linux".into();
    engine.cgroup_version = 2;
    engine.seccomp = true;
    engine.rootless = false;
    engine.storage_driver = String::new();
    let mut fact = |name: &str| node::Host::fact(&mut context, name.into()).unwrap();
    assert_eq!(fact("os").as_deref(), Some("linux"));
    assert_eq!(fact("cgroup.version").as_deref(), Some("2"));
    assert_eq!(fact("engine.seccomp").as_deref(), Some("true"));
    assert_eq!(fact("engine.rootless").as_deref(), Some("false"));
    assert_eq!(
        fact("engine.storage-driver"),
        None,
        "not known is not there"
    );
    assert_eq!(fact("engine"), None);
    let names = |prefix: &str, context: &mut HookContext| -> Vec<String> {
        let facts = node::Host::facts(context, prefix.into()).unwrap();
        facts.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(
        names("cgroup.", &mut context),
        ["cgroup.driver", "cgroup.version"]
    );
    let all = names("", &mut context);
    assert_eq!(all.len(), 12);
    assert!(all.is_sorted());
}

#[tokio::test]
async fn files_come_from_granted_roots_with_their_refusals() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.json"), "{}").unwrap();
    let manifest = Manifest {
        files: BTreeMap::from([("seccomp".into(), vec![dir.path().to_path_buf()])]),
        ..wide()
    };
    let absolute = dir.path().join("a.json").display().to_string();
    for (name, root, path, max, want) in [
        ("relative", "seccomp", "a.json", 100, Ok("{}")),
        ("absolute", "seccomp", absolute.as_str(), 100, Ok("{}")),
        ("another root", "etc", "a.json", 100, Err("not-granted")),
        ("outside", "seccomp", "/etc/passwd", 100, Err("not-granted")),
        ("above", "seccomp", "../a.json", 100, Err("not-granted")),
        ("missing", "seccomp", "b.json", 100, Err("unknown-pointer")),
        ("a folder", "seccomp", ".", 100, Err("bad-value")),
        ("no path", "seccomp", "", 100, Err("bad-value")),
        ("too large", "seccomp", "a.json", 1, Err("quota")),
    ] {
        let mut context = context(manifest.clone());
        let read = files::Host::read(&mut context, root.into(), path.into(), max)
            .await
            .unwrap();
        match (read, want) {
            (Ok(content), Ok(text)) => assert_eq!(content, text.as_bytes(), "{name}"),
            (Err(refusal), Err(want)) => assert_eq!(kind(&refusal), want, "{name}: {refusal:?}"),
            (read, want) => panic!("{name}: {read:?}, wanted {want:?}"),
        }
    }
}
