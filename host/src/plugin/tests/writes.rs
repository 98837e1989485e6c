//! The host functions that write the draft, called as a guest would, without a guest.

use serde_json::json;

use super::imports::{context, kind, wide};
use super::pointer;
use crate::draft::{Draft, Grant, Owner};
use crate::plugin::bindings::draft;
use crate::plugin::bindings::types::Refusal;
use crate::plugin::context::HookContext;

fn mount(target: &str, source: &str, options: &[&str]) -> draft::Mount {
    draft::Mount {
        target: target.into(),
        source: source.into(),
        read_only: true,
        options: options.iter().map(ToString::to_string).collect(),
    }
}

/// Where the value then is and what it is, or the kind of the refusal.
type Want = Result<(&'static str, serde_json::Value), &'static str>;
type Write = fn(&mut HookContext) -> wasmtime::Result<Result<(), Refusal>>;

#[test]
fn writes_land_at_their_pointers_or_are_refused() {
    use draft::Host as D;
    let cases: Vec<(&str, Write, Want)> = vec![
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
