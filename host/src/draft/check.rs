//! What a write may name and hold, whoever makes it: immutable places, field names, values of the right kind.
//!
//! The engine reads field names without regard to case and takes the last of two that differ in it only. A place must
//! therefore have one spelling here, else owners, grants and immutability could be walked around.

use serde_json::{Map, Value};

use super::keyed::keyed;
use super::{Draft, Pointer, Refusal};
use crate::model::labels;

/// Pointers that nobody but the host may write: what the daemon relies on.
const IMMUTABLE: &[&[&str]] = &[
    &["Image"],
    &["Name"],
    &["HostConfig", "NetworkMode"],
    &["HostConfig", "LogConfig"],
    &["HostConfig", "AutoRemove"],
    &["HostConfig", "RestartPolicy"],
];

/// Field names that have a meaning here, so that no other spelling of them may come in.
const TOP: &[&str] = &["HostConfig", "NetworkingConfig", "Labels", "Env"];
/// Likewise in `HostConfig`.
const IN_HOST_CONFIG: &[&str] = &[
    "Binds",
    "CapAdd",
    "CapDrop",
    "DeviceRequests",
    "Devices",
    "ExtraHosts",
    "GroupAdd",
    "Mounts",
    "SecurityOpt",
    "Ulimits",
];

/// Largest value a plugin may write, in bytes of JSON.
const MAX_VALUE: usize = 1024 * 1024;

/// Refuses what the daemon relies on, in any spelling.
pub(super) fn check_immutable(pointer: &Pointer) -> Result<(), Refusal> {
    let tokens = pointer.tokens();
    let fixed = IMMUTABLE.iter().any(|fixed| {
        let shorter = fixed.len().min(tokens.len());
        // What lies below is fixed too, and a parent of it cannot be written as a whole.
        fixed
            .iter()
            .zip(tokens)
            .take(shorter)
            .all(|(a, b)| a.eq_ignore_ascii_case(b))
    });
    let label = match tokens {
        [labels] => labels.eq_ignore_ascii_case("Labels"),
        [labels, key, ..] => {
            labels.eq_ignore_ascii_case("Labels")
                && (labels::reserved(key) || key.starts_with("io.kubernetes."))
        }
        [] => true,
    };
    if fixed || label {
        return Err(Refusal::NotGranted(format!(
            "{pointer} is immutable: the daemon relies on it"
        )));
    }
    Ok(())
}

impl Draft {
    /// Refuses field names that the engine would read as another field, and ways into what has no inside.
    pub(super) fn check_names(&self, pointer: &Pointer) -> Result<(), Refusal> {
        let tokens = pointer.tokens();
        if let Some(field) = tokens.first() {
            check_field(pointer, field, TOP, Some(self.normal_form()))?;
        }
        if let [top, field, ..] = tokens
            && top == "HostConfig"
        {
            let there = self.normal_form().get(top).and_then(Value::as_object);
            check_field(pointer, field, IN_HOST_CONFIG, there)?;
        }
        for n in 1..tokens.len() {
            let (list, below) = tokens.split_at(n);
            if let (Some(how), [_, inside, ..]) = (keyed(list), below)
                && !how.has_inside(inside)
            {
                return Err(Refusal::UnknownPointer(format!(
                    "{pointer}: an entry of {} has no {inside} to write",
                    Pointer::of(list.iter().cloned())
                )));
            }
        }
        Ok(())
    }
}

fn check_field(
    pointer: &Pointer,
    field: &str,
    known: &[&str],
    there: Option<&Map<String, Value>>,
) -> Result<(), Refusal> {
    if field.is_empty() || !field.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(Refusal::UnknownPointer(format!(
            "{pointer}: {field:?} is no field of the engine's create body"
        )));
    }
    let known = known.iter().copied();
    let there = there.into_iter().flat_map(Map::keys).map(String::as_str);
    let other = known
        .chain(there)
        .find(|name| *name != field && name.eq_ignore_ascii_case(field));
    match other {
        None => Ok(()),
        Some(other) => Err(Refusal::UnknownPointer(format!(
            "{pointer}: the engine reads {field} as {other}; write {other}"
        ))),
    }
}

/// Refuses values that cannot stand at the pointer.
pub(super) fn check_value(pointer: &Pointer, value: &Value) -> Result<(), Refusal> {
    if value.to_string().len() > MAX_VALUE {
        return Err(Refusal::BadValue(format!(
            "the value for {pointer} is larger than 1 MiB"
        )));
    }
    if let Some((key, above)) = pointer.tokens().split_last()
        && let Some(how) = keyed(above)
        && !how.accepts(key, value)
    {
        return Err(Refusal::BadValue(format!(
            "{} cannot have the entry {key:?} with the value {}",
            Pointer::of(above.iter().cloned()),
            shortened(value)
        )));
    }
    if let Some(how) = keyed(pointer.tokens()) {
        let Some(map) = value.as_object() else {
            return Err(Refusal::BadValue(format!(
                "{pointer} is a keyed list: give an object of its entries"
            )));
        };
        if let Some((key, _)) = map.iter().find(|(key, entry)| !how.accepts(key, entry)) {
            return Err(Refusal::BadValue(format!(
                "{pointer} cannot have the entry {key:?} with the value given for it"
            )));
        }
    }
    Ok(())
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(200) {
        None => text,
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}
