//! What the engine says of an exec.

use serde::Deserialize;

/// The ID in the answer to a create call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(in crate::docker) struct CreatedExec {
    pub(in crate::docker) id: String,
}

/// An exec as it is.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(in crate::docker) struct Exec {
    #[serde(rename = "ContainerID")]
    pub(in crate::docker) container_id: String,
    pub(in crate::docker) running: bool,
    /// Not there while it has not ended.
    pub(in crate::docker) exit_code: Option<i32>,
    /// On the node; stays what it was when it has ended, and is 0 when it never ran.
    pub(in crate::docker) pid: i32,
}
