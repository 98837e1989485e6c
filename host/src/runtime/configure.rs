//! From the host's draft to the finished body: plugins, then the check that nothing platform-specific was dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Runtime;
use super::platform_fields;
use super::ports::{Configured, EngineFacts, Hook, PluginCall, PluginError, Subject};
use crate::draft::{Draft, Pointer};
use crate::error::Error;
use crate::model::labels;

/// What the plugins are shown of a request.
pub(super) struct Asked {
    pub(super) hook: Hook,
    pub(super) subject: Subject,
    pub(super) document: Arc<Value>,
    pub(super) annotations: BTreeMap<String, String>,
}

impl Runtime {
    /// Runs the plugins over the host's draft and gives the engine's body.
    ///
    /// # Errors
    /// A plugin's refusal, or [`PluginError::Unhandled`] for a platform field that is set and that nobody handled.
    pub(super) async fn configure(
        &self,
        asked: Asked,
        draft: Draft,
        engine: Arc<EngineFacts>,
    ) -> Result<Value, Error> {
        let call = PluginCall {
            hook: asked.hook,
            subject: asked.subject,
            request: Arc::clone(&asked.document),
            annotations: Arc::new(asked.annotations),
            engine: Arc::clone(&engine),
            draft,
            dry_run: false,
        };
        let Configured {
            mut draft,
            handled,
            chain_digest,
        } = self.plugins.configure(call).await?;
        let unhandled = platform_fields::set(&asked.document, asked.hook, &engine)
            .into_iter()
            .find(|field| !handled.iter().any(|pointer| pointer.covers(&field.pointer)));
        if let Some(field) = unhandled {
            return Err(PluginError::Unhandled {
                field: platform_fields::cri_name(&field.pointer),
                reason: format!("{}, and no loaded plugin handles it", field.why),
            }
            .into());
        }
        if !chain_digest.is_empty() {
            draft.put(
                &Pointer::of(["Labels", labels::PLUGIN_CHAIN]),
                chain_digest.into(),
            );
        }
        Ok(draft.to_body())
    }
}

/// Hash of a request: equal requests hash alike, since JSON objects are ordered here.
pub(super) fn config_hash(document: &Value) -> String {
    let digest = Sha256::digest(document.to_string().as_bytes());
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
