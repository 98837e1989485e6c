//! The config file: TOML, every setting a key at the top level.
//!
//! Owns reading it and telling the line of each key. It must not know what the settings mean.

use std::io;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Problem};
use super::settings::{Given, Origin, Setting, Value};

/// The text of a file; `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Read {
            path: path.to_path_buf(),
            source,
        }),
    }
}

/// The settings in a file's text, in its order, and what is wrong with their names and types.
pub(super) fn settings(path: &Path, text: &str) -> Result<(Vec<Given>, Vec<Problem>), ConfigError> {
    let line_at = |offset: usize| {
        let before = text.as_bytes().iter().take(offset);
        before.filter(|byte| **byte == b'\n').count() + 1
    };
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_path_buf(),
        line: error.span().map_or(1, |span| line_at(span.start)),
        message: error.message().to_owned(),
    })?;

    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let (mut given, mut problems) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        let origin = Origin::File {
            path: path.to_path_buf(),
            line: line_at(key.span().start),
        };
        let name: &str = key.get_ref();
        let Some(setting) = Setting::find(name) else {
            problems.push(Problem::Unknown {
                key: name.to_owned(),
                origin,
            });
            continue;
        };
        match typed(setting, value.get_ref()) {
            Ok(value) => given.push(Given {
                setting,
                value,
                origin,
            }),
            Err(reason) => problems.push(Problem::Value {
                key: setting.key,
                origin,
                reason,
            }),
        }
    }
    Ok((given, problems))
}

fn typed(setting: &Setting, value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::String(text) if setting.is_list() => Ok(Value::List(vec![text.to_string()])),
        DeValue::String(text) => Ok(Value::Text(text.to_string())),
        DeValue::Array(entries) if setting.is_list() => entries
            .iter()
            .map(|entry| match entry.get_ref() {
                DeValue::String(text) => Ok(text.to_string()),
                other => Err(format!(
                    "an entry is {}, a string in quotes is due",
                    kind(other)
                )),
            })
            .collect::<Result<_, _>>()
            .map(Value::List),
        other if setting.is_list() => Err(format!("is {}, a list of strings is due", kind(other))),
        other => Err(format!("is {}, a string in quotes is due", kind(other))),
    }
}

fn kind(value: &DeValue<'_>) -> String {
    let word = value.type_str();
    let article = if word.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {word}")
}
