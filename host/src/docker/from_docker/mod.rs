//! The engine's answers as the port's nouns: pure functions on JSON, no I/O, no clock.
//!
//! Read by small lenient types of our own, not by a client library's models: engines of five years answer here, each leaves
//! out or nulls what another gives. What is missing or null takes its plainest value; what is there but of the wrong shape,
//! and an answer without the ID of its subject, is [`EngineError::Garbled`].

pub(super) mod container;
pub(super) mod exec;
pub(super) mod image;
pub(super) mod info;
pub(super) mod list;
mod mounts;
mod time;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::runtime::ports::EngineError;

/// Reads an answer; `what` names it in the error.
pub(super) fn read<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T, EngineError> {
    serde_json::from_slice::<Value>(body)
        .and_then(|value| serde_json::from_value(without_nulls(value)))
        .map_err(|e| garbled(what, e))
}

/// Reads a part of an answer.
pub(super) fn read_value<T: DeserializeOwned>(value: Value, what: &str) -> Result<T, EngineError> {
    serde_json::from_value(without_nulls(value)).map_err(|e| garbled(what, e))
}

fn garbled(what: &str, reason: impl std::fmt::Display) -> EngineError {
    EngineError::Garbled(format!("{what}: {reason}"))
}

/// `value` without nulls, which is how Go writes what is empty: a missing member is what the types' defaults are for.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(k, v)| (k, without_nulls(v)))
            .collect(),
        Value::Array(list) => list
            .into_iter()
            .filter(|v| !v.is_null())
            .map(without_nulls)
            .collect(),
        other => other,
    }
}

/// The ID of an answer's subject, which no answer may lack.
fn required(id: String, what: &str) -> Result<String, EngineError> {
    if id.is_empty() {
        Err(garbled(what, "it has no ID"))
    } else {
        Ok(id)
    }
}
