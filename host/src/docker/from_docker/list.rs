//! A container as lists have it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::container::state_word;
use crate::runtime::ports::{ContainerEntry, EngineError};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Listed {
    id: String,
    names: Vec<String>,
    image: String,
    #[serde(rename = "ImageID")]
    image_id: String,
    created: i64,
    labels: BTreeMap<String, String>,
    state: String,
}

/// The entries of a list. One that cannot be read is logged and left out: it must not hide the others.
pub(in crate::docker) fn entries(list: Vec<Value>) -> Vec<ContainerEntry> {
    list.into_iter()
        .filter_map(|value| {
            entry(value)
                .inspect_err(|error| tracing::warn!(%error, "a listed container is left out"))
                .ok()
        })
        .collect()
}

fn entry(value: Value) -> Result<ContainerEntry, EngineError> {
    const WHAT: &str = "a listed container";
    let listed: Listed = super::read_value(value, WHAT)?;
    // A container has more names while others link to it (`/other/alias`); its own has one slash.
    let own = |name: &&String| !name.trim_start_matches('/').contains('/');
    let name = listed.names.iter().find(own).or(listed.names.first());
    Ok(ContainerEntry {
        id: super::required(listed.id, WHAT)?,
        name: name.map_or("", |n| n.trim_start_matches('/')).to_owned(),
        labels: listed.labels,
        created_at: listed.created.max(0).saturating_mul(1_000_000_000),
        state: state_word(&listed.state),
        image_id: listed.image_id,
        image: listed.image,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_that_cannot_be_read_is_left_out() {
        let list = entries(vec![
            json!({"Id": "a", "Names": ["/other/alias", "/own"], "Created": 5, "State": "exited"}),
            json!({"Names": ["/without-id"]}),
            json!({"Id": 7}),
            json!("x"),
            json!({"Id": "b", "Names": null, "Created": -1}),
        ]);
        let got: Vec<(&str, &str, i64)> = list
            .iter()
            .map(|e| (e.id.as_str(), e.name.as_str(), e.created_at))
            .collect();
        assert_eq!(got, [("a", "own", 5_000_000_000), ("b", "", 0)]);
    }
}
