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
use crate::model::container::EngineState;
use crate::model::ids::is_container_id;
use crate::runtime::ports::{ContainerEntry, ContainerFacts, ContainerQuery, Created, EngineError};

/// What a stop may take beyond its grace period: the kill, and the engine's own waiting for it.
const STOP_MARGIN: Duration = Duration::from_secs(60);

/// How long lists may trail behind a stop that was answered.
const LIST_LAG: Duration = Duration::from_secs(2);

/// How long to wait for another call's removal before asking again.
const REMOVAL: Duration = Duration::from_secs(10);

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
    let _ = tokio::time::timeout(LIST_LAG, listed_as_stopped(client, id)).await;
    Ok(())
}

/// Waits until lists show the stop too: engines list from a copy of their books that follows a moment later, and whoever
/// lists after a stop was answered must see it. That they do not is no failure of the stop.
async fn listed_as_stopped(client: &Client, id: &str) {
    let query = ContainerQuery {
        id: Some(id.to_owned()),
        ..ContainerQuery::default()
    };
    let runs = |entry: &ContainerEntry| {
        matches!(
            entry.state,
            EngineState::Running | EngineState::Paused | EngineState::Restarting
        )
    };
    let mut pause = Duration::from_millis(1);
    while list(client, &query)
        .await
        .is_ok_and(|found| found.iter().any(runs))
    {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

pub(super) async fn remove(client: &Client, id: &str) -> Result<(), EngineError> {
    let path = path::container(id, "")? + &query(&[("force", "1"), ("v", "1")]);
    match client.call(Call::delete(path.clone())).await {
        Err(EngineError::Conflict(reason)) => {
            let work = remove_after_another(client, id, path);
            tokio::time::timeout(WRITE, work)
                .await
                .unwrap_or(Err(EngineError::Conflict(reason)))
        }
        other => other.map(drop),
    }
}

/// Removes what another call is already removing, which is what a forced removal's conflict means: waits until that call is
/// done, and tries again should it have failed. Whether a removal is under way shows in no structured field of all engines.
async fn remove_after_another(
    client: &Client,
    id: &str,
    removal: String,
) -> Result<(), EngineError> {
    loop {
        let path = path::container(id, "/wait")? + &query(&[("condition", "removed")]);
        let call = Call::post(path).within(Some(REMOVAL));
        match client.json(call, "the answer to a wait").await {
            Ok(WaitReply { error }) if error.message.is_empty() => return Ok(()),
            Err(EngineError::NotFound(_)) => return Ok(()),
            Ok(_) | Err(EngineError::Timeout { .. }) => {}
            Err(other) => return Err(other),
        }
        match client.call(Call::delete(removal.clone())).await {
            Ok(_) | Err(EngineError::NotFound(_)) => return Ok(()),
            Err(EngineError::Conflict(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(other) => return Err(other),
        }
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
