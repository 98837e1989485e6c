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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn security_options() {
        for (name, options, want) in [
            ("none", &[][..], (false, false, false, false)),
            (
                "seccomp",
                &["name=seccomp,profile=builtin"],
                (true, false, false, false),
            ),
            (
                "older words",
                &["name=seccomp,profile=default"],
                (true, false, false, false),
            ),
            (
                "a file",
                &["name=seccomp,profile=/etc/s.json"],
                (true, false, false, false),
            ),
            (
                "switched off",
                &["name=seccomp,profile=unconfined"],
                (false, false, false, false),
            ),
            (
                "the others",
                &[
                    "name=apparmor",
                    "name=selinux",
                    "name=rootless",
                    "name=cgroupns",
                ],
                (false, true, true, true),
            ),
        ] {
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            let got = security(&options);
            let got = (got.seccomp, got.apparmor, got.selinux, got.rootless);
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn the_containerd_store_is_known_by_its_driver_type() {
        for (name, status, want) in [
            ("overlay2", vec![vec!["Backing Filesystem", "extfs"]], false),
            (
                "containerd's",
                vec![vec!["driver-type", "io.containerd.snapshotter.v1"]],
                true,
            ),
            ("odd", vec![vec![], vec!["driver-type"]], false),
        ] {
            let info = Info {
                driver_status: status
                    .into_iter()
                    .map(|pair| pair.into_iter().map(str::to_owned).collect())
                    .collect(),
                ..Info::default()
            };
            let facts = facts(Version::new(1, 41), Versions::default(), info);
            assert_eq!(facts.containerd_images, want, "{name}");
        }
    }
}
