//! Who may write what, and what a refusal leaves behind: nothing.

use super::*;
use serde_json::json;

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

fn plugin(id: &str) -> Owner {
    Owner::Plugin(id.into())
}

fn grant(write: &[&str]) -> Grant {
    Grant {
        write: write.iter().map(|p| pointer(p)).collect(),
        take_over: vec![],
    }
}

fn core_draft() -> Draft {
    let mut draft = Draft::default();
    draft.put(&pointer("/Env/PATH"), json!("/bin"));
    draft.put(&pointer("/HostConfig/Memory"), json!(64));
    draft.put(&pointer("/HostConfig/Dns"), json!(["10.0.0.1"]));
    draft.put(&pointer("/Image"), json!("busybox"));
    draft
}

#[test]
fn ungranted_immutable_and_foreign_values_are_refused_at_the_call() {
    let draft = core_draft();
    let wide = grant(&["/Env", "/HostConfig", "/Labels", "/Image"]);
    for (name, grant, at, value, want) in [
        ("no grant", &grant(&[]), "/Env/A", json!("1"), "NotGranted"),
        ("image", &wide, "/Image", json!("x"), "NotGranted"),
        (
            "network mode",
            &wide,
            "/HostConfig/NetworkMode",
            json!("host"),
            "NotGranted",
        ),
        (
            "parent of an immutable one",
            &wide,
            "/HostConfig",
            json!({}),
            "NotGranted",
        ),
        (
            "our label",
            &wide,
            "/Labels/io.kubernetes.sandbox.id",
            json!("x"),
            "NotGranted",
        ),
        (
            "core's value by a parent grant",
            &wide,
            "/Env/PATH",
            json!("/x"),
            "NotGranted",
        ),
        (
            "an entry of the wrong kind",
            &wide,
            "/Env/A",
            json!(1),
            "BadValue",
        ),
        (
            "a keyed list as a list",
            &wide,
            "/HostConfig/Mounts",
            json!([]),
            "BadValue",
        ),
        (
            "into a scalar",
            &wide,
            "/HostConfig/Memory/x",
            json!(1),
            "UnknownPointer",
        ),
        (
            "into a list that core set",
            &wide,
            "/HostConfig/Dns/0",
            json!("1.1.1.1"),
            "UnknownPointer",
        ),
        (
            "an immutable one in another spelling",
            &wide,
            "/HostConfig/networkmode",
            json!("host"),
            "NotGranted",
        ),
        (
            "the parent in another spelling",
            &grant(&["/hostConfig"]),
            "/hostConfig/NetworkMode",
            json!("host"),
            "NotGranted",
        ),
        (
            "core's value in another spelling",
            &wide,
            "/HostConfig/memory",
            json!(1),
            "UnknownPointer",
        ),
        (
            "a keyed list in another spelling",
            &grant(&["/env"]),
            "/env",
            json!(["PATH=/x"]),
            "UnknownPointer",
        ),
        (
            "a name that the engine folds",
            &wide,
            "/HostConfig/MaskedPath\u{17f}",
            json!([]),
            "UnknownPointer",
        ),
        (
            "inside a variable",
            &wide,
            "/Env/A/b",
            json!("c"),
            "UnknownPointer",
        ),
        (
            "the key of a mount from inside",
            &wide,
            "/HostConfig/Mounts/~1data/target",
            json!("/etc"),
            "UnknownPointer",
        ),
        (
            "a variable with = in its name",
            &wide,
            "/Env/A=B",
            json!("c"),
            "BadValue",
        ),
        (
            "a second spelling of an option, in a whole list",
            &wide,
            "/HostConfig/SecurityOpt",
            json!({"label=disable": ""}),
            "BadValue",
        ),
    ] {
        let mut copy = draft.clone();
        let refusal = copy
            .set(&plugin("p"), grant, &pointer(at), value)
            .unwrap_err();
        assert!(
            format!("{refusal:?}").starts_with(want),
            "{name}: {refusal:?}"
        );
        assert_eq!(copy, draft, "{name}: nothing may change");
    }
}

#[test]
fn a_listed_pointer_may_replace_cores_value() {
    let mut draft = core_draft();
    let grant = grant(&["/HostConfig/Memory"]);
    draft
        .set(
            &plugin("p"),
            &grant,
            &pointer("/HostConfig/Memory"),
            json!(128),
        )
        .unwrap();
    assert_eq!(
        draft.owner(&pointer("/HostConfig/Memory")),
        Some(&plugin("p"))
    );
}

#[test]
fn two_plugins_share_equal_values_and_conflict_on_others_by_name() {
    let mut draft = core_draft();
    let grant = grant(&["/Env"]);
    draft
        .set(&plugin("a"), &grant, &pointer("/Env/X"), json!("1"))
        .unwrap();
    draft
        .set(&plugin("b"), &grant, &pointer("/Env/X"), json!("1"))
        .unwrap();
    let refusal = draft
        .set(&plugin("b"), &grant, &pointer("/Env/X"), json!("2"))
        .unwrap_err();
    let text = refusal.to_string();
    assert!(matches!(refusal, Refusal::Conflict(_)));
    assert!(
        text.contains("a ") && text.contains("b ") && text.contains("/Env/X"),
        "{text}"
    );
    let whole = draft
        .set(&plugin("b"), &grant, &pointer("/Env"), json!({}))
        .unwrap_err();
    assert!(
        !matches!(whole, Refusal::BadValue(_)),
        "a parent conflicts with owned children: {whole:?}"
    );
}

#[test]
fn taking_over_needs_a_grant_and_is_recorded() {
    let mut draft = core_draft();
    let mut grant = grant(&["/Env"]);
    draft
        .set(&plugin("a"), &grant, &pointer("/Env/X"), json!("1"))
        .unwrap();
    let at = pointer("/Env/X");
    assert!(
        draft
            .take_over(&plugin("b"), &grant, &at, "because")
            .is_err()
    );
    grant.take_over = vec![pointer("/Env")];
    draft
        .take_over(&plugin("b"), &grant, &at, "because")
        .unwrap();
    draft.set(&plugin("b"), &grant, &at, json!("2")).unwrap();
    assert_eq!(draft.get(&at), Some(&json!("2")));
    assert_eq!(
        draft.taken().first().map(|t| t.from.clone()),
        Some(plugin("a"))
    );
}

#[test]
fn removal_forgets_the_value_and_keeps_the_owner_rule() {
    let mut draft = core_draft();
    let grant = grant(&["/Env/PATH"]);
    draft
        .remove(&plugin("a"), &grant, &pointer("/Env/PATH"))
        .unwrap();
    assert_eq!(draft.get(&pointer("/Env/PATH")), None);
    assert!(
        draft
            .remove(&plugin("a"), &grant, &pointer("/Env/OTHER"))
            .is_err()
    );
}

#[test]
fn a_part_of_a_list_cannot_be_removed_or_taken() {
    let mut draft = core_draft();
    let mut grant = grant(&["/HostConfig/Dns", "/HostConfig/Dns/0"]);
    grant.take_over = vec![pointer("/HostConfig/Dns")];
    let before = draft.clone();
    let part = pointer("/HostConfig/Dns/0");
    for (name, refusal) in [
        ("remove", draft.remove(&plugin("a"), &grant, &part)),
        (
            "take over",
            draft.take_over(&plugin("a"), &grant, &part, "x"),
        ),
    ] {
        assert!(
            matches!(refusal, Err(Refusal::UnknownPointer(_))),
            "{name}: {refusal:?}"
        );
    }
    assert_eq!(draft, before);
}

#[test]
fn a_second_plugin_cannot_write_a_field_under_another_spelling() {
    let mut draft = core_draft();
    let grant = grant(&["/HostConfig"]);
    let value = json!(1);
    draft
        .set(
            &plugin("a"),
            &grant,
            &pointer("/HostConfig/NewThing"),
            value,
        )
        .unwrap();
    let refusal = draft
        .set(
            &plugin("b"),
            &grant,
            &pointer("/HostConfig/newThing"),
            json!(2),
        )
        .unwrap_err();
    assert!(refusal.to_string().contains("NewThing"), "{refusal}");
}
