//! The filters of list calls. A missing filter, and a missing part of one, filters nothing.

use cri_api::runtime::v1 as cri;

use super::known;
use crate::error::Error;
use crate::model::container::ContainerState;
use crate::model::sandbox::SandboxState;
use crate::runtime::container::list::ContainerFilter;
use crate::runtime::sandbox::list::SandboxFilter;

/// A filter of ListContainers.
pub(in crate::cri) fn container_filter(
    filter: Option<cri::ContainerFilter>,
) -> Result<ContainerFilter, Error> {
    let cri::ContainerFilter {
        id,
        state,
        pod_sandbox_id,
        label_selector,
    } = filter.unwrap_or_default();
    Ok(ContainerFilter {
        id,
        state: state
            .map(|cri::ContainerStateValue { state }| known(state, "filter.state.state"))
            .transpose()?
            .map(|state| match state {
                cri::ContainerState::ContainerCreated => ContainerState::Created,
                cri::ContainerState::ContainerRunning => ContainerState::Running,
                cri::ContainerState::ContainerExited => ContainerState::Exited,
                cri::ContainerState::ContainerUnknown => ContainerState::Unknown,
            }),
        sandbox_id: pod_sandbox_id,
        labels: label_selector,
    })
}

/// A filter of ListPodSandbox.
pub(in crate::cri) fn sandbox_filter(
    filter: Option<cri::PodSandboxFilter>,
) -> Result<SandboxFilter, Error> {
    let cri::PodSandboxFilter {
        id,
        state,
        label_selector,
    } = filter.unwrap_or_default();
    Ok(SandboxFilter {
        id,
        state: state
            .map(|cri::PodSandboxStateValue { state }| known(state, "filter.state.state"))
            .transpose()?
            .map(|state| match state {
                cri::PodSandboxState::SandboxReady => SandboxState::Ready,
                cri::PodSandboxState::SandboxNotready => SandboxState::NotReady,
            }),
        labels: label_selector,
    })
}

/// The image that ListImages is limited to; `None` = all.
pub(in crate::cri) fn image_filter(filter: Option<cri::ImageFilter>) -> Option<String> {
    let cri::ImageFilter { image } = filter?;
    image
        .map(|spec| spec.image)
        .filter(|image| !image.is_empty())
}
