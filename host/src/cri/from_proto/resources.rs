//! LinuxContainerResources.

use std::collections::BTreeMap;

use cri_api::runtime::v1 as cri;

use super::{no_nul, required};
use crate::error::Error;
use crate::model::resources::LinuxResources;

/// The cgroup v2 file that the kubelet sets on every container of a v2 node.
const OOM_GROUP: &str = "memory.oom.group";

/// A container and its new limits.
pub(in crate::cri) fn resource_update(
    request: cri::UpdateContainerResourcesRequest,
) -> Result<(String, LinuxResources), Error> {
    let cri::UpdateContainerResourcesRequest {
        container_id,
        linux,
        windows,
        annotations,
    } = request;
    if windows.is_some() {
        return Err(Error::unsupported(
            "windows",
            "this engine runs Linux containers",
        ));
    }
    if !annotations.is_empty() {
        return Err(Error::unsupported(
            "annotations",
            "an engine's containers keep the annotations they were made with",
        ));
    }
    let limits = linux_resources(required(linux, "linux")?, "linux")?;
    Ok((container_id, limits))
}

/// Limits; what asks for nothing (huge pages of 0) is left out, since the kubelet sends it always.
pub(in crate::cri) fn linux_resources(
    resources: cri::LinuxContainerResources,
    field: &str,
) -> Result<LinuxResources, Error> {
    let cri::LinuxContainerResources {
        cpu_period,
        cpu_quota,
        cpu_shares,
        memory_limit_in_bytes,
        oom_score_adj,
        cpuset_cpus,
        cpuset_mems,
        hugepage_limits,
        unified,
        memory_swap_limit_in_bytes,
    } = resources;
    for (value, least, name) in [
        (cpu_period, 0, "cpu_period"),
        (cpu_quota, -1, "cpu_quota"),
        (cpu_shares, 0, "cpu_shares"),
        (memory_limit_in_bytes, 0, "memory_limit_in_bytes"),
        (memory_swap_limit_in_bytes, -1, "memory_swap_limit_in_bytes"),
    ] {
        if value < least {
            return Err(Error::invalid(
                format!("{field}.{name}"),
                format!("{value} is below {least}"),
            ));
        }
    }
    if !(-1000..=1000).contains(&oom_score_adj) {
        return Err(Error::invalid(
            format!("{field}.oom_score_adj"),
            "must be -1000 to 1000",
        ));
    }
    no_nul(&cpuset_cpus, &format!("{field}.cpuset_cpus"))?;
    no_nul(&cpuset_mems, &format!("{field}.cpuset_mems"))?;
    let (oom_group, unified) = oom_group(unified, field)?;
    Ok(LinuxResources {
        cpu_period,
        cpu_quota,
        cpu_shares,
        memory_limit: memory_limit_in_bytes,
        memory_swap_limit: memory_swap_limit_in_bytes,
        oom_score_adj,
        cpuset_cpus,
        cpuset_mems,
        hugepages: hugepage_limits
            .into_iter()
            .filter(|page| page.limit > 0)
            .map(|cri::HugepageLimit { page_size, limit }| (page_size, limit))
            .collect(),
        unified,
        oom_group,
    })
}

fn oom_group(
    mut unified: BTreeMap<String, String>,
    field: &str,
) -> Result<(Option<bool>, BTreeMap<String, String>), Error> {
    let group = match unified.remove(OOM_GROUP).as_deref() {
        None => None,
        Some("0") => Some(false),
        Some("1") => Some(true),
        Some(other) => {
            return Err(Error::invalid(
                format!("{field}.unified[{OOM_GROUP}]"),
                format!("{other:?} is neither 0 nor 1"),
            ));
        }
    };
    Ok((group, unified))
}
