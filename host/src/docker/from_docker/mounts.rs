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
