//! Calls about images that are here. Fetching and loading are in [`super::pull`].

use serde_json::Value;

use super::client::Client;
use super::from_docker::image;
use super::path::{self, query};
use super::raw::{Call, WRITE};
use crate::runtime::ports::{EngineError, ImageFacts, ImageUsage, Version};

/// The first API whose disk usage can be asked for images alone.
const USAGE_BY_TYPE: Version = Version::new(1, 42);

pub(super) async fn inspect(client: &Client, reference: &str) -> Result<ImageFacts, EngineError> {
    if let Some(tag) = tag_like_an_id(reference) {
        match inspect_as_it_is(client, &tag).await {
            Err(EngineError::NotFound(_)) => {}
            other => return other,
        }
    }
    inspect_as_it_is(client, reference).await
}

async fn inspect_as_it_is(client: &Client, reference: &str) -> Result<ImageFacts, EngineError> {
    let path = path::image(reference, "/json")?;
    image::inspected(&client.call(Call::get(path)).await?.body)
}

pub(super) async fn list(client: &Client) -> Result<Vec<ImageFacts>, EngineError> {
    let found: Vec<Value> = client
        .json(Call::get("/images/json"), "the list of images")
        .await?;
    Ok(image::listed(found))
}

pub(super) async fn remove(client: &Client, reference: &str) -> Result<(), EngineError> {
    if let Some(tag) = tag_like_an_id(reference) {
        match remove_as_it_is(client, &tag).await {
            Err(EngineError::NotFound(_)) => {}
            other => return other,
        }
    }
    remove_as_it_is(client, reference).await
}

async fn remove_as_it_is(client: &Client, reference: &str) -> Result<(), EngineError> {
    let path = path::image(reference, "")? + &query(&[("force", "0"), ("noprune", "0")]);
    client.call(Call::delete(path)).await?;
    Ok(())
}

pub(super) async fn usage(client: &Client) -> Result<ImageUsage, EngineError> {
    let by_type = client.facts().await?.api >= USAGE_BY_TYPE;
    let path = if by_type {
        "/system/df?type=image"
    } else {
        "/system/df"
    };
    // It may walk the disk.
    let call = Call::get(path).within(Some(WRITE));
    let usage: image::Usage = client.json(call, "the disk usage").await?;
    Ok(ImageUsage {
        bytes: u64::try_from(usage.layers_size).unwrap_or(0),
    })
}

/// `reference` with its tag, if it could be taken for the first digits of an ID: a name alone, of hexadecimal digits. The
/// full 64 digits cannot be a name.
fn tag_like_an_id(reference: &str) -> Option<String> {
    let digits = reference
        .bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (digits && !reference.is_empty() && reference.len() < 64).then(|| format!("{reference}:latest"))
}
