//! Images, as inspected and as listed.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::runtime::ports::{EngineError, ImageFacts};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Image {
    id: String,
    repo_tags: Vec<String>,
    repo_digests: Vec<String>,
    size: i64,
    /// In lists; an inspected image has them in its configuration.
    labels: BTreeMap<String, String>,
    config: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Config {
    user: String,
    labels: BTreeMap<String, String>,
}

/// What the engine says its images take.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(in crate::docker) struct Usage {
    pub(in crate::docker) layers_size: i64,
}

/// An inspected image.
pub(in crate::docker) fn inspected(body: &[u8]) -> Result<ImageFacts, EngineError> {
    const WHAT: &str = "an image";
    let image: Image = super::read(body, WHAT)?;
    let config: Config = match image.config.clone() {
        Value::Null => Config::default(),
        value => super::read_value(value, WHAT)?,
    };
    facts(
        Image {
            labels: config.labels,
            ..image
        },
        Some(config.user),
    )
}

/// The images of a list; one that cannot be read is logged and left out.
pub(in crate::docker) fn listed(list: Vec<Value>) -> Vec<ImageFacts> {
    list.into_iter()
        .filter_map(|value| {
            super::read_value(value, "a listed image")
                .and_then(|image| facts(image, None))
                .inspect_err(|error| tracing::warn!(%error, "a listed image is left out"))
                .ok()
        })
        .collect()
}

fn facts(image: Image, user: Option<String>) -> Result<ImageFacts, EngineError> {
    let named = |names: Vec<String>| {
        names
            .into_iter()
            .filter(|name| !name.contains("<none>"))
            .collect()
    };
    Ok(ImageFacts {
        id: super::required(image.id, "an image")?,
        repo_tags: named(image.repo_tags),
        repo_digests: named(image.repo_digests),
        size: u64::try_from(image.size).unwrap_or(0),
        user,
        labels: image.labels,
        config: image.config,
    })
}
