//! `/version` and `/info` as [`EngineFacts`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::runtime::ports::{EngineFacts, Version};

/// What `/version` says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(in crate::docker) struct Versions {
    pub(in crate::docker) version: String,
    pub(in crate::docker) api_version: String,
    #[serde(rename = "MinAPIVersion")]
    pub(in crate::docker) min_api_version: String,
}

/// What `/info` says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(in crate::docker) struct Info {
    name: String,
    #[serde(rename = "OSType")]
    os_type: String,
    architecture: String,
    kernel_version: String,
    cgroup_driver: String,
    cgroup_version: String,
    driver: String,
    driver_status: Vec<Vec<String>>,
    security_options: Vec<String>,
    docker_root_dir: String,
    runtimes: BTreeMap<String, Value>,
    default_runtime: String,
    logging_driver: String,
    warnings: Vec<String>,
    #[serde(rename = "CpuCfsQuota")]
    cpu_cfs_quota: bool,
    #[serde(rename = "CpuCfsPeriod")]
    cpu_cfs_period: bool,
    swap_limit: bool,
}

/// The facts, but for the OOM score, which no answer tells.
pub(in crate::docker) fn facts(api: Version, versions: Versions, info: Info) -> EngineFacts {
    let security = security(&info.security_options);
    let containerd_images = info.driver_status.iter().any(|pair| {
        matches!(pair.as_slice(), [key, value, ..]
            if key == "driver-type" && value.starts_with("io.containerd.snapshotter"))
    });
    EngineFacts {
        api,
        version: versions.version,
        os: or(info.os_type, "linux"),
        arch: info.architecture,
        kernel: info.kernel_version,
        node_name: info.name,
        // Only cgroup v1 was known to engines that do not tell.
        cgroup_version: if info.cgroup_version == "2" { 2 } else { 1 },
        cgroup_driver: or(info.cgroup_driver, "none"),
        storage_driver: info.driver,
        containerd_images,
        seccomp: security.seccomp,
        apparmor: security.apparmor,
        selinux: security.selinux,
        rootless: security.rootless,
        root_dir: info.docker_root_dir.into(),
        runtimes: info.runtimes.into_keys().collect(),
        default_runtime: info.default_runtime,
        log_driver: info.logging_driver,
        min_oom_score_adj: super::super::peer::LOWEST,
        cpu_quota: info.cpu_cfs_quota && info.cpu_cfs_period,
        swap_limit: info.swap_limit,
        warnings: info.warnings,
    }
}

fn or(text: String, default: &str) -> String {
    if text.is_empty() {
        default.to_owned()
    } else {
        text
    }
}

#[derive(Default)]
struct Security {
    seccomp: bool,
    apparmor: bool,
    selinux: bool,
    rootless: bool,
}

/// Reads options such as `name=seccomp,profile=builtin`.
fn security(options: &[String]) -> Security {
    let mut found = Security::default();
    for option in options {
        let mut parts = option.split(',');
        let unconfined = option.split(',').any(|part| part == "profile=unconfined");
        match parts.find_map(|part| part.strip_prefix("name=")) {
            Some("seccomp") => found.seccomp = !unconfined,
            Some("apparmor") => found.apparmor = true,
            Some("selinux") => found.selinux = true,
            Some("rootless") => found.rootless = true,
            _ => {}
        }
    }
    found
}
