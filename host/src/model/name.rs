//! The names that containers get on the engine, and what can be read back from them.
//!
//! `k8s_<container>_<pod>_<namespace>_<uid>_<attempt>`, a sandbox's container being `POD`: dockershim's and cri-dockerd's
//! form. A seventh part (`_%08x`) marks a second try beside a name that may not be touched. Kubernetes names never hold an
//! underscore, so splitting is safe; what does not parse is not ours by name.

use crate::model::container::ContainerMetadata;
use crate::model::labels::SANDBOX_CONTAINER_NAME;
use crate::model::sandbox::SandboxMetadata;

const PREFIX: &str = "k8s";

/// What a name says of the thing that bears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The container's name within the pod; `POD` for the sandbox.
    pub container: String,
    /// The pod it belongs to. Its attempt is only known for sandboxes; 0 otherwise.
    pub sandbox: SandboxMetadata,
    /// The attempt of the thing itself.
    pub attempt: u32,
}

/// The name of a pod sandbox's container.
pub fn sandbox(meta: &SandboxMetadata) -> String {
    join(SANDBOX_CONTAINER_NAME, meta, meta.attempt)
}

/// The name of a container in a pod.
pub fn container(meta: &ContainerMetadata, pod: &SandboxMetadata) -> String {
    join(&meta.name, pod, meta.attempt)
}

/// `name` with the suffix that steps aside from one that may not be touched.
pub fn aside(name: &str, salt: u32) -> String {
    format!("{name}_{salt:08x}")
}

/// Reads a name of ours back; the engine's leading `/` is allowed.
pub fn parse(name: &str) -> Option<Parsed> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let parts: Vec<&str> = name.split('_').collect();
    let (&[prefix, container, pod, namespace, uid, attempt]
    | &[prefix, container, pod, namespace, uid, attempt, _]) = parts.as_slice()
    else {
        return None;
    };
    if prefix != PREFIX {
        return None;
    }
    let attempt: u32 = attempt.parse().ok()?;
    let is_sandbox = container == SANDBOX_CONTAINER_NAME;
    Some(Parsed {
        container: container.to_owned(),
        sandbox: SandboxMetadata {
            name: pod.to_owned(),
            uid: uid.to_owned(),
            namespace: namespace.to_owned(),
            attempt: if is_sandbox { attempt } else { 0 },
        },
        attempt,
    })
}

fn join(container: &str, pod: &SandboxMetadata, attempt: u32) -> String {
    format!(
        "{PREFIX}_{container}_{}_{}_{}_{attempt}",
        pod.name, pod.namespace, pod.uid
    )
}

/// Whether `part` can stand in a name: the engine allows `[a-zA-Z0-9_.-]`, and an underscore would be read as a separator.
pub fn valid_part(part: &str) -> bool {
    !part.is_empty()
        && part.len() <= 253
        && part
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(attempt: u32) -> SandboxMetadata {
        SandboxMetadata {
            name: "web-0".into(),
            uid: "1b2c".into(),
            namespace: "default".into(),
            attempt,
        }
    }

    #[test]
    fn names_are_those_of_dockershim() {
        assert_eq!(sandbox(&pod(2)), "k8s_POD_web-0_default_1b2c_2");
        let meta = ContainerMetadata {
            name: "app".into(),
            attempt: 3,
        };
        assert_eq!(container(&meta, &pod(2)), "k8s_app_web-0_default_1b2c_3");
        assert_eq!(
            aside("k8s_app_web-0_default_1b2c_3", 0xa1),
            "k8s_app_web-0_default_1b2c_3_000000a1"
        );
    }

    #[test]
    fn parsing_reads_back_what_was_joined() {
        let parsed = parse("/k8s_POD_web-0_default_1b2c_2").unwrap();
        assert_eq!(parsed.sandbox, pod(2));
        let parsed = parse("k8s_app_web-0_default_1b2c_3_000000a1").unwrap();
        assert_eq!((parsed.container.as_str(), parsed.attempt), ("app", 3));
        for foreign in ["web", "k8s_a_b", "x_a_b_c_d_0", "k8s_a_b_c_d_x", ""] {
            assert_eq!(parse(foreign), None, "{foreign}");
        }
    }
}
