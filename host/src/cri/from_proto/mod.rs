//! From CRI messages to the model: pure translation and validation.
//!
//! Every message is destructured in full, so that a new CRI field breaks the build where a decision is due. What is missing
//! or impossible is an [`Error::Invalid`], and what can never be done here an [`Error::Unsupported`], both naming the field
//! from the request down. Whether *this engine* can do a thing is decided later, in `draft::build`.

mod container;
mod filter;
mod image;
mod resources;
mod sandbox;
mod security;
mod streams;

use std::collections::BTreeMap;

use crate::error::Error;
use crate::model::labels::{self, Metadata};

pub(super) use container::container_config;
#[cfg(test)]
pub(super) use container::signal_name;
pub(super) use filter::{container_filter, image_filter, sandbox_filter};
pub(super) use image::{image_reference, registry_auth};
use resources::linux_resources;
pub(super) use resources::resource_update;
pub(super) use sandbox::sandbox_config;
pub(super) use streams::{attach, command, exec, port_forward};

/// A part that must be there.
pub(super) fn required<T>(part: Option<T>, field: &str) -> Result<T, Error> {
    part.ok_or_else(|| Error::invalid(field, "is missing"))
}

/// An enum value that must be one we know; a default never stands in for an unknown one.
fn known<E: TryFrom<i32>>(value: i32, field: &str) -> Result<E, Error> {
    E::try_from(value)
        .map_err(|_| Error::invalid(field, format!("{value} is no value of this enum")))
}

/// A duration in whole seconds, as CRI gives grace periods and timeouts.
pub(super) fn seconds(value: i64, field: &str) -> Result<std::time::Duration, Error> {
    let seconds = u64::try_from(value).map_err(|_| {
        Error::invalid(
            field,
            format!("{value} is negative; give seconds from 0 on"),
        )
    })?;
    // Longer than any daemon lives, and short enough for every clock below us to add it to now.
    Ok(std::time::Duration::from_secs(
        seconds.min(100 * 365 * 24 * 3600),
    ))
}

fn metadata(
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    field: &str,
) -> Result<Metadata, Error> {
    if let Some(key) = labels.keys().find(|key| labels::reserved(key)) {
        return Err(Error::invalid(
            format!("{field}.labels[{key}]"),
            "this key is the runtime's own",
        ));
    }
    let texts = labels
        .iter()
        .map(|pair| ("labels", pair))
        .chain(annotations.iter().map(|pair| ("annotations", pair)));
    for (map, (key, value)) in texts {
        no_nul(key, &format!("{field}.{map}"))?;
        no_nul(value, &format!("{field}.{map}[{key}]"))?;
    }
    Ok(Metadata {
        labels,
        annotations,
    })
}

/// NUL ends a string for the kernel and most runtimes: what follows would be dropped in silence.
fn no_nul(text: &str, field: &str) -> Result<(), Error> {
    if text.contains('\0') {
        return Err(Error::invalid(field, "must not hold a NUL byte"));
    }
    Ok(())
}

fn absolute(path: &str, field: &str) -> Result<(), Error> {
    no_nul(path, field)?;
    if path.starts_with('/') {
        Ok(())
    } else if path.is_empty() {
        Err(Error::invalid(field, "must not be empty"))
    } else {
        Err(Error::invalid(
            field,
            format!("{path:?} is not an absolute path"),
        ))
    }
}
