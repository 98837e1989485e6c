//! Creating under a name that may be taken: idempotent by identity, never ending in "name in use".
//!
//! | who holds the name | what happens |
//! |---|---|
//! | one of ours, same config hash, never started | adopted |
//! | a READY sandbox of the same config hash without any container | it is the answer: the first one was lost |
//! | one of ours, dead or never started | removed with all that is kept of it, then created anew |
//! | one of ours that runs, or somebody else's | left alone; ours gets a suffix, as cri-dockerd does |
//!
//! The holder is looked up by name, never read out of the engine's message.

use serde_json::Value;

use super::ports::{ContainerFacts, EngineError};
use super::resolve::gone_is_fine;
use super::{Runtime, salt};
use crate::error::Error;
use crate::model::container::EngineState;
use crate::model::sandbox::SandboxState;
use crate::model::{labels, name};

/// How often a holder may change under our hands before we give up.
const TRIES: usize = 5;

/// What is to be created.
pub(super) struct Claim<'a> {
    /// The name it should have.
    pub(super) name: &'a str,
    /// Its type label.
    pub(super) kind: &'static str,
    /// Its config hash.
    pub(super) config_hash: &'a str,
    /// Its create body.
    pub(super) body: &'a Value,
}

/// What bears the identity now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claimed {
    /// Its ID.
    pub(super) id: String,
    /// The create key of an adopted one: another than ours.
    pub(super) create_key: Option<String>,
    /// It is a sandbox that is READY: nothing is left to do.
    pub(super) ready: bool,
}

enum Holder {
    Adopt(Claimed),
    Replace(Box<ContainerFacts>),
    StepAside,
    Gone,
}

impl Runtime {
    /// Creates what is claimed, or adopts it.
    ///
    /// # Errors
    /// The engine's refusal of the body, or its failure.
    pub(super) async fn claim(&self, claim: Claim<'_>) -> Result<Claimed, Error> {
        let mut name = claim.name.to_owned();
        let mut last = EngineError::Conflict(format!("the name {name} changes hands too fast"));
        for _ in 0..TRIES {
            match self.engine.create(&name, claim.body).await {
                Ok(created) => {
                    for warning in &created.warnings {
                        tracing::warn!(container = %created.id, warning, "the engine warns about a create request");
                    }
                    return Ok(Claimed {
                        id: created.id,
                        create_key: None,
                        ready: false,
                    });
                }
                Err(error @ EngineError::Conflict(_)) => last = error,
                Err(error) => return Err(Error::engine(format!("creating {name}"))(error)),
            }
            match self.holder(&name, &claim).await? {
                Holder::Adopt(claimed) => {
                    tracing::info!(container = %claimed.id, name, "adopted what an earlier try of the same request made");
                    return Ok(claimed);
                }
                Holder::Replace(dead) => {
                    tracing::info!(container = %dead.id, name, "removing a dead holder of the name");
                    self.remove_dead(claim.kind, &dead).await?;
                }
                Holder::StepAside => {
                    name = name::aside(claim.name, u32::try_from(salt() >> 32).unwrap_or_default());
                    tracing::warn!(
                        wanted = claim.name,
                        name,
                        "the name is held by what may not be touched: stepping aside"
                    );
                }
                Holder::Gone => {}
            }
        }
        Err(Error::engine(format!("creating {}", claim.name))(last))
    }

    /// Removes a dead holder with all that is kept of it. It is done with before anything new is made, so that a failure
    /// later on leaves nothing of it.
    async fn remove_dead(&self, kind: &str, dead: &ContainerFacts) -> Result<(), Error> {
        let is_sandbox = kind == labels::TYPE_SANDBOX;
        if is_sandbox {
            self.detach_network(&dead.id, dead.network_mode == "host")
                .await?;
        } else {
            // The engine's log goes with the container.
            self.logs.forget(&dead.id).await;
        }
        gone_is_fine(self.engine.remove(&dead.id).await).map_err(Error::engine(format!(
            "removing the dead container {} that holds the name {}",
            dead.id, dead.name
        )))?;
        self.forget_failed_start(dead).await;
        if is_sandbox {
            let key = dead.labels.get(labels::CREATE_KEY).map(String::as_str);
            self.forget_sandbox(&dead.id, key).await?;
        }
        Ok(())
    }

    async fn holder(&self, name: &str, claim: &Claim<'_>) -> Result<Holder, Error> {
        match self.engine.inspect(name).await {
            Ok(facts) if self.is_lost_answer(&facts, claim).await? => Ok(Holder::Adopt(Claimed {
                id: facts.id,
                create_key: None,
                ready: true,
            })),
            Ok(facts) => Ok(judge(facts, claim)),
            Err(EngineError::NotFound(_)) => Ok(Holder::Gone),
            Err(error) => Err(Error::engine(format!(
                "inspecting the holder of the name {name}"
            ))(error)),
        }
    }
}

impl Runtime {
    /// Whether the holder is what this very request made before, its answer lost on the way: as good as new.
    async fn is_lost_answer(
        &self,
        facts: &ContainerFacts,
        claim: &Claim<'_>,
    ) -> Result<bool, Error> {
        let label = |key: &str| facts.labels.get(key).map(String::as_str);
        let same = claim.kind == labels::TYPE_SANDBOX
            && label(labels::TYPE) == Some(claim.kind)
            && label(labels::CONFIG_HASH) == Some(claim.config_hash);
        let ready = self.sandbox_state(&facts.id, facts.life.engine_state) == SandboxState::Ready;
        Ok(same && ready && self.containers_of(&facts.id).await?.is_empty())
    }
}

fn judge(facts: ContainerFacts, claim: &Claim<'_>) -> Holder {
    let label = |key: &str| facts.labels.get(key).map(String::as_str);
    if label(labels::TYPE) != Some(claim.kind) {
        return Holder::StepAside;
    }
    let never_started = facts.life.engine_state == EngineState::Created
        && facts.life.started_at == 0
        && facts.life.error.is_empty();
    if never_started && label(labels::CONFIG_HASH) == Some(claim.config_hash) {
        return Holder::Adopt(Claimed {
            create_key: label(labels::CREATE_KEY).map(str::to_owned),
            id: facts.id,
            ready: false,
        });
    }
    match facts.life.engine_state {
        EngineState::Created | EngineState::Exited | EngineState::Dead | EngineState::Removing => {
            Holder::Replace(Box::new(facts))
        }
        EngineState::Running
        | EngineState::Paused
        | EngineState::Restarting
        | EngineState::Other => Holder::StepAside,
    }
}
