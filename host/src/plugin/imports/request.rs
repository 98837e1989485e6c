//! `request`: what the kubelet asked, read only.

use serde_json::Value;

use crate::draft::{Pointer, lookup};
use crate::plugin::bindings::{request, types};
use crate::plugin::context::HookContext;
use crate::plugin::limits::{MAX_HANDLED, Stop};

impl request::Host for HookContext {
    fn current(&mut self) -> wasmtime::Result<types::Subject> {
        self.meter.call()?;
        let subject = self.subject.clone();
        Ok(types::Subject {
            pod_uid: subject.pod_uid,
            pod_namespace: subject.pod_namespace,
            pod_name: subject.pod_name,
            sandbox_id: subject.sandbox_id,
            container_name: subject.container_name,
            container_id: subject.container_id,
            attempt: subject.attempt,
        })
    }

    fn get(&mut self, pointer: String) -> wasmtime::Result<Option<String>> {
        self.meter.call()?;
        let text = json_at(&self.request, &pointer);
        Ok(self.give(text)?)
    }

    fn annotation(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        self.meter.call()?;
        let value = self.annotations.get(&key).cloned();
        Ok(self.give(value)?)
    }

    fn setting(&mut self, pointer: String) -> wasmtime::Result<Option<String>> {
        self.meter.call()?;
        let text = match &self.manifest.settings {
            Value::Null => None,
            settings => json_at(settings, &pointer),
        };
        Ok(self.give(text)?)
    }

    fn handled(&mut self, pointer: String) -> wasmtime::Result<()> {
        self.meter.call()?;
        match pointer.parse::<Pointer>() {
            Ok(pointer) => {
                self.handled.insert(pointer);
            }
            // The function cannot answer. The field stays unhandled, so the request fails closed if it was a real one.
            Err(error) => tracing::warn!(
                plugin = %self.manifest.id,
                hook = self.hook.as_str(),
                %error,
                "plugin marked as handled what is no request pointer; ignored"
            ),
        }
        if self.handled.len() > MAX_HANDLED {
            return Err(Stop::Handled.into());
        }
        Ok(())
    }

    fn dry_run(&mut self) -> wasmtime::Result<bool> {
        self.meter.call()?;
        Ok(self.dry_run)
    }
}

/// The JSON text at an RFC 6901 pointer; the empty pointer is the whole document.
fn json_at(doc: &Value, pointer: &str) -> Option<String> {
    if pointer.is_empty() {
        return Some(doc.to_string());
    }
    let pointer: Pointer = pointer.parse().ok()?;
    lookup(doc, &pointer).map(Value::to_string)
}
