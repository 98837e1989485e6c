//! Pod sandboxes.

use std::collections::BTreeMap;

use cri_api::runtime::v1 as cri;
use serde_json::json;

use super::namespace_mode;
use crate::model::sandbox::{
    SandboxMetadata, SandboxNamespaces, SandboxState, SandboxStatus, SandboxSummary,
};

fn metadata(metadata: SandboxMetadata) -> cri::PodSandboxMetadata {
    let SandboxMetadata {
        name,
        uid,
        namespace,
        attempt,
    } = metadata;
    cri::PodSandboxMetadata {
        name,
        uid,
        namespace,
        attempt,
    }
}

fn state(state: SandboxState) -> i32 {
    match state {
        SandboxState::Ready => cri::PodSandboxState::SandboxReady,
        SandboxState::NotReady => cri::PodSandboxState::SandboxNotready,
    }
    .into()
}

/// A sandbox in a list.
pub(in crate::cri) fn sandbox(summary: SandboxSummary) -> cri::PodSandbox {
    cri::PodSandbox {
        id: summary.id.to_string(),
        metadata: Some(metadata(summary.metadata)),
        state: state(summary.state),
        created_at: summary.created_at,
        labels: summary.meta.labels,
        annotations: summary.meta.annotations,
        runtime_handler: summary.runtime_handler,
    }
}

/// A sandbox in full.
pub(in crate::cri) fn sandbox_status(status: SandboxStatus) -> cri::PodSandboxStatus {
    let SandboxNamespaces { network, pid, ipc } = status.namespaces;
    let mut addresses = status.addresses.iter().map(ToString::to_string);
    cri::PodSandboxStatus {
        id: status.summary.id.to_string(),
        metadata: Some(metadata(status.summary.metadata)),
        state: state(status.summary.state),
        created_at: status.summary.created_at,
        network: Some(cri::PodSandboxNetworkStatus {
            ip: addresses.next().unwrap_or_default(),
            additional_ips: addresses.map(|ip| cri::PodIp { ip }).collect(),
        }),
        linux: Some(cri::LinuxPodSandboxStatus {
            namespaces: Some(cri::Namespace {
                options: Some(cri::NamespaceOption {
                    network: namespace_mode(network),
                    pid: namespace_mode(pid),
                    ipc: namespace_mode(ipc),
                    target_id: String::new(),
                    userns_options: None,
                }),
            }),
        }),
        labels: status.summary.meta.labels,
        annotations: status.summary.meta.annotations,
        runtime_handler: status.summary.runtime_handler,
    }
}

/// The verbose part of a sandbox's status.
pub(in crate::cri) fn sandbox_verbose(status: &SandboxStatus) -> BTreeMap<String, String> {
    let info = json!({"pid": status.pid, "files": status.files});
    BTreeMap::from([("info".to_owned(), info.to_string())])
}
