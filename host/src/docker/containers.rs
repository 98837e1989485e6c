//! Calls about containers.
//!
//! Bodies go out as they are given. What an engine's refusal means to a pod is the verbs' affair; here only two of them are
//! no errors: a state that is there already (304), and a removal that another call has begun, which is waited for.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::client::Client;
use super::from_docker::{container, list};
use super::path::{self, names_something, query};
use super::raw::{Call, WRITE};
use crate::model::ids::is_container_id;
use crate::runtime::ports::{ContainerEntry, ContainerFacts, ContainerQuery, Created, EngineError};

/// What a stop may take beyond its grace period: the kill, and the engine's own waiting for it.
const STOP_MARGIN: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct CreateReply {
    id: String,
    warnings: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct UpdateReply {
    warnings: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct WaitReply {
    error: WaitError,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct WaitError {
    message: String,
}

pub(super) async fn create(
    client: &Client,
    name: &str,
    body: &Value,
) -> Result<Created, EngineError> {
    if !names_something(name) {
        return Err(EngineError::BadRequest(format!(
            "invalid container name {name:?}"
        )));
    }
    let path = format!("/containers/create{}", query(&[("name", name)]));
    let what = "the answer to a create call";
    let reply: CreateReply = client.json(Call::post(path).json(body), what).await?;
    if reply.id.is_empty() {
        return Err(EngineError::Garbled(format!("{what}: it has no ID")));
    }
    Ok(Created {
        id: reply.id,
        warnings: reply.warnings,
    })
}

pub(super) async fn start(client: &Client, id: &str) -> Result<(), EngineError> {
    client
        .call(Call::post(path::container(id, "/start")?))
        .await?;
    Ok(())
}

pub(super) async fn stop(client: &Client, id: &str, grace: Duration) -> Result<(), EngineError> {
    // Whole seconds, rounded up, and within what every engine reads as a number (a negative one means "for ever").
    let round_up = u64::from(grace.subsec_nanos() > 0);
    let seconds = grace
        .as_secs()
        .saturating_add(round_up)
        .min(u64::from(i32::MAX.unsigned_abs()));
    let path = path::container(id, "/stop")? + &query(&[("t", &seconds.to_string())]);
    let deadline = Duration::from_secs(seconds) + STOP_MARGIN;
    client.call(Call::post(path).within(Some(deadline))).await?;
    Ok(())
}

pub(super) async fn remove(client: &Client, id: &str) -> Result<(), EngineError> {
    let path = path::container(id, "")? + &query(&[("force", "1"), ("v", "1")]);
    match client.call(Call::delete(path)).await {
        Ok(_) => Ok(()),
        Err(EngineError::Conflict(reason)) => wait_until_removed(client, id, reason).await,
        Err(other) => Err(other),
    }
}

/// Waits for a removal that another call has begun (what a forced removal's conflict means), as long as ours could take.
async fn wait_until_removed(client: &Client, id: &str, reason: String) -> Result<(), EngineError> {
    let facts = match inspect(client, id).await {
        Err(EngineError::NotFound(_)) => return Ok(()),
        other => other?,
    };
    use crate::model::container::EngineState::{Dead, Removing};
    if !matches!(facts.life.engine_state, Removing | Dead) {
        return Err(EngineError::Conflict(reason));
    }
    let path = path::container(&facts.id, "/wait")? + &query(&[("condition", "removed")]);
    let call = Call::post(path).within(Some(WRITE));
    match client.json::<WaitReply>(call, "the answer to a wait").await {
        Ok(reply) if reply.error.message.is_empty() => Ok(()),
        Ok(reply) => Err(EngineError::Failed(reply.error.message)),
        Err(EngineError::NotFound(_)) => Ok(()),
        Err(EngineError::Timeout { .. }) => Err(EngineError::Conflict(reason)),
        Err(other) => Err(other),
    }
}

pub(super) async fn inspect(client: &Client, id: &str) -> Result<ContainerFacts, EngineError> {
    let reply = client
        .call(Call::get(path::container(id, "/json")?))
        .await?;
    container::facts(&reply.body)
}

pub(super) async fn list(
    client: &Client,
    wanted: &ContainerQuery,
) -> Result<Vec<ContainerEntry>, EngineError> {
    let mut filters: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    if !wanted.labels.is_empty() {
        let labels = wanted.labels.iter().map(|(k, v)| format!("{k}={v}"));
        filters.insert("label", labels.collect());
    }
    if let Some(id) = &wanted.id {
        if !is_container_id(id) {
            return Ok(Vec::new());
        }
        filters.insert("id", vec![id.clone()]);
    }
    let filters = json!(filters).to_string();
    let path = format!(
        "/containers/json{}",
        query(&[("all", "1"), ("filters", &filters)])
    );
    let found: Vec<Value> = client
        .json(Call::get(path), "the list of containers")
        .await?;
    // Engines differ in whether an ID filter is a prefix or a pattern.
    let prefix = wanted.id.as_deref().unwrap_or_default();
    let mut entries = list::entries(found);
    entries.retain(|entry| entry.id.starts_with(prefix));
    Ok(entries)
}

pub(super) async fn update(client: &Client, id: &str, body: &Value) -> Result<(), EngineError> {
    let call = Call::post(path::container(id, "/update")?).json(body);
    let reply: UpdateReply = client.json(call, "the answer to an update").await?;
    for warning in reply.warnings {
        tracing::warn!(id, %warning, "the engine's warning about an update");
    }
    Ok(())
}
