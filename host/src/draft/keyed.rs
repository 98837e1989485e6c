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
    /// Whether `value` can be an entry of such a list.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Env => value.is_string() || value.is_null(),
            Self::Set => *value == Value::Bool(true),
            Self::By(_) => value.is_object(),
            Self::SecurityOpt | Self::Text => value.is_string(),
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
        ("no-new-privileges", "") => "no-new-privileges:true".to_owned(),
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
