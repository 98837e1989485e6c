//! Between the engine's create body and its normal form.
//!
//! The engine writes several maps as lists (`Env`, `Mounts`, `SecurityOpt`, …). In the normal form they are objects keyed by
//! what identifies an entry, so that a plugin can own one entry. [`to_engine`] turns a normal form into the body that goes
//! over the wire; keys come out in order, so equal drafts give equal bodies.

use serde_json::{Map, Value, json};

/// How a list that is really a map is keyed, by its pointer tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyed {
    /// `NAME=value` strings; null means `NAME` alone, which unsets the image's value.
    Env,
    /// A set of strings: `{entry: true}`.
    Set,
    /// Objects identified by this member.
    By(&'static str),
    /// `key=value` security options; see [`security_opt`].
    SecurityOpt,
    /// Plain strings keyed by something inside them; the value is the whole string.
    Text,
}

const KEYED: &[(&[&str], Keyed)] = &[
    (&["Env"], Keyed::Env),
    (&["HostConfig", "Mounts"], Keyed::By("Target")),
    (&["HostConfig", "Devices"], Keyed::By("PathInContainer")),
    (&["HostConfig", "Ulimits"], Keyed::By("Name")),
    (&["HostConfig", "DeviceRequests"], Keyed::By("Driver")),
    (&["HostConfig", "SecurityOpt"], Keyed::SecurityOpt),
    (&["HostConfig", "Binds"], Keyed::Text),
    (&["HostConfig", "ExtraHosts"], Keyed::Text),
    (&["HostConfig", "CapAdd"], Keyed::Set),
    (&["HostConfig", "CapDrop"], Keyed::Set),
    (&["HostConfig", "GroupAdd"], Keyed::Set),
];

/// How the list at these tokens is keyed; `None` = it is no keyed list.
pub fn keyed(tokens: &[String]) -> Option<Keyed> {
    if let [host_config, requests, _, ids] = tokens
        && host_config == "HostConfig"
        && requests == "DeviceRequests"
        && ids == "DeviceIDs"
    {
        return Some(Keyed::Set);
    }
    KEYED
        .iter()
        .find(|(path, _)| {
            path.len() == tokens.len() && path.iter().zip(tokens).all(|(a, b)| a == b)
        })
        .map(|(_, how)| *how)
}

impl Keyed {
    /// Whether such a list can have this entry: exactly one spelling per thing, so that an owner of it is its only owner.
    pub fn accepts(self, key: &str, value: &Value) -> bool {
        if key.is_empty() || key.contains('\0') || value.as_str().is_some_and(|v| v.contains('\0'))
        {
            return false;
        }
        match self {
            Self::Env => !key.contains('=') && (value.is_string() || value.is_null()),
            Self::Set => *value == Value::Bool(true),
            Self::By(member) => value
                .as_object()
                .is_some_and(|entry| !entry.keys().any(|name| is_key_member(name, member))),
            Self::SecurityOpt => is_security_opt(key, value),
            Self::Text => value.is_string(),
        }
    }

    /// Whether a pointer may lead to `name` inside an entry.
    pub fn has_inside(self, name: &str) -> bool {
        match self {
            Self::By(member) => !is_key_member(name, member),
            Self::Env | Self::Set | Self::SecurityOpt | Self::Text => false,
        }
    }

    fn entry(self, key: String, value: Value) -> Value {
        match (self, value) {
            (Self::Env, Value::String(v)) => Value::String(format!("{key}={v}")),
            (Self::Env | Self::Set, _) => Value::String(key),
            (Self::By(member), Value::Object(mut object)) => {
                object.insert(member.to_owned(), Value::String(key));
                Value::Object(object)
            }
            (Self::SecurityOpt, Value::String(v)) => Value::String(security_opt(&key, &v)),
            (_, value) => value,
        }
    }
}

/// Whether the engine would read `name` as the member that identifies an entry. It compares names without regard to case
/// and takes the last one, so another spelling of the member would move the entry to another key.
fn is_key_member(name: &str, member: &str) -> bool {
    !name.is_ascii() || name.eq_ignore_ascii_case(member)
}

/// Whether a security option has its one spelling. The engine splits an option at the first `=`, else at `:`, so a key with
/// either in it could say the same as another key that somebody else owns or that needs a grant.
fn is_security_opt(key: &str, value: &Value) -> bool {
    let Some(value) = value.as_str() else {
        return false;
    };
    match key {
        "label:user" | "label:role" | "label:type" | "label:level" => !value.is_empty(),
        "label:disable" => value.is_empty(),
        "no-new-privileges" => ["true", "false"].contains(&value),
        "seccomp" | "apparmor" => !value.is_empty(),
        "label" => false,
        other => !other.contains(['=', ':']),
    }
}

/// One security option as the engine reads it.
///
/// `label:type` with value `t` is `label=type:t`, `label:disable` is `label=disable`; `no-new-privileges` takes a colon
/// (engines before 1.11 of the API knew no `=` form of it, and all know this one); everything else is `key=value`.
fn security_opt(key: &str, value: &str) -> String {
    if let Some(label) = key.strip_prefix("label:") {
        return if value.is_empty() {
            format!("label={label}")
        } else {
            format!("label={label}:{value}")
        };
    }
    match (key, value) {
        ("no-new-privileges", value) => format!("no-new-privileges:{value}"),
        (key, "") => key.to_owned(),
        (key, value) => format!("{key}={value}"),
    }
}

/// The engine's create body for a normal form.
pub fn to_engine(normal: &Map<String, Value>) -> Value {
    render(&mut Vec::new(), Value::Object(normal.clone()))
}

fn render(path: &mut Vec<String>, value: Value) -> Value {
    let Value::Object(map) = value else {
        return value;
    };
    let how = keyed(path);
    let mut list = Vec::new();
    let mut object = Map::new();
    for (key, value) in map {
        path.push(key.clone());
        let value = render(path, value);
        path.pop();
        match how {
            Some(how) => list.push(how.entry(key, value)),
            None => {
                object.insert(key, value);
            }
        }
    }
    match how {
        Some(_) => json!(list),
        None => Value::Object(object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_one_spelling() {
        for (name, how, key, value, want) in [
            ("a variable", Keyed::Env, "A", json!("b=c"), true),
            ("an unset variable", Keyed::Env, "A", json!(null), true),
            ("= in a name", Keyed::Env, "A=B", json!("c"), false),
            ("no name", Keyed::Env, "", json!("c"), false),
            ("NUL in a value", Keyed::Env, "A", json!("b\0c"), false),
            ("a number", Keyed::Env, "A", json!(1), false),
            ("a capability", Keyed::Set, "SYS_TIME", json!(true), true),
            ("a false one", Keyed::Set, "SYS_TIME", json!(false), false),
            (
                "a mount",
                Keyed::By("Target"),
                "/a",
                json!({"Source": "/b"}),
                true,
            ),
            (
                "its key inside",
                Keyed::By("Target"),
                "/a",
                json!({"Target": "/b"}),
                false,
            ),
            (
                "in another case",
                Keyed::By("Target"),
                "/a",
                json!({"tarGet": "/b"}),
                false,
            ),
            (
                "not ASCII",
                Keyed::By("Target"),
                "/a",
                json!({"T\u{212a}": 1}),
                false,
            ),
            (
                "a profile",
                Keyed::SecurityOpt,
                "seccomp",
                json!("unconfined"),
                true,
            ),
            (
                "an empty profile",
                Keyed::SecurityOpt,
                "seccomp",
                json!(""),
                false,
            ),
            (
                "a label",
                Keyed::SecurityOpt,
                "label:type",
                json!("t"),
                true,
            ),
            (
                "a label's old form",
                Keyed::SecurityOpt,
                "label",
                json!("type:t"),
                false,
            ),
            (
                "= in a key",
                Keyed::SecurityOpt,
                "label=disable",
                json!(""),
                false,
            ),
            (
                ": in a key",
                Keyed::SecurityOpt,
                "seccomp:unconfined",
                json!(""),
                false,
            ),
            (
                "unknown label",
                Keyed::SecurityOpt,
                "label:x",
                json!("t"),
                false,
            ),
            (
                "disable with a value",
                Keyed::SecurityOpt,
                "label:disable",
                json!("x"),
                false,
            ),
            (
                "no new privileges",
                Keyed::SecurityOpt,
                "no-new-privileges",
                json!("true"),
                true,
            ),
            (
                "without a value",
                Keyed::SecurityOpt,
                "no-new-privileges",
                json!(""),
                false,
            ),
            (
                "an option to come",
                Keyed::SecurityOpt,
                "systempaths",
                json!("unconfined"),
                true,
            ),
        ] {
            assert_eq!(how.accepts(key, &value), want, "{name}");
        }
    }

    #[test]
    fn lists_are_rendered_from_their_keys() {
        let normal = json!({
            "Env": {"A": "1=2", "UNSET": null},
            "Labels": {"x": "y"},
            "HostConfig": {
                "Mounts": {"/data": {"Type": "bind", "Source": "/srv"}},
                "SecurityOpt": {
                    "seccomp": "unconfined", "no-new-privileges": "true",
                    "label:type": "t1", "label:disable": "", "apparmor": "docker-default",
                },
                "CapAdd": {"SYS_TIME": true},
                "DeviceRequests": {"cdi": {"DeviceIDs": {"vendor.com/gpu=0": true}}},
                "Binds": {"/b": "/a:/b:Z"},
                "MaskedPaths": [],
            },
        });
        let want = json!({
            "Env": ["A=1=2", "UNSET"],
            "Labels": {"x": "y"},
            "HostConfig": {
                "Mounts": [{"Type": "bind", "Source": "/srv", "Target": "/data"}],
                "SecurityOpt": [
                    "apparmor=docker-default", "label=disable", "label=type:t1",
                    "no-new-privileges:true", "seccomp=unconfined",
                ],
                "CapAdd": ["SYS_TIME"],
                "DeviceRequests": [{"DeviceIDs": ["vendor.com/gpu=0"], "Driver": "cdi"}],
                "Binds": ["/a:/b:Z"],
                "MaskedPaths": [],
            },
        });
        assert_eq!(to_engine(normal.as_object().unwrap()), want);
    }
}
