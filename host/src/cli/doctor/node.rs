//! What doctor makes of the node around us: pure checks over what `look.rs` saw.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use crate::config::Endpoint;
use crate::cri::listener::probe::Answer;

/// Below this much free space, records may soon not be written.
const LITTLE_SPACE: u64 = 100 << 20;

/// A folder that we write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Store {
    /// A file could be written.
    Writable {
        /// Bytes left for us, where the system tells.
        free: Option<u64>,
    },
    /// It does not exist and can be made.
    CanBeMade,
    /// It cannot be used; the system's words.
    Unusable(String),
}

/// Whether a daemon answers on our socket.
pub(super) fn daemon(endpoint: &Endpoint, answer: Option<&Answer>) -> Finding {
    let ours = env!("CARGO_PKG_VERSION");
    match answer {
        None => Finding::ok("daemon", "not asked: fd:// names no socket"),
        Some(Answer::Springline { version, unready }) if !unready.is_empty() => Finding::fail(
            "daemon",
            format!(
                "{version} serves on {endpoint} and is not ready: {}",
                unready.join("; ")
            ),
            "put right what failed above; if nothing did, look at its log (journalctl -u springline)",
        ),
        Some(Answer::Springline { version, .. }) if version != ours => Finding::warn(
            "daemon",
            format!("{version} serves on {endpoint}, this program is {ours}"),
            "restart the daemon to run what is installed",
        ),
        Some(Answer::Springline { version, .. }) => {
            Finding::ok("daemon", format!("{version} serves on {endpoint}"))
        }
        Some(Answer::Another { name, version }) => Finding::fail(
            "daemon",
            format!("another runtime, {name} {version}, serves on {endpoint}"),
            "end it, or give another --container-runtime-endpoint",
        ),
        Some(Answer::Nobody) => Finding::warn(
            "daemon",
            format!("nobody serves on {endpoint}"),
            "start it: springline serve (systemctl start springline)",
        ),
        Some(Answer::Forbidden) => Finding::fail(
            "daemon",
            format!("{endpoint} may not be opened by this user"),
            "run this as root",
        ),
        Some(Answer::Silent) => Finding::fail(
            "daemon",
            format!("what listens on {endpoint} does not answer"),
            "look at its log (journalctl -u springline), restart it",
        ),
        Some(Answer::Strange(words)) => Finding::fail(
            "daemon",
            format!("what listens on {endpoint} speaks no CRI: {words}"),
            "end it, or give another --container-runtime-endpoint",
        ),
    }
}

/// Whether our records can be written.
pub(super) fn store(path: &Path, store: &Store) -> Finding {
    let path = path.display();
    match store {
        Store::Writable { free: Some(free) } if *free < LITTLE_SPACE => Finding::warn(
            "store",
            format!("{path} has {} MiB left", free >> 20),
            "make room: without it no pod can be started or removed",
        ),
        Store::Writable { .. } => Finding::ok("store", format!("{path} is writable")),
        Store::CanBeMade => Finding::ok("store", format!("{path} is made at the first start")),
        Store::Unusable(words) => Finding::fail(
            "store",
            format!("{path}: {words}"),
            "make it a folder that root can write to, or give another --root-dir",
        ),
    }
}

/// Whether Localhost seccomp profiles can be read; each root with whether it is a folder.
pub(super) fn seccomp_roots(roots: &[(PathBuf, bool)]) -> Vec<Finding> {
    let one = |(root, there): &(PathBuf, bool)| {
        let root = root.display();
        if *there {
            Finding::ok("seccomp root", root.to_string())
        } else {
            Finding::warn(
                "seccomp root",
                format!("{root} is no folder: a pod with a Localhost profile there does not start"),
                format!("mkdir -p {root}, or give another --seccomp-root"),
            )
        }
    };
    roots.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Grade;
    use super::*;

    fn springline(version: &str, unready: &[&str]) -> Option<Answer> {
        Some(Answer::Springline {
            version: version.into(),
            unready: unready.iter().map(|words| (*words).to_owned()).collect(),
        })
    }

    #[test]
    fn daemons() {
        use Grade::{Fail, Ok, Warn};
        let ours = env!("CARGO_PKG_VERSION");
        let cases: &[(&str, Option<Answer>, Grade, &str)] = &[
            ("ours", springline(ours, &[]), Ok, "on unix:///s.sock"),
            ("an older one", springline("0.0.9", &[]), Warn, "0.0.9"),
            (
                "not ready",
                springline("0.0.9", &["RuntimeReady is false: gone"]),
                Fail,
                "not ready: RuntimeReady is false: gone",
            ),
            (
                "another",
                Some(Answer::Another {
                    name: "containerd".into(),
                    version: "2.1".into(),
                }),
                Fail,
                "containerd 2.1",
            ),
            ("nobody", Some(Answer::Nobody), Warn, "nobody"),
            ("forbidden", Some(Answer::Forbidden), Fail, "this user"),
            ("silent", Some(Answer::Silent), Fail, "does not answer"),
            (
                "strange",
                Some(Answer::Strange("http".into())),
                Fail,
                "no CRI: http",
            ),
            ("passed", None, Ok, "fd://"),
        ];
        let endpoint = Endpoint::parse("/s.sock").unwrap();
        for (name, answer, grade, says) in cases {
            let finding = daemon(&endpoint, answer.as_ref());
            assert_eq!(finding.grade, *grade, "{name}: {finding:?}");
            assert!(finding.detail.contains(says), "{name}: {finding:?}");
        }
    }

    #[test]
    fn stores() {
        use Grade::{Fail, Ok, Warn};
        let cases: &[(&str, Store, Grade, &str)] = &[
            (
                "room",
                Store::Writable {
                    free: Some(LITTLE_SPACE),
                },
                Ok,
                "writable",
            ),
            (
                "unknown room",
                Store::Writable { free: None },
                Ok,
                "writable",
            ),
            (
                "little room",
                Store::Writable {
                    free: Some(5 << 20),
                },
                Warn,
                "5 MiB",
            ),
            ("fresh node", Store::CanBeMade, Ok, "first start"),
            (
                "refused",
                Store::Unusable("read-only".into()),
                Fail,
                "read-only",
            ),
        ];
        for (name, state, grade, says) in cases {
            let finding = store(Path::new("/r"), state);
            assert_eq!(finding.grade, *grade, "{name}: {finding:?}");
            assert!(finding.detail.contains(says), "{name}: {finding:?}");
        }
    }

    #[test]
    fn roots_of_profiles() {
        let findings = seccomp_roots(&[("/a".into(), true), ("/b".into(), false)]);
        assert_eq!(findings[0].grade, Grade::Ok);
        assert_eq!(findings[1].grade, Grade::Warn);
        assert!(
            findings[1]
                .advice
                .as_deref()
                .unwrap()
                .contains("mkdir -p /b")
        );
    }
}
