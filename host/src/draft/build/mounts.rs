//! A container's mounts.
//!
//! The Mounts API says everything but an SELinux relabel, which only the older Binds form can ask for. A read-only bind
//! is made recursively read-only by engines from API 1.44 on unless told otherwise; CRI's `readonly` is not recursive.

use serde_json::{Map, Value, json};

use super::{API_CREATE_MOUNTPOINT, API_IMAGE_MOUNT, API_RECURSIVE_READ_ONLY, Body, require};
use crate::error::Error;
use crate::model::engine::EngineFacts;
use crate::model::mount::{Mount, MountSource, Propagation};

pub(super) fn put(body: &mut Body, mounts: &[Mount], facts: &EngineFacts) -> Result<(), Error> {
    for (index, mount) in mounts.iter().enumerate() {
        let field = format!("config.mounts[{index}]");
        let twin = mounts
            .iter()
            .take(index)
            .any(|m| m.container_path == mount.container_path);
        if twin {
            return Err(Error::invalid(
                format!("{field}.container_path"),
                format!("a mount at {} is asked for twice", mount.container_path),
            ));
        }
        one(body, mount, &field, facts)?;
    }
    Ok(())
}

fn one(body: &mut Body, mount: &Mount, field: &str, facts: &EngineFacts) -> Result<(), Error> {
    let Mount {
        container_path,
        source,
        readonly,
        recursive_read_only,
        selinux_relabel,
        propagation,
    } = mount;
    if *recursive_read_only {
        require(
            facts,
            API_RECURSIVE_READ_ONLY,
            &format!("{field}.recursive_read_only"),
            "a recursively read-only mount",
        )?;
    }
    match source {
        // Where the engine does not label, a relabel asks for what happens anyway: nothing. The kubelet sends it always.
        MountSource::Host(host_path) if *selinux_relabel && facts.selinux => {
            let bind = bind_text(host_path, mount, field)?;
            body.host_entry("Binds", container_path, bind);
        }
        MountSource::Host(host_path) => {
            let mut options = Map::new();
            options.insert("Propagation".into(), propagation_word(*propagation).into());
            if facts.api >= API_CREATE_MOUNTPOINT {
                options.insert("CreateMountpoint".into(), true.into());
            }
            if *readonly && facts.api >= API_RECURSIVE_READ_ONLY {
                let option = if *recursive_read_only {
                    "ReadOnlyForceRecursive"
                } else {
                    "ReadOnlyNonRecursive"
                };
                options.insert(option.into(), true.into());
            }
            let mut value = json!({"Type": "bind", "Source": host_path, "BindOptions": options});
            if *readonly {
                set(&mut value, "ReadOnly", true);
            }
            body.host_entry("Mounts", container_path, value);
        }
        MountSource::Image {
            reference,
            sub_path,
        } => {
            require(
                facts,
                API_IMAGE_MOUNT,
                &format!("{field}.image"),
                "an image volume",
            )?;
            let mut value = json!({"Type": "image", "Source": reference.as_str()});
            if *readonly {
                set(&mut value, "ReadOnly", true);
            }
            if !sub_path.is_empty() {
                set(&mut value, "ImageOptions", json!({"Subpath": sub_path}));
            }
            body.host_entry("Mounts", container_path, value);
        }
    }
    Ok(())
}

fn set(value: &mut Value, key: &str, to: impl Into<Value>) {
    if let Value::Object(map) = value {
        map.insert(key.to_owned(), to.into());
    }
}

/// `source:target:options`, the form that can ask for a relabel; a colon in a path cannot be written in it.
fn bind_text(host_path: &str, mount: &Mount, field: &str) -> Result<String, Error> {
    for (path, name) in [
        (host_path, "host_path"),
        (mount.container_path.as_str(), "container_path"),
    ] {
        if path.contains(':') {
            return Err(Error::unsupported(
                format!("{field}.{name}"),
                "the engine cannot relabel a mount whose path has a colon",
            ));
        }
    }
    let mut text = format!(
        "{host_path}:{}:Z,{}",
        mount.container_path,
        propagation_word(mount.propagation)
    );
    if mount.readonly {
        text.push_str(",ro");
    }
    Ok(text)
}

/// The kernel's recursive forms: what is mounted below counts too, as the kubelet expects.
fn propagation_word(propagation: Propagation) -> &'static str {
    match propagation {
        Propagation::Private => "rprivate",
        Propagation::HostToContainer => "rslave",
        Propagation::Bidirectional => "rshared",
    }
}
