//! What doctor makes of the plugins: pure checks over [`PluginStatus`] and the names of manifests.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use crate::runtime::ports::PluginStatus;

/// Hexadecimal digits of a digest that are shown.
const SHORT_DIGEST: usize = 12;

/// All that is to be said about the plugins. `built_in`: this binary has the shipped components inside. `unread`: manifests
/// in `folder`, which this version does not read. `unpooled`: why each call of a plugin takes its memory anew.
pub(super) fn findings(
    plugins: &[PluginStatus],
    built_in: bool,
    unpooled: Option<&str>,
    folder: &Path,
    unread: &[PathBuf],
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = plugins.iter().map(plugin).collect();
    if !built_in {
        findings.push(Finding::fail(
            "plugins",
            "this binary was built without plugin components: pods that set seccomp, AppArmor, SELinux or other platform fields are refused",
            "build it by `cargo xtask build`",
        ));
    } else if findings.is_empty() {
        findings.push(Finding::fail(
            "plugins",
            "the shipped plugins did not load",
            "look at the log: springline serve --log-level debug",
        ));
    }
    if let Some(reason) = unpooled {
        findings.push(Finding::warn(
            "plugin memory",
            format!("not pooled, so every call of a plugin is slower: {reason}"),
            "let the daemon map much address space that it never uses (ulimit -v, vm.overcommit_memory)",
        ));
    }
    if !unread.is_empty() {
        let names: Vec<String> = unread.iter().map(|p| p.display().to_string()).collect();
        findings.push(Finding::warn(
            "manifests",
            format!("{} in {} are not read by this version", names.join(", "), folder.display()),
            "only the shipped plugins serve; remove the files, or wait for a version that reads them",
        ));
    }
    findings
}

fn plugin(status: &PluginStatus) -> Finding {
    let PluginStatus {
        id,
        version,
        digest,
        hooks,
        source,
        error,
        calls: _,    // doctor's own plugins have not been called
        failures: _, // likewise
        busy: _,     // likewise
    } = status;
    let digest: String = digest.chars().take(SHORT_DIGEST).collect();
    let name = format!("{id} {version}, {source}, sha256 {digest}");
    match error {
        None => Finding::ok("plugin", format!("{name}, hooks {}", hooks.join(" "))),
        Some(error) => Finding::fail(
            "plugin",
            format!("{name}: {error}"),
            "what it handles is refused until it loads: rebuild or replace its component",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::finding::Grade;
    use super::*;

    fn status(error: Option<&str>) -> PluginStatus {
        PluginStatus {
            id: "linux-security".into(),
            version: "0.1.0".into(),
            digest: "0123456789abcdef0123".into(),
            hooks: vec!["sandbox".into(), "container".into()],
            source: "shipped".into(),
            error: error.map(str::to_owned),
            calls: 0,
            failures: 0,
            busy: Duration::ZERO,
        }
    }

    #[test]
    fn plugins_and_manifests() {
        use Grade::{Fail, Ok, Warn};
        let one = [PathBuf::from("a.toml")];
        type Rows<'a> = &'a [(Grade, &'a str)];
        type Given<'a> = (Vec<PluginStatus>, bool, Option<&'a str>, &'a [PathBuf]);
        let cases: &[(&str, Given, Rows)] = &[
            (
                "in order",
                (vec![status(None)], true, None, &[]),
                &[(
                    Ok,
                    "linux-security 0.1.0, shipped, sha256 0123456789ab, hooks sandbox container",
                )],
            ),
            (
                "does not load",
                (vec![status(Some("no such import"))], true, None, &[]),
                &[(Fail, "no such import")],
            ),
            (
                "plain build",
                (vec![], false, None, &[]),
                &[(Fail, "without plugin components")],
            ),
            (
                "none loaded",
                (vec![], true, None, &[]),
                &[(Fail, "did not load")],
            ),
            (
                "no pool",
                (vec![status(None)], true, Some("cannot map 4 TiB"), &[]),
                &[(Ok, "linux-security"), (Warn, "cannot map 4 TiB")],
            ),
            (
                "unread manifests",
                (vec![status(None)], true, None, &one),
                &[
                    (Ok, "linux-security"),
                    (Warn, "a.toml in /etc/p.d are not read"),
                ],
            ),
        ];
        for (name, (plugins, built_in, unpooled, unread), rows) in cases {
            let folder = Path::new("/etc/p.d");
            let findings = findings(plugins, *built_in, *unpooled, folder, unread);
            assert_eq!(findings.len(), rows.len(), "{name}: {findings:?}");
            for (finding, (grade, says)) in findings.iter().zip(*rows) {
                assert_eq!(finding.grade, *grade, "{name}: {finding:?}");
                assert!(finding.detail.contains(says), "{name}: {finding:?}");
                assert_eq!(
                    finding.advice.is_some(),
                    *grade != Ok,
                    "{name}: {finding:?}"
                );
            }
        }
    }
}
