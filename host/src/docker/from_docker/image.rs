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
    let named = |name: &String| !name.contains("<none>");
    // containerd's store tells an image that was fetched by digest as if the digest were its tag.
    let (tags, more_digests): (Vec<String>, Vec<String>) = image
        .repo_tags
        .into_iter()
        .filter(named)
        .partition(|name| !name.contains('@'));
    let mut repo_digests: Vec<String> = image.repo_digests.into_iter().filter(named).collect();
    for digest in more_digests {
        if !repo_digests.contains(&digest) {
            repo_digests.push(digest);
        }
    }
    Ok(ImageFacts {
        id: super::required(image.id, "an image")?,
        repo_tags: tags,
        repo_digests,
        size: u64::try_from(image.size).unwrap_or(0),
        user,
        labels: image.labels,
        config: image.config,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_tags_or_digests() {
        for (name, tags, digests, want_tags, want_digests) in [
            (
                "plain",
                json!(["b:1"]),
                json!(["b@sha256:0"]),
                &["b:1"][..],
                &["b@sha256:0"][..],
            ),
            (
                "none",
                json!(["<none>:<none>"]),
                json!(["<none>@<none>"]),
                &[],
                &[],
            ),
            ("null", json!(null), json!(null), &[], &[]),
            (
                "a digest among the tags",
                json!(["b@sha256:0", "b:1"]),
                json!(["b@sha256:0"]),
                &["b:1"],
                &["b@sha256:0"],
            ),
            (
                "only among the tags",
                json!(["b@sha256:0"]),
                json!([]),
                &[],
                &["b@sha256:0"],
            ),
        ] {
            let body = json!({"Id": "sha256:a", "RepoTags": tags, "RepoDigests": digests});
            let image = inspected(body.to_string().as_bytes()).unwrap();
            assert_eq!(
                (image.repo_tags, image.repo_digests),
                (
                    want_tags.iter().map(ToString::to_string).collect(),
                    want_digests.iter().map(ToString::to_string).collect(),
                ),
                "{name}"
            );
        }
    }

    #[test]
    fn one_that_cannot_be_read_is_left_out() {
        let list = listed(vec![
            json!({"Id": "sha256:a", "Size": 7, "Labels": {"l": "1"}}),
            json!({"RepoTags": ["without-id:1"]}),
            json!({"Id": "sha256:b", "Size": -1}),
        ]);
        let got: Vec<(&str, u64, usize)> = list
            .iter()
            .map(|i| (i.id.as_str(), i.size, i.labels.len()))
            .collect();
        assert_eq!(got, [("sha256:a", 7, 1), ("sha256:b", 0, 0)]);
    }
}
