//! The node's own status.

use std::collections::BTreeMap;

use cri_api::runtime::v1 as cri;
use serde_json::json;

use crate::draft::build::API_RECURSIVE_READ_ONLY;
use crate::model::engine::EngineFacts;
use crate::runtime::status::NodeStatus;

/// The cgroup driver that the kubelet must use too.
pub(in crate::cri) fn cgroup_driver(facts: &EngineFacts) -> i32 {
    if facts.cgroup_driver == "systemd" {
        cri::CgroupDriver::Systemd
    } else {
        cri::CgroupDriver::Cgroupfs
    }
    .into()
}

/// The whole answer; `verbose` adds what people want to see.
pub(in crate::cri) fn status(status: &NodeStatus, verbose: bool) -> cri::StatusResponse {
    let engine_error = status.engine.as_ref().err();
    let runtime = cri::RuntimeCondition {
        r#type: "RuntimeReady".to_owned(),
        status: engine_error.is_none(),
        reason: engine_error
            .map_or("", |_| "ContainerEngineUnavailable")
            .to_owned(),
        message: engine_error.cloned().unwrap_or_default(),
    };
    let network = cri::RuntimeCondition {
        r#type: "NetworkReady".to_owned(),
        status: status.network.ready,
        reason: status.network.reason.clone(),
        message: status.network.message.clone(),
    };
    cri::StatusResponse {
        status: Some(cri::RuntimeStatus {
            conditions: vec![runtime, network],
        }),
        info: if verbose {
            info(status)
        } else {
            BTreeMap::new()
        },
        runtime_handlers: status
            .engine
            .as_ref()
            .map(|facts| handlers(facts))
            .unwrap_or_default(),
        features: Some(cri::RuntimeFeatures {
            supplemental_groups_policy: false,
            user_namespaces_host_network: false,
            mount_options: false,
        }),
    }
}

fn handlers(facts: &EngineFacts) -> Vec<cri::RuntimeHandler> {
    let names = std::iter::once(String::new()).chain(facts.runtimes.iter().cloned());
    names
        .map(|name| cri::RuntimeHandler {
            name,
            features: Some(cri::RuntimeHandlerFeatures {
                recursive_read_only_mounts: facts.api >= API_RECURSIVE_READ_ONLY
                    && kernel_has_recursive_read_only(&facts.kernel),
                user_namespaces: false,
            }),
        })
        .collect()
}

/// mount_setattr(2) came with Linux 5.12.
fn kernel_has_recursive_read_only(release: &str) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (5, 12)
}

fn info(status: &NodeStatus) -> BTreeMap<String, String> {
    let engine = match &status.engine {
        Ok(facts) => json!({
            "version": facts.version,
            "api": facts.api.to_string(),
            "storageDriver": facts.storage_driver,
            "containerdImages": facts.containerd_images,
            "cgroupVersion": facts.cgroup_version,
            "cgroupDriver": facts.cgroup_driver,
            "rootDir": facts.root_dir,
            "minOomScoreAdj": facts.min_oom_score_adj,
            "warnings": facts.warnings,
        }),
        Err(error) => json!({"error": error}),
    };
    let set_aside: Vec<_> = status
        .set_aside
        .iter()
        .map(|(path, reason)| json!({"path": path, "reason": reason}))
        .collect();
    // Objects, since that is what crictl shows as more than a text.
    let plugins: serde_json::Map<_, _> = status
        .plugins
        .iter()
        .map(|plugin| (plugin.id.clone(), json!(plugin)))
        .collect();
    let plugins = serde_json::Value::Object(plugins);
    BTreeMap::from([
        ("engine".to_owned(), engine.to_string()),
        (
            "network".to_owned(),
            json!({"plugin": status.network_name}).to_string(),
        ),
        ("plugins".to_owned(), plugins.to_string()),
        (
            "recordsSetAside".to_owned(),
            json!({"count": set_aside.len(), "records": set_aside}).to_string(),
        ),
        (
            "version".to_owned(),
            json!({"springline": env!("CARGO_PKG_VERSION")}).to_string(),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_compared_by_number() {
        for (release, want) in [
            ("6.12.1-arch", true),
            ("5.12.0", true),
            ("5.9.16", false),
            ("4.19.0-x", false),
            ("", false),
        ] {
            assert_eq!(kernel_has_recursive_read_only(release), want, "{release}");
        }
    }
}
