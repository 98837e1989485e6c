//! What one call of a plugin works on: the data of its store.
//!
//! Made for one call and dropped with it. What the guest writes goes to the scratch draft here; only a call that ends well
//! gives it back. The host functions in `imports/` are implemented on this type.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::limits::{Meter, Stop};
use super::manifest::Manifest;
use crate::draft::{Draft, Owner, Pointer};
use crate::runtime::ports::{EngineFacts, Hook, PluginCall, Subject};

/// The data of one call's store.
pub(super) struct HookContext {
    /// Which plugin, and what it may do.
    pub(super) manifest: Arc<Manifest>,
    /// Who the writes belong to.
    pub(super) owner: Owner,
    /// Which hook runs.
    pub(super) hook: Hook,
    /// Whom it is about.
    pub(super) subject: Subject,
    /// The CRI request.
    pub(super) request: Arc<Value>,
    /// Annotations.
    pub(super) annotations: Arc<BTreeMap<String, String>>,
    /// The engine.
    pub(super) engine: Arc<EngineFacts>,
    /// Nothing will be created.
    pub(super) dry_run: bool,
    /// The scratch layer.
    pub(super) draft: Draft,
    /// Request pointers that were marked.
    pub(super) handled: BTreeSet<Pointer>,
    /// What it has used.
    pub(super) meter: Meter,
    /// Log lines so far.
    pub(super) log_lines: u32,
}

impl HookContext {
    /// The context of one call, over the draft as the plugins before left it.
    pub(super) fn new(manifest: &Arc<Manifest>, call: &PluginCall, draft: Draft) -> Self {
        Self {
            manifest: Arc::clone(manifest),
            owner: Owner::Plugin(manifest.id.clone()),
            hook: call.hook,
            subject: call.subject.clone(),
            request: Arc::clone(&call.request),
            annotations: Arc::clone(&call.annotations),
            engine: Arc::clone(&call.engine),
            dry_run: call.dry_run,
            draft,
            handled: BTreeSet::new(),
            meter: Meter::new(&manifest.limits),
            log_lines: 0,
        }
    }

    /// Counts what is given to the guest and passes it on.
    pub(super) fn give(&mut self, text: Option<String>) -> Result<Option<String>, Stop> {
        self.meter.give(text.as_ref().map_or(0, String::len))?;
        Ok(text)
    }
}
