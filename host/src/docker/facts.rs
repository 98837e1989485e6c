//! Learning what the engine is: version negotiation, `/info`, and how low its containers' OOM scores can go.
//!
//! Fails with [`EngineError::TooOld`] below [`OLDEST`]; whatever else an engine does not tell is taken as its plainest value.

use std::path::Path;
use std::time::Duration;

use super::client::{Client, Wire, within};
use super::endpoint::Endpoint;
use super::from_docker::{info, read};
use super::peer;
use super::raw::{self, Call};
use crate::runtime::ports::{EngineError, EngineFacts, Version};

/// The first API that this module speaks.
pub(super) const OLDEST: Version = Version::new(1, 40);
/// The newest API that this module was tried against.
pub(super) const NEWEST: Version = Version::new(1, 51);

const PING: Duration = Duration::from_secs(3);

/// Whether the engine lives.
pub(super) async fn ping(client: &Client) -> Result<(), EngineError> {
    within(Some(PING), async {
        raw::call(client.wire(), &Call::get("/_ping"), None).await?;
        Ok(())
    })
    .await
}

/// Asks the engine what it is.
pub(super) async fn learn(wire: &Wire) -> Result<EngineFacts, EngineError> {
    let reply = raw::call(wire, &Call::get("/version"), None).await?;
    let versions: info::Versions = read(&reply.body, "its version")?;
    let api = negotiate(&versions)?;
    let reply = raw::call(wire, &Call::get("/info"), Some(api)).await?;
    let info: info::Info = read(&reply.body, "its description")?;
    let mut facts = info::facts(api, versions, info);
    facts.min_oom_score_adj = lowest_oom_score_adj(wire, facts.rootless).await;
    Ok(facts)
}

/// Reads `1.41`.
pub(super) fn version(text: &str) -> Option<Version> {
    let (major, minor) = text.trim().split_once('.')?;
    Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
}

/// The newest API that both sides speak. An engine that no longer speaks ours is met at its oldest: what we use has not
/// changed since, as far as anyone knows, and a node that works beats one that refuses.
fn negotiate(versions: &info::Versions) -> Result<Version, EngineError> {
    let newest = version(&versions.api_version).ok_or_else(|| {
        EngineError::Garbled(format!("its API version is {:?}", versions.api_version))
    })?;
    let oldest = version(&versions.min_api_version).unwrap_or(OLDEST);
    if newest < OLDEST {
        return Err(EngineError::TooOld {
            what: "springline".to_owned(),
            needs: OLDEST,
            has: newest,
        });
    }
    Ok(newest.min(NEWEST).max(oldest))
}

async fn lowest_oom_score_adj(wire: &Wire, rootless: bool) -> i64 {
    let Endpoint::Unix(socket) = &wire.endpoint else {
        return peer::LOWEST;
    };
    let (socket, pid) = (socket.clone(), wire.peer());
    // /proc is read with blocking calls.
    tokio::task::spawn_blocking(move || {
        peer::lowest_oom_score_adj(Path::new("/proc"), pid, &socket, rootless)
    })
    .await
    .unwrap_or(peer::LOWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_newest_is_taken() {
        let versions = |newest: &str, oldest: &str| info::Versions {
            api_version: newest.to_owned(),
            min_api_version: oldest.to_owned(),
            version: String::new(),
        };
        for (name, newest, oldest, want) in [
            ("engine 20", "1.41", "1.12", Some(Version::new(1, 41))),
            ("engine 28", "1.51", "1.24", Some(NEWEST)),
            ("newer engine", "1.53", "1.44", Some(NEWEST)),
            (
                "engine that left us behind",
                "1.70",
                "1.60",
                Some(Version::new(1, 60)),
            ),
            ("the floor", "1.40", "", Some(OLDEST)),
            ("too old", "1.39", "1.12", None),
            ("nonsense", "one", "", None),
        ] {
            assert_eq!(negotiate(&versions(newest, oldest)).ok(), want, "{name}");
        }
    }
}
