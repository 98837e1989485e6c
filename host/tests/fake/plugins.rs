//! Fake plugins: what they handle, what they write, how they fail.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use springline::draft::Pointer;
use springline::runtime::ports::{Configured, PluginCall, PluginError, PluginStatus, Plugins};

use super::script::{Script, Verdict};

/// What the chain of plugins does.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Handles every platform field and writes nothing.
    HandlesAll,
    /// No plugin is loaded.
    HandlesNothing,
    /// Handles these request pointers.
    Handles(Vec<&'static str>),
    /// Handles everything and writes these values.
    Writes(Vec<(&'static str, Value)>),
    /// Fails.
    Fails(PluginError),
}

/// The fake chain.
pub struct FakePlugins {
    script: Script,
    behaviour: Mutex<Behaviour>,
    seen: Mutex<Vec<PluginCall>>,
}

impl FakePlugins {
    pub fn new(script: Script, behaviour: Behaviour) -> Self {
        Self {
            script,
            behaviour: Mutex::new(behaviour),
            seen: Mutex::default(),
        }
    }

    pub fn set(&self, behaviour: Behaviour) {
        *self
            .behaviour
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = behaviour;
    }

    /// The calls so far, with all that the plugins were shown.
    pub fn seen(&self) -> Vec<PluginCall> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[async_trait]
impl Plugins for FakePlugins {
    async fn configure(&self, call: PluginCall) -> Result<Configured, PluginError> {
        let verdict = self
            .script
            .enter("plugins.configure", call.hook.as_str())
            .await;
        if !matches!(verdict, Verdict::Go) {
            return Err(PluginError::Fatal {
                plugin: "fake".into(),
                message: "scripted".into(),
            });
        }
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call.clone());
        let behaviour = self
            .behaviour
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut draft = call.draft;
        let everything = BTreeSet::from([Pointer::of(["config"])]);
        let (handled, chain_digest) = match behaviour {
            Behaviour::Fails(error) => return Err(error),
            Behaviour::HandlesNothing => (BTreeSet::new(), String::new()),
            Behaviour::HandlesAll => (everything, "c0ffee".to_owned()),
            Behaviour::Handles(pointers) => (
                pointers.iter().map(|p| p.parse().unwrap()).collect(),
                "c0ffee".to_owned(),
            ),
            Behaviour::Writes(values) => {
                for (pointer, value) in values {
                    draft.put(&pointer.parse().unwrap(), value);
                }
                (everything, "c0ffee".to_owned())
            }
        };
        Ok(Configured {
            draft,
            handled,
            chain_digest,
        })
    }

    fn status(&self) -> Vec<PluginStatus> {
        Vec::new()
    }
}
