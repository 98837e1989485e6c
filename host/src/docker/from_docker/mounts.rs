//! A container's mounts: what is in force, with what only the request says.
//!
//! The engine's list of mounts knows source, target, mode and propagation of each; whether a read-only bind is read-only
//! down to mounts below it, and the path inside an image, stand in the request (`HostConfig.Mounts`) alone. A mount that
//! was asked for and is missing from the list (tmpfs on some engines) is taken from the request.

use serde::Deserialize;

use crate::model::mount::Propagation;
use crate::runtime::ports::{EngineMount, MountKind};

/// A mount in force.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct MountPoint {
    r#type: String,
    name: String,
    source: String,
    destination: String,
    mode: String,
    #[serde(rename = "RW")]
    rw: bool,
    propagation: String,
}

/// The part of a request that is about mounts.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Asked {
    mounts: Vec<AskedMount>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct AskedMount {
    r#type: String,
    source: String,
    target: String,
    read_only: bool,
    bind_options: BindOptions,
    image_options: ImageOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct BindOptions {
    propagation: String,
    read_only_force_recursive: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ImageOptions {
    subpath: String,
}

/// The mounts in force, by target.
pub(super) fn in_force(points: Vec<MountPoint>, asked: Asked) -> Vec<EngineMount> {
    let mut asked = asked.mounts;
    let mut mounts: Vec<EngineMount> = points
        .into_iter()
        .map(|point| {
            let at = asked
                .iter()
                .position(|a| same_target(&a.target, &point.destination));
            mount(
                point,
                at.map(|at| asked.swap_remove(at)).unwrap_or_default(),
            )
        })
        .collect();
    mounts.extend(asked.into_iter().map(|a| {
        let point = MountPoint {
            r#type: a.r#type.clone(),
            source: a.source.clone(),
            destination: a.target.clone(),
            rw: !a.read_only,
            propagation: a.bind_options.propagation.clone(),
            ..MountPoint::default()
        };
        mount(point, a)
    }));
    mounts.sort_by(|a, b| a.target.cmp(&b.target));
    mounts
}

fn same_target(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

fn mount(point: MountPoint, asked: AskedMount) -> EngineMount {
    let kind = match point.r#type.as_str() {
        "bind" => MountKind::Bind,
        "image" => MountKind::Image,
        _ => MountKind::Other,
    };
    // The engine shows where it keeps the image's files; the caller's word for the image is in the request.
    let source = match kind {
        MountKind::Image if !asked.source.is_empty() => asked.source,
        MountKind::Image if !point.name.is_empty() => point.name,
        _ => point.source,
    };
    EngineMount {
        kind,
        source,
        sub_path: asked.image_options.subpath,
        target: point.destination,
        // Image mounts are shown as writable by some engines; they never are.
        readonly: !point.rw || kind == MountKind::Image,
        recursive_read_only: !point.rw && asked.bind_options.read_only_force_recursive,
        propagation: propagation(&point.propagation),
        relabel: point.mode.split(',').any(|m| m == "z" || m == "Z"),
    }
}

fn propagation(word: &str) -> Propagation {
    match word {
        "shared" | "rshared" => Propagation::Bidirectional,
        "slave" | "rslave" => Propagation::HostToContainer,
        _ => Propagation::Private,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn one(point: Option<Value>, asked: Option<Value>) -> EngineMount {
        let points = point.map(|p| serde_json::from_value(p).unwrap());
        let asked = json!({"Mounts": asked.into_iter().collect::<Vec<_>>()});
        let asked = serde_json::from_value(asked).unwrap();
        let mut mounts = in_force(points.into_iter().collect(), asked);
        assert_eq!(mounts.len(), 1, "{mounts:?}");
        mounts.remove(0)
    }

    #[test]
    fn what_is_in_force_and_what_was_asked_meet() {
        let point = |more: &str| {
            let mut point = json!({"Type": "bind", "Source": "/src", "Destination": "/dst", "RW": false, "Propagation": "rprivate"});
            let more: Value = serde_json::from_str(more).unwrap();
            point
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            Some(point)
        };
        let asked = |options: Value| {
            Some(
                json!({"Type": "bind", "Source": "/src", "Target": "/dst/", "ReadOnly": true, "BindOptions": options}),
            )
        };
        let plain = EngineMount {
            kind: MountKind::Bind,
            source: "/src".into(),
            sub_path: String::new(),
            target: "/dst".into(),
            readonly: true,
            recursive_read_only: false,
            propagation: Propagation::Private,
            relabel: false,
        };
        for (name, point, asked, want) in [
            ("bind", point("{}"), None, plain.clone()),
            (
                "writable",
                point(r#"{"RW": true}"#),
                None,
                EngineMount {
                    readonly: false,
                    ..plain.clone()
                },
            ),
            (
                "relabelled",
                point(r#"{"Mode": "ro,Z"}"#),
                None,
                EngineMount {
                    relabel: true,
                    ..plain.clone()
                },
            ),
            (
                "shared",
                point(r#"{"Propagation": "rshared"}"#),
                None,
                EngineMount {
                    propagation: Propagation::Bidirectional,
                    ..plain.clone()
                },
            ),
            (
                "slave",
                point(r#"{"Propagation": "rslave"}"#),
                None,
                EngineMount {
                    propagation: Propagation::HostToContainer,
                    ..plain.clone()
                },
            ),
            (
                "not recursive",
                point("{}"),
                asked(json!({"ReadOnlyNonRecursive": true})),
                plain.clone(),
            ),
            (
                "recursive if it can",
                point("{}"),
                asked(json!({})),
                plain.clone(),
            ),
            (
                "recursive",
                point("{}"),
                asked(json!({"ReadOnlyForceRecursive": true})),
                EngineMount {
                    recursive_read_only: true,
                    ..plain.clone()
                },
            ),
            (
                "recursive, but writable",
                point(r#"{"RW": true}"#),
                asked(json!({"ReadOnlyForceRecursive": true})),
                EngineMount {
                    readonly: false,
                    ..plain.clone()
                },
            ),
            (
                "only asked for",
                None,
                asked(json!({"Propagation": "shared"})),
                EngineMount {
                    target: "/dst/".into(),
                    propagation: Propagation::Bidirectional,
                    ..plain.clone()
                },
            ),
            (
                "volume",
                point(r#"{"Type": "volume", "Name": "v", "RW": true}"#),
                None,
                EngineMount {
                    kind: MountKind::Other,
                    readonly: false,
                    ..plain.clone()
                },
            ),
            (
                "image",
                point(
                    r#"{"Type": "image", "Name": "example/app:1", "Source": "/var/lib/docker/x", "RW": true}"#,
                ),
                Some(
                    json!({"Type": "image", "Source": "app", "Target": "/dst", "ImageOptions": {"Subpath": "etc"}}),
                ),
                EngineMount {
                    kind: MountKind::Image,
                    source: "app".into(),
                    sub_path: "etc".into(),
                    ..plain.clone()
                },
            ),
        ] {
            assert_eq!(one(point, asked), want, "{name}");
        }
    }
}
