//! The host functions, called as a guest would, without a guest.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::{call, grant, manifest, pointer};
use crate::draft::{Draft, Grant, Owner};
use crate::plugin::Manifest;
use crate::plugin::bindings::types::Refusal;
use crate::plugin::bindings::{draft, files, node, request};
use crate::plugin::context::HookContext;

fn context(manifest: Manifest) -> HookContext {
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

fn wide() -> Manifest {
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
fn kind(refusal: &Refusal) -> &'static str {
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

fn mount(target: &str, source: &str, options: &[&str]) -> draft::Mount {
    draft::Mount {
        target: target.into(),
        source: source.into(),
        read_only: true,
        options: options.iter().map(ToString::to_string).collect(),
    }
}

type Write = fn(&mut HookContext) -> wasmtime::Result<Result<(), Refusal>>;

#[test]
fn writes_land_at_their_pointers_or_are_refused() {
    use draft::Host as D;
    let cases: Vec<(&str, Write, Result<(&str, serde_json::Value), &str>)> = vec![
        (
            "set-env",
            |c| D::set_env(c, "A".into(), "b=c".into()),
            Ok(("/Env/A", json!("b=c"))),
        ),
        (
            "set-env without a name",
            |c| D::set_env(c, "".into(), "b".into()),
            Err("bad-value"),
        ),
        (
            "set-env with =",
            |c| D::set_env(c, "A=B".into(), "b".into()),
            Err("bad-value"),
        ),
        (
            "set-env with NUL",
            |c| D::set_env(c, "A".into(), "b\0".into()),
            Err("bad-value"),
        ),
        (
            "set-env of core's",
            |c| D::set_env(c, "PATH".into(), "/x".into()),
            Err("not-granted"),
        ),
        (
            "set-env as core has it",
            |c| D::set_env(c, "PATH".into(), "/bin".into()),
            Ok(("/Env/PATH", json!("/bin"))),
        ),
        (
            "unset-env of nothing",
            |c| D::unset_env(c, "NONE".into()),
            Ok(("/Env/PATH", json!("/bin"))),
        ),
        (
            "unset-env of core's",
            |c| D::unset_env(c, "PATH".into()),
            Err("not-granted"),
        ),
        (
            "set-label",
            |c| D::set_label(c, "a/b".into(), "c".into()),
            Ok(("/Labels/a~1b", json!("c"))),
        ),
        (
            "set-label of ours",
            |c| D::set_label(c, "io.kubernetes.docker.type".into(), "x".into()),
            Err("not-granted"),
        ),
        (
            "set-security-opt",
            |c| D::set_security_opt(c, "label:type".into(), "t".into()),
            Ok(("/HostConfig/SecurityOpt/label:type", json!("t"))),
        ),
        (
            "set-security-opt in another spelling",
            |c| D::set_security_opt(c, "label=disable".into(), "".into()),
            Err("bad-value"),
        ),
        (
            "set-limit of core's by its very pointer",
            |c| D::set_limit(c, "Memory".into(), 128),
            Ok(("/HostConfig/Memory", json!(128))),
        ),
        (
            "set-limit without a grant",
            |c| D::set_limit(c, "CpuShares".into(), 1),
            Err("not-granted"),
        ),
        (
            "set-limit without a name",
            |c| D::set_limit(c, "".into(), 1),
            Err("unknown-pointer"),
        ),
        (
            "set-limit of no number",
            |c| D::set_limit(c, "SecurityOpt".into(), 1),
            Err("bad-value"),
        ),
        (
            "add-mount",
            |c| D::add_mount(c, mount("/a//b/./c/", "/s", &[])),
            Ok((
                "/HostConfig/Mounts/~1a~1b~1c",
                json!({"Type": "bind", "Source": "/s", "ReadOnly": true, "BindOptions": {"Propagation": "rprivate"}}),
            )),
        ),
        (
            "add-mount with propagation",
            |c| D::add_mount(c, mount("/a", "/s", &["rslave"])),
            Ok((
                "/HostConfig/Mounts/~1a/BindOptions/Propagation",
                json!("rslave"),
            )),
        ),
        (
            "add-mount with two",
            |c| D::add_mount(c, mount("/a", "/s", &["rslave", "shared"])),
            Err("bad-value"),
        ),
        (
            "add-mount with an unknown option",
            |c| D::add_mount(c, mount("/a", "/s", &["exec"])),
            Err("bad-value"),
        ),
        (
            "add-mount to nowhere",
            |c| D::add_mount(c, mount("a", "/s", &[])),
            Err("bad-value"),
        ),
        (
            "add-mount from above",
            |c| D::add_mount(c, mount("/a", "/s/../etc", &[])),
            Err("bad-value"),
        ),
        (
            "add-cdi-device",
            |c| D::add_cdi_device(c, "v.com/gpu=0".into()),
            Ok((
                "/HostConfig/DeviceRequests/cdi/DeviceIDs/v.com~1gpu=0",
                json!(true),
            )),
        ),
        (
            "add-cdi-device without a class",
            |c| D::add_cdi_device(c, "gpu=0".into()),
            Err("bad-value"),
        ),
        (
            "add-cdi-device without a name",
            |c| D::add_cdi_device(c, "v.com/gpu=".into()),
            Err("bad-value"),
        ),
        (
            "set of a new field",
            |c| D::set(c, "/HostConfig/NewThing/Deep".into(), "[1]".into()),
            Ok(("/HostConfig/NewThing/Deep", json!([1]))),
        ),
        (
            "set of no JSON",
            |c| D::set(c, "/User".into(), "root".into()),
            Err("bad-value"),
        ),
        (
            "set of too deep JSON",
            |c| D::set(c, "/User".into(), "[".repeat(10_000)),
            Err("bad-value"),
        ),
        (
            "set of too much",
            |c| D::set(c, "/User".into(), format!("\"{}\"", "x".repeat(1 << 20))),
            Err("bad-value"),
        ),
        (
            "set of no pointer",
            |c| D::set(c, "User".into(), "1".into()),
            Err("bad-value"),
        ),
        (
            "set of everything",
            |c| D::set(c, "".into(), "{}".into()),
            Err("bad-value"),
        ),
        (
            "set of an immutable one",
            |c| D::set(c, "/Image".into(), "\"x\"".into()),
            Err("not-granted"),
        ),
        (
            "set of the name",
            |c| D::set(c, "/Name".into(), "\"x\"".into()),
            Err("not-granted"),
        ),
        (
            "remove of core's by its very pointer",
            |c| D::remove(c, "/HostConfig/Memory".into()),
            Ok(("/Env/PATH", json!("/bin"))),
        ),
        (
            "remove of no pointer",
            |c| D::remove(c, "/~".into()),
            Err("bad-value"),
        ),
        (
            "take-over without a grant",
            |c| D::take_over(c, "/Env/PATH".into(), "mine".into()),
            Err("not-granted"),
        ),
    ];
    for (name, write, want) in cases {
        let mut context = context(wide());
        let before = context.draft.clone();
        let ended = write(&mut context).unwrap();
        match (ended, want) {
            (Ok(()), Ok((at, value))) => {
                assert_eq!(context.draft.get(&pointer(at)), Some(&value), "{name}");
            }
            (Err(refusal), Err(want)) => {
                assert_eq!(kind(&refusal), want, "{name}: {refusal:?}");
                assert_eq!(context.draft, before, "{name}");
            }
            (ended, want) => panic!("{name}: {ended:?}, wanted {want:?}"),
        }
    }
}

#[test]
fn reading_the_draft_shows_values_and_owners() {
    let mut context = context(wide());
    draft::Host::set_env(&mut context, "A".into(), "b".into())
        .unwrap()
        .unwrap();
    for (at, value, owner) in [
        ("/Env/PATH", Some("\"/bin\""), Some("core")),
        ("/Env/A", Some("\"b\""), Some("p")),
        ("/Env/NONE", None, None),
        ("Env", None, None),
    ] {
        let got = draft::Host::get(&mut context, at.into()).unwrap();
        assert_eq!(got.as_deref(), value, "{at}");
        let got = draft::Host::owner(&mut context, at.into()).unwrap();
        assert_eq!(got.as_deref(), owner, "{at}");
    }
}

#[test]
fn taking_over_with_a_grant_is_recorded() {
    let mut manifest = wide();
    manifest.grant.take_over = vec![pointer("/Env")];
    let mut context = context(manifest);
    let mut theirs = Draft::default();
    let other = Owner::Plugin("other".into());
    let all = Grant {
        write: vec![pointer("/Env")],
        take_over: vec![],
    };
    theirs
        .set(&other, &all, &pointer("/Env/X"), json!("1"))
        .unwrap();
    context.draft = theirs;
    let set = |c: &mut HookContext| draft::Host::set_env(c, "X".into(), "2".into()).unwrap();
    let refusal = set(&mut context).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Conflict(text) if text.contains("other")),
        "{refusal:?}"
    );
    draft::Host::take_over(&mut context, "/Env/X".into(), "because".into())
        .unwrap()
        .unwrap();
    set(&mut context).unwrap();
    assert_eq!(context.draft.taken()[0].reason, "because");
}

#[test]
fn what_one_call_writes_is_bounded() {
    let mut context = context(wide());
    let text = format!("\"{}\"", "x".repeat(1_000_000));
    let refusals: Vec<&str> = (0..9)
        .filter_map(|_| {
            draft::Host::set(&mut context, "/User".into(), text.clone())
                .unwrap()
                .err()
        })
        .map(|refusal| kind(&refusal))
        .collect();
    assert_eq!(refusals, ["quota"]);
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
