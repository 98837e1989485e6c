//! From the model to CRI messages: pure, total, and every field of a message written out.

mod container;
mod exec;
mod image;
mod node;
mod sandbox;

use cri_api::runtime::v1 as cri;

use crate::model::container::ContainerState;
use crate::model::sandbox::NamespaceMode;

pub(super) use container::{container, container_status, container_verbose};
pub(super) use exec::exec_output;
pub(super) use image::{filesystem_usage, image, image_verbose};
pub(super) use node::{cgroup_driver, status};
pub(super) use sandbox::{sandbox, sandbox_status, sandbox_verbose};

fn container_state(state: ContainerState) -> i32 {
    match state {
        ContainerState::Created => cri::ContainerState::ContainerCreated,
        ContainerState::Running => cri::ContainerState::ContainerRunning,
        ContainerState::Exited => cri::ContainerState::ContainerExited,
        ContainerState::Unknown => cri::ContainerState::ContainerUnknown,
    }
    .into()
}

fn namespace_mode(mode: NamespaceMode) -> i32 {
    match mode {
        NamespaceMode::Pod => cri::NamespaceMode::Pod,
        NamespaceMode::Container => cri::NamespaceMode::Container,
        NamespaceMode::Node => cri::NamespaceMode::Node,
        NamespaceMode::Target => cri::NamespaceMode::Target,
    }
    .into()
}
