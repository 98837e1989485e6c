//! What to take back when a later step fails, newest first.

use crate::runtime::Runtime;
use crate::runtime::resolve::gone_is_fine;

/// One thing that was done and can be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    /// Files were written under this key.
    Files(String),
    /// A container was made.
    Container(String),
    /// A record was written.
    Record(String),
    /// The network was (perhaps half) set up.
    Network(String),
}

/// The undo stack of one RunPodSandbox.
#[derive(Debug, Default)]
pub(super) struct UndoStack(Vec<Done>);

impl UndoStack {
    /// Notes a thing *before* it is done or right after, whichever leaves nothing behind.
    pub(super) fn push(&mut self, done: Done) {
        self.0.push(done);
    }

    /// Takes everything back, newest first. A failure is logged and the rest goes on: what stays is NOTREADY, carries our
    /// labels and can be stopped and removed.
    pub(super) async fn undo(self, runtime: &Runtime) {
        for done in self.0.into_iter().rev() {
            let result = match &done {
                Done::Files(key) => runtime
                    .store
                    .remove_files(key)
                    .await
                    .map_err(|e| e.to_string()),
                Done::Record(id) => runtime.store.remove(id).await.map_err(|e| e.to_string()),
                Done::Network(id) => runtime.network.detach(id).await.map_err(|e| e.to_string()),
                Done::Container(id) => {
                    gone_is_fine(runtime.engine.remove(id).await).map_err(|e| e.to_string())
                }
            };
            if let Err(error) = result {
                tracing::error!(?done, error, "could not take back a step of RunPodSandbox");
                // A record without its container is swept at start; a container without its record would look foreign.
                if matches!(done, Done::Container(_)) {
                    return;
                }
            }
        }
    }
}
