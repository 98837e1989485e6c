//! Containers.

use std::collections::BTreeMap;

use cri_api::runtime::v1 as cri;
use serde_json::json;

use super::container_state;
use crate::model::container::{ContainerMetadata, ContainerStatus, ContainerSummary, Life};
use crate::model::mount::{Mount, MountSource, Propagation};
use crate::model::resources::LinuxResources;

fn metadata(metadata: ContainerMetadata) -> cri::ContainerMetadata {
    let ContainerMetadata { name, attempt } = metadata;
    cri::ContainerMetadata { name, attempt }
}

fn image_spec(image: String) -> cri::ImageSpec {
    cri::ImageSpec {
        user_specified_image: image.clone(),
        image,
        annotations: BTreeMap::new(),
        runtime_handler: String::new(),
        image_ref: String::new(),
    }
}

/// A container in a list.
pub(in crate::cri) fn container(summary: ContainerSummary) -> cri::Container {
    cri::Container {
        id: summary.id.to_string(),
        pod_sandbox_id: summary.sandbox_id.to_string(),
        metadata: Some(metadata(summary.metadata)),
        image: Some(image_spec(summary.image)),
        image_ref: summary.image_ref,
        state: container_state(summary.state),
        created_at: summary.created_at,
        labels: summary.meta.labels,
        annotations: summary.meta.annotations,
        image_id: summary.image_id.to_string(),
    }
}

/// A container in full.
pub(in crate::cri) fn container_status(status: ContainerStatus) -> cri::ContainerStatus {
    let Life {
        state,
        started_at,
        finished_at,
        exit_code,
        reason,
        message,
    } = status.life;
    cri::ContainerStatus {
        id: status.summary.id.to_string(),
        metadata: Some(metadata(status.summary.metadata)),
        state: container_state(state),
        created_at: status.summary.created_at,
        started_at,
        finished_at,
        exit_code,
        image: Some(image_spec(status.summary.image)),
        image_ref: status.summary.image_ref,
        reason: reason.to_owned(),
        message,
        labels: status.summary.meta.labels,
        annotations: status.summary.meta.annotations,
        mounts: status.mounts.into_iter().map(mount).collect(),
        log_path: status.log_path,
        resources: Some(cri::ContainerResources {
            linux: Some(linux_resources(status.resources)),
            windows: None,
        }),
        image_id: status.summary.image_id.to_string(),
        user: status
            .user
            .map(|(uid, gid, supplemental_groups)| cri::ContainerUser {
                linux: Some(cri::LinuxContainerUser {
                    uid,
                    gid,
                    supplemental_groups,
                }),
            }),
        stop_signal: signal(&status.stop_signal).into(),
    }
}

/// The verbose part of a container's status.
pub(in crate::cri) fn container_verbose(status: &ContainerStatus) -> BTreeMap<String, String> {
    let info = json!({"pid": status.pid, "sandboxID": status.summary.sandbox_id.as_str()});
    BTreeMap::from([("info".to_owned(), info.to_string())])
}

fn mount(mount: Mount) -> cri::Mount {
    let Mount {
        container_path,
        source,
        readonly,
        recursive_read_only,
        selinux_relabel,
        propagation,
    } = mount;
    let (host_path, image, image_sub_path) = match source {
        MountSource::Host(path) => (path, None, String::new()),
        MountSource::Image {
            reference,
            sub_path,
        } => (
            String::new(),
            Some(image_spec(reference.to_string())),
            sub_path,
        ),
    };
    cri::Mount {
        container_path,
        host_path,
        readonly,
        selinux_relabel,
        propagation: match propagation {
            Propagation::Private => cri::MountPropagation::PropagationPrivate,
            Propagation::HostToContainer => cri::MountPropagation::PropagationHostToContainer,
            Propagation::Bidirectional => cri::MountPropagation::PropagationBidirectional,
        }
        .into(),
        uid_mappings: Vec::new(),
        gid_mappings: Vec::new(),
        recursive_read_only,
        image,
        image_sub_path,
        mount_options: Vec::new(),
    }
}

fn linux_resources(resources: LinuxResources) -> cri::LinuxContainerResources {
    let LinuxResources {
        cpu_period,
        cpu_quota,
        cpu_shares,
        memory_limit,
        memory_swap_limit,
        oom_score_adj,
        cpuset_cpus,
        cpuset_mems,
        hugepages,
        unified,
        oom_group: _, // asked for in `unified` and not read back from the cgroup
    } = resources;
    cri::LinuxContainerResources {
        cpu_period,
        cpu_quota,
        cpu_shares,
        memory_limit_in_bytes: memory_limit,
        oom_score_adj,
        cpuset_cpus,
        cpuset_mems,
        hugepage_limits: hugepages
            .into_iter()
            .map(|(page_size, limit)| cri::HugepageLimit { page_size, limit })
            .collect(),
        unified,
        memory_swap_limit_in_bytes: memory_swap_limit,
    }
}

/// The engine keeps the signal as it was given: by name with or without `SIG`, or by number (images may).
fn signal(name: &str) -> cri::Signal {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    let name = name.replace("MIN+", "MINPLUS").replace("MAX-", "MAXMINUS");
    let name = match name.as_str() {
        // What the engine sends when nobody says otherwise.
        "" => return cri::Signal::Sigterm,
        "1" => "HUP",
        "2" => "INT",
        "3" => "QUIT",
        "9" => "KILL",
        "10" => "USR1",
        "12" => "USR2",
        "15" => "TERM",
        "28" => "WINCH",
        other => other,
    };
    cri::Signal::from_str_name(&format!("SIGNAL_SIG{name}")).unwrap_or(cri::Signal::RuntimeDefault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cri::from_proto::signal_name;

    #[test]
    fn every_signal_round_trips() {
        for number in 1..=65 {
            let asked = cri::Signal::try_from(number).unwrap();
            assert_eq!(signal(&signal_name(asked)), asked, "{asked:?}");
        }
        assert_eq!(signal("15"), cri::Signal::Sigterm);
        assert_eq!(signal(""), cri::Signal::Sigterm);
    }
}
