//! Masked and read-only paths, mostly of `/proc` and `/sys`. The engine has lists of its own for where nothing is said; CRI has not: its lists are
//! the whole truth, and an empty one means none. That is how `procMount: Unmasked` reaches the runtime, so the lists are always set.

use crate::context::{Context, FIELD};
use crate::imports::Imports;
use crate::outcome::{Fault, refused_write};

const MASKED: (&str, &str) = ("masked_paths", "/HostConfig/MaskedPaths");
const READONLY: (&str, &str) = ("readonly_paths", "/HostConfig/ReadonlyPaths");

/// Carries out `masked_paths` and `readonly_paths`.
///
/// # Errors
/// A path that is not absolute, or a refused write.
pub fn apply(host: &mut impl Imports, context: &Context) -> Result<(), Fault> {
    set(host, MASKED, &context.masked_paths)?;
    set(host, READONLY, &context.readonly_paths)
}

/// Neither masked nor read-only paths, whatever the fields say: the kubelet sends its default lists for privileged containers too, and every
/// runtime leaves them out there.
///
/// # Errors
/// A refused write.
pub fn none(host: &mut impl Imports) -> Result<(), Fault> {
    set(host, MASKED, &[])?;
    set(host, READONLY, &[])
}

fn set(
    host: &mut impl Imports,
    (field, pointer): (&str, &str),
    paths: &[String],
) -> Result<(), Fault> {
    // The runtime under the engine would refuse it at start, in words that name no field.
    if let Some(path) = paths.iter().find(|path| !path.starts_with('/')) {
        return Err(Fault::Fatal(format!(
            "{FIELD}.{field}: {path:?} is not an absolute path"
        )));
    }
    let json = serde_json::Value::from(paths).to_string();
    host.set(pointer, &json)
        .map_err(|refusal| refused_write(&format!("{FIELD}.{field}"), pointer, refusal))
}
