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

#[cfg(test)]
mod tests {
    //! Answers recorded from real engines (20.10 with API 1.41, 28.5 with API 1.51), and what we make of them.

    use std::fmt::Debug;
    use std::path::Path;

    use super::*;

    fn recorded(engine: &str, name: &str) -> Vec<u8> {
        std::fs::read(folder(engine).join(format!("{name}.json"))).unwrap()
    }

    fn folder(engine: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/docker/testdata/{engine}"))
    }

    /// Compares `got` with the golden text; `UPDATE_GOLDENS=1` writes it instead.
    fn golden(engine: &str, name: &str, got: &dyn Debug) {
        let path = folder(engine).join(format!("{name}.txt"));
        let got = format!("{got:#?}\n");
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::write(&path, &got).unwrap();
        }
        let want = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(got, want, "{}", path.display());
    }

    #[test]
    fn recorded_answers() {
        for engine in ["engine-20", "engine-28"] {
            for name in ["running", "cannot-run", "oom"] {
                let facts = container::facts(&recorded(engine, name)).unwrap();
                golden(engine, name, &facts);
            }
            let found = read(&recorded(engine, "list"), "list").unwrap();
            golden(engine, "list", &list::entries(found));
            let inspected = image::inspected(&recorded(engine, "image")).unwrap();
            golden(engine, "image", &inspected);
            let found = read(&recorded(engine, "images"), "images").unwrap();
            golden(engine, "images", &image::listed(found));
            let versions: info::Versions = read(&recorded(engine, "version"), "version").unwrap();
            let info: info::Info = read(&recorded(engine, "info"), "info").unwrap();
            let api = crate::runtime::ports::Version::new(1, 41);
            golden(engine, "info", &info::facts(api, versions, info));
        }
    }

    /// Cuts and damages a recorded answer everywhere: nothing of it may panic, and what is no JSON is garbled.
    #[test]
    fn damaged_answers() {
        let whole = recorded("engine-28", "running");
        for end in (0..whole.len() - 2).step_by(7) {
            let cut = container::facts(whole.get(..end).unwrap_or_default());
            assert!(matches!(cut, Err(EngineError::Garbled(_))), "cut at {end}");
        }
        let value: Value = serde_json::from_slice(&whole).unwrap();
        for strange in [
            Value::Null,
            Value::from(-1),
            Value::from("x"),
            Value::from(vec![1]),
        ] {
            for path in pointers(&value) {
                let mut damaged = value.clone();
                *damaged.pointer_mut(&path).unwrap() = strange.clone();
                let body = serde_json::to_vec(&damaged).unwrap();
                let _ = container::facts(&body);
                let _ = list::entries(vec![damaged.clone()]);
                let _ = image::inspected(&body);
            }
        }
    }

    fn pointers(value: &Value) -> Vec<String> {
        let below = |key: String, value: &Value| {
            let key = key.replace('~', "~0").replace('/', "~1");
            pointers(value)
                .into_iter()
                .map(move |rest| format!("/{key}{rest}"))
        };
        let mut all = vec![String::new()];
        match value {
            Value::Object(map) => {
                all.extend(map.iter().flat_map(|(k, v)| below(k.clone(), v)));
            }
            Value::Array(list) => {
                all.extend(
                    list.iter()
                        .enumerate()
                        .flat_map(|(i, v)| below(i.to_string(), v)),
                );
            }
            _ => {}
        }
        all
    }

    #[test]
    fn answers_without_an_id_are_garbled() {
        for (name, result) in [
            ("container", container::facts(b"{}").map(|_| ())),
            ("null ID", container::facts(br#"{"Id":null}"#).map(|_| ())),
            ("image", image::inspected(b"{}").map(|_| ())),
            ("other shape", container::facts(b"[]").map(|_| ())),
        ] {
            assert!(
                matches!(result, Err(EngineError::Garbled(_))),
                "{name}: {result:?}"
            );
        }
        let least = container::facts(br#"{"Id":"a"}"#).unwrap();
        assert_eq!(
            least.life.engine_state,
            crate::model::container::EngineState::Other
        );
    }
}
