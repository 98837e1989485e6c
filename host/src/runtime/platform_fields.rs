//! Which platform-specific fields of a request are *set*, so that none is dropped in silence.
//!
//! *Set* means: different from what the engine does anyway. Seccomp `RuntimeDefault` is what an engine does; no seccomp at
//! all means unconfined in CRI, which an engine that confines by default does not do by itself. Empty masked paths are the
//! engine's own, and so is a list that the engine masks anyway. What a plugin must handle, this module only finds.

use serde_json::Value;

use super::ports::{EngineFacts, Hook};
use crate::draft::{Pointer, lookup};

/// A field that is set, and what about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetField {
    pub(super) pointer: Pointer,
    pub(super) why: String,
}

/// What every engine version we accept masks by itself.
const ENGINE_MASKED: [&str; 10] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];
/// What every engine version we accept makes read-only by itself.
const ENGINE_READONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// The platform fields of `document` that are set, in order.
pub(super) fn set(document: &Value, hook: Hook, engine: &EngineFacts) -> Vec<SetField> {
    let mut found = Vec::new();
    linux(&mut found, document, hook, engine);
    let windows = Pointer::of(["config", "windows"]);
    if let Some(value) = lookup(document, &windows) {
        leaves(&mut found, windows, value);
    }
    found
}

/// The pointer as CRI writes fields: `config.linux.security_context.seccomp`.
pub(super) fn cri_name(pointer: &Pointer) -> String {
    pointer.tokens().join(".")
}

fn linux(found: &mut Vec<SetField>, document: &Value, hook: Hook, engine: &EngineFacts) {
    if engine.os != "linux" {
        return;
    }
    let base = Pointer::of(["config", "linux", "security_context"]);
    let field = |name: &str| lookup(document, &base.join(name));
    let mut note = |name: &str, why: String| {
        found.push(SetField {
            pointer: base.join(name),
            why,
        });
    };
    let privileged = field("privileged") == Some(&Value::Bool(true));
    // For a privileged container the engine confines by nothing of this, whatever the profile fields say.
    if !(privileged && hook == Hook::Container) {
        if let Some((name, why)) = seccomp(field("seccomp"), field("seccomp_profile_path"), engine)
        {
            note(name, why);
        }
        if let Some((name, why)) = apparmor(field("apparmor"), field("apparmor_profile"), engine) {
            note(name, why);
        }
        for (name, engine_does) in [
            ("masked_paths", &ENGINE_MASKED[..]),
            ("readonly_paths", &ENGINE_READONLY[..]),
        ] {
            let other: Vec<&Value> = field(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter(|path| {
                    !path
                        .as_str()
                        .is_some_and(|path| engine_does.contains(&path))
                })
                .collect();
            if let Some(path) = other.first() {
                note(
                    name,
                    format!("it lists {path}, which the engine does not do by itself"),
                );
            }
        }
    }
    let selinux = field("selinux_options").and_then(Value::as_object);
    if selinux.is_some_and(|options| !options.is_empty()) {
        note("selinux_options", "it asks for an SELinux label".to_owned());
    }
    if field("no_new_privs") == Some(&Value::Bool(true)) {
        note("no_new_privs", "it is set".to_owned());
    }
}

fn seccomp(
    profile: Option<&Value>,
    deprecated: Option<&Value>,
    engine: &EngineFacts,
) -> Option<(&'static str, String)> {
    let deprecated = deprecated.and_then(Value::as_str).unwrap_or_default();
    match (profile, deprecated) {
        (Some(profile), _) => match profile_type(profile) {
            "RuntimeDefault" => None,
            "Unconfined" if !engine.seccomp => None,
            other => Some(("seccomp", format!("it asks for {other}"))),
        },
        (None, "") if engine.seccomp => Some((
            "seccomp",
            "unset it means unconfined, while the engine confines by default (ask for RuntimeDefault to have that)"
                .to_owned(),
        )),
        (None, "" | "runtime/default" | "docker/default") => None,
        (None, other) => Some(("seccomp_profile_path", format!("it asks for {other}"))),
    }
}

fn apparmor(
    profile: Option<&Value>,
    deprecated: Option<&Value>,
    engine: &EngineFacts,
) -> Option<(&'static str, String)> {
    let deprecated = deprecated.and_then(Value::as_str).unwrap_or_default();
    match (profile, deprecated) {
        (Some(profile), _) => match profile_type(profile) {
            "RuntimeDefault" => None,
            "Unconfined" if !engine.apparmor => None,
            other => Some(("apparmor", format!("it asks for {other}"))),
        },
        (None, "" | "runtime/default") => None,
        (None, "unconfined") if !engine.apparmor => None,
        (None, other) => Some(("apparmor_profile", format!("it asks for {other}"))),
    }
}

/// A profile's type; unset is the enum's first value.
fn profile_type(profile: &Value) -> &str {
    profile
        .get("profile_type")
        .and_then(Value::as_str)
        .unwrap_or("RuntimeDefault")
}

fn leaves(found: &mut Vec<SetField>, pointer: Pointer, value: &Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                leaves(found, pointer.join(key), value);
            }
        }
        _ => found.push(SetField {
            pointer,
            why: "it is set".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn set_means_different_from_what_the_engine_does() {
        let confining = EngineFacts::for_tests();
        let open = EngineFacts {
            seccomp: false,
            ..EngineFacts::for_tests()
        };
        let armoured = EngineFacts {
            apparmor: true,
            ..EngineFacts::for_tests()
        };
        let none: &[&str] = &[];
        for (name, engine, security, want) in [
            (
                "nothing on a confining engine",
                &confining,
                json!({}),
                &["seccomp"][..],
            ),
            ("nothing on an open engine", &open, json!({}), none),
            ("default", &confining, json!({"seccomp": {}}), none),
            (
                "unconfined",
                &confining,
                json!({"seccomp": {"profile_type": "Unconfined"}}),
                &["seccomp"],
            ),
            (
                "localhost",
                &open,
                json!({"seccomp": {"profile_type": "Localhost"}}),
                &["seccomp"],
            ),
            (
                "deprecated default",
                &confining,
                json!({"seccomp_profile_path": "runtime/default"}),
                none,
            ),
            (
                "deprecated unconfined",
                &confining,
                json!({"seccomp_profile_path": "unconfined"}),
                &["seccomp_profile_path"],
            ),
            (
                "privileged",
                &confining,
                json!({"privileged": true, "seccomp": {"profile_type": "Localhost"}}),
                none,
            ),
            (
                "apparmor off",
                &open,
                json!({"apparmor": {"profile_type": "Unconfined"}}),
                none,
            ),
            (
                "apparmor on",
                &armoured,
                json!({"seccomp": {}, "apparmor": {"profile_type": "Unconfined"}}),
                &["apparmor"],
            ),
            (
                "old apparmor",
                &open,
                json!({"apparmor_profile": "localhost/x"}),
                &["apparmor_profile"],
            ),
            (
                "kubelet's masks",
                &open,
                json!({"masked_paths": ["/proc/kcore", "/proc/acpi"]}),
                none,
            ),
            (
                "a mask of one's own",
                &open,
                json!({"masked_paths": ["/bin/ls"]}),
                &["masked_paths"],
            ),
            (
                "read-only",
                &open,
                json!({"readonly_paths": ["/x"]}),
                &["readonly_paths"],
            ),
            (
                "selinux",
                &open,
                json!({"selinux_options": {"type": "t"}}),
                &["selinux_options"],
            ),
            ("selinux empty", &open, json!({"selinux_options": {}}), none),
            (
                "no new privileges",
                &open,
                json!({"no_new_privs": true}),
                &["no_new_privs"],
            ),
        ] {
            let document = json!({"config": {"linux": {"security_context": security}}});
            let got: Vec<String> = set(&document, Hook::Container, engine)
                .iter()
                .filter_map(|f| f.pointer.tokens().last().cloned())
                .collect();
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn windows_fields_are_found_leaf_by_leaf() {
        let document = json!({"config": {"windows": {"security_context": {"credential_spec": "{}", "host_process": true}}}});
        let open = EngineFacts {
            seccomp: false,
            ..EngineFacts::for_tests()
        };
        let names: Vec<String> = set(&document, Hook::Container, &open)
            .iter()
            .map(|f| cri_name(&f.pointer))
            .collect();
        assert_eq!(
            names,
            [
                "config.windows.security_context.credential_spec",
                "config.windows.security_context.host_process"
            ]
        );
    }
}
