//! What doctor makes of the container engine: pure checks over [`EngineFacts`].

use super::finding::Finding;
use crate::model::engine::{EngineFacts, Version};
use crate::runtime::ports::EngineError;

/// The oldest API that is spoken.
const OLDEST_API: Version = Version::new(1, 40);
/// What sandboxes run with, so that they outlive their containers when memory is short.
const SANDBOX_OOM_SCORE_ADJ: i64 = -998;

/// All that is to be said about the engine at `endpoint`.
pub(super) fn findings(endpoint: &str, facts: Result<&EngineFacts, &EngineError>) -> Vec<Finding> {
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return vec![no_engine(endpoint, error)],
    };
    let mut findings = vec![
        version(endpoint, facts),
        platform(facts),
        cgroup(facts),
        limits(facts),
        oom_score(facts),
        seccomp(facts),
        Finding::ok(
            "apparmor",
            switch(facts.apparmor, "a pod with a Localhost profile is refused"),
        ),
        Finding::ok(
            "selinux",
            switch(facts.selinux, "a pod's SELinux options have no effect"),
        ),
        rights(facts),
        storage(facts),
        logs(facts),
        runtimes(facts),
    ];
    findings.extend(facts.warnings.iter().map(|warning| {
        Finding::warn(
            "engine's words",
            warning.trim_start_matches("WARNING: "),
            "`docker info` says it too; its documentation says what to do",
        )
    }));
    findings
}

fn no_engine(endpoint: &str, error: &EngineError) -> Finding {
    let advice = match error {
        EngineError::Unreachable { .. } => {
            "start Docker (systemctl start docker), or give its socket by --docker-endpoint; run this as root"
        }
        EngineError::Timeout { .. } => {
            "it is there and does not answer: look at its log (journalctl -u docker), restart it"
        }
        EngineError::TooOld { .. } => "install Docker 19.03 or newer",
        _ => {
            "see that Docker Engine is what answers at --docker-endpoint, and look at its log (journalctl -u docker)"
        }
    };
    let detail = match error {
        EngineError::Unreachable { .. } => error.to_string(), // it names the endpoint
        _ => format!("{endpoint}: {error}"),
    };
    Finding::fail("engine", detail, advice)
}

fn version(endpoint: &str, facts: &EngineFacts) -> Finding {
    let detail = format!("Docker {}, API {}, {endpoint}", facts.version, facts.api);
    if facts.api < OLDEST_API {
        return Finding::fail("engine", detail, "install Docker 19.03 or newer");
    }
    Finding::ok("engine", detail)
}

fn platform(facts: &EngineFacts) -> Finding {
    let detail = format!("{}/{}, kernel {}", facts.os, facts.arch, facts.kernel);
    if facts.os == "linux" {
        Finding::ok("platform", detail)
    } else {
        Finding::fail(
            "platform",
            detail,
            "this version drives engines for Linux containers only",
        )
    }
}

fn cgroup(facts: &EngineFacts) -> Finding {
    let detail = format!(
        "version {}, driver {} (the kubelet's cgroupDriver must be the same)",
        facts.cgroup_version, facts.cgroup_driver
    );
    if facts.cgroup_driver == "none" {
        Finding::warn(
            "cgroup",
            "the engine has no cgroup driver: no limit of a pod is enforced",
            "on a rootless engine, boot with cgroup v2 and delegate its controllers to the engine's user",
        )
    } else if facts.cgroup_version < 2 {
        Finding::warn(
            "cgroup",
            detail,
            "kubelets since 1.35 refuse version 1 unless failCgroupV1 is false: boot with cgroup v2",
        )
    } else {
        Finding::ok("cgroup", detail)
    }
}

fn limits(facts: &EngineFacts) -> Finding {
    match (facts.cpu_quota, facts.swap_limit) {
        (true, true) => Finding::ok("limits", "CPU quota, memory, swap"),
        (false, _) => Finding::warn(
            "limits",
            "the kernel has no CPU quota: CPU limits are not enforced",
            "boot a kernel with CONFIG_CFS_BANDWIDTH",
        ),
        (true, false) => Finding::warn(
            "limits",
            "swap is not limited: a container may swap beyond its memory limit",
            "turn swap off, or boot with swapaccount=1",
        ),
    }
}

fn oom_score(facts: &EngineFacts) -> Finding {
    let least = facts.min_oom_score_adj;
    if least <= SANDBOX_OOM_SCORE_ADJ {
        return Finding::ok("oom_score_adj", format!("can be lowered to {least}"));
    }
    Finding::warn(
        "oom_score_adj",
        format!(
            "the engine cannot go below {least}: sandboxes and guaranteed pods get that instead of less, and may be killed early when memory is short"
        ),
        "run the engine with CAP_SYS_RESOURCE",
    )
}

fn seccomp(facts: &EngineFacts) -> Finding {
    if facts.seccomp {
        Finding::ok("seccomp", "on")
    } else {
        Finding::warn(
            "seccomp",
            "the engine does not filter system calls: a pod that asks for a profile is refused, others run unfiltered",
            "use a kernel and an engine with seccomp, and drop seccomp-profile=unconfined from its options",
        )
    }
}

/// SELinux and AppArmor are the distribution's choice: off is in order, and worth knowing.
fn switch(on: bool, without: &str) -> String {
    if on {
        "on".to_owned()
    } else {
        format!("off on this node: {without}")
    }
}

fn rights(facts: &EngineFacts) -> Finding {
    if facts.rootless {
        Finding::warn(
            "rights",
            "the engine runs without root's rights: host networks, devices and some limits do not work",
            "run a root engine where pods need them",
        )
    } else {
        Finding::ok("rights", "root engine")
    }
}

fn storage(facts: &EngineFacts) -> Finding {
    let store = if facts.containerd_images {
        "containerd's image store"
    } else {
        "the engine's own image store"
    };
    let driver = &facts.storage_driver;
    let detail = format!("{driver}, {store}, {}", facts.root_dir.display());
    match driver.as_str() {
        "vfs" => Finding::warn(
            "storage",
            format!("{detail}: every container is a full copy of its image"),
            "give the engine a file system for overlay2 (ext4, or xfs with ftype=1)",
        ),
        "aufs" | "devicemapper" | "overlay" => Finding::warn(
            "storage",
            format!("{detail}: newer engines do not have this driver any more"),
            "move the engine to overlay2",
        ),
        _ => Finding::ok("storage", detail),
    }
}

/// Our containers are created with json-file, whatever the engine does otherwise.
fn logs(facts: &EngineFacts) -> Finding {
    let detail = match facts.log_driver.as_str() {
        "json-file" => "json-file".to_owned(),
        other => format!("json-file for pods ({other} for the engine's other containers)"),
    };
    Finding::ok("log driver", detail)
}

fn runtimes(facts: &EngineFacts) -> Finding {
    let others = facts
        .runtimes
        .iter()
        .filter(|name| **name != facts.default_runtime);
    let mut names = vec![format!("{} (default)", facts.default_runtime)];
    names.extend(others.cloned());
    Finding::ok("OCI runtimes", names.join(", "))
}

#[cfg(test)]
mod tests;
