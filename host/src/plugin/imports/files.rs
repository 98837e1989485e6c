//! `files`: one regular file from a granted root. The reading itself is in [`roots`] and runs on a
//! thread that may block.

use crate::plugin::bindings::files;
use crate::plugin::bindings::types::Refusal;
use crate::plugin::context::HookContext;
use crate::plugin::roots::{self, ReadError};

impl files::Host for HookContext {
    async fn read(
        &mut self,
        root: String,
        path: String,
        max: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, Refusal>> {
        self.meter.call()?;
        let Some(folders) = self.manifest.files.get(&root) else {
            return Ok(Err(Refusal::NotGranted(format!(
                "this node grants {} no root {root:?}",
                self.manifest.id
            ))));
        };
        let read = roots::read(folders.clone(), path, max as usize).await;
        if let Ok(content) = &read {
            self.meter.give(content.len())?;
        }
        Ok(read.map_err(refusal))
    }
}

fn refusal(error: ReadError) -> Refusal {
    let text = error.to_string();
    match error {
        ReadError::Outside { .. } => Refusal::NotGranted(text),
        ReadError::Missing { .. } => Refusal::UnknownPointer(text),
        ReadError::BadPath(_) | ReadError::NotAFile { .. } => Refusal::BadValue(text),
        ReadError::TooLarge { .. } => Refusal::Quota(text),
        ReadError::Io { .. } => Refusal::Other(text),
    }
}
