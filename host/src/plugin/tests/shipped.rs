//! The shipped plugin: its manifest here against what it says it needs, and its own cases through the real component.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{call, pointer};
use crate::draft::Draft;
use crate::plugin::{Manifest, PluginHost, PluginHostSettings};
use crate::runtime::ports::{Hook, PluginCall, PluginError, Plugins};

/// Where the cases have their seccomp root.
const CASE_ROOT: &str = "/var/lib/kubelet/seccomp";

fn plugin_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/linux-security")
}

fn asked() -> toml::Table {
    let text = std::fs::read_to_string(plugin_dir().join("plugin.toml")).unwrap();
    text.parse().unwrap()
}

fn texts(value: &toml::Value) -> BTreeSet<String> {
    let list = value.as_array().unwrap();
    list.iter()
        .map(|v| v.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_manifest_grants_what_the_plugin_asks_for_and_no_more() {
    let asked = asked();
    let manifest = Manifest::shipped("linux-security", &["/s".into()]).unwrap();
    let grant = &asked["grant"];
    let write: BTreeSet<String> = manifest
        .grant
        .write
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(write, texts(&grant["write"]));
    assert!(manifest.grant.take_over.is_empty());
    let roots: BTreeSet<String> = manifest.files.keys().cloned().collect();
    assert_eq!(roots, texts(&grant["files"]));
    for import in texts(&asked["imports"]) {
        assert!(manifest.may_import(&import), "{import}");
    }
}

#[test]
fn a_plain_build_says_that_it_has_no_plugins() {
    assert_eq!(PluginHost::has_shipped(), cfg!(springline_components));
}

/// A case's text with the real root in the place of the assumed one.
fn text(path: &Path, root: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    text.replace(CASE_ROOT, &root.display().to_string())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A call as the case words it; `None` when the case is about a node that cannot tell what ours always can.
fn case_call(hook: Hook, case: &Path, root: &Path) -> Option<PluginCall> {
    let facts: BTreeMap<String, String> =
        serde_json::from_str(&std::fs::read_to_string(case.join("node.json")).ok()?).unwrap();
    let yes = |name: &str| facts.get(name).is_some_and(|value| value == "true");
    let request = serde_json::from_str(&text(&case.join("request.json"), root)).unwrap();
    let mut call = call(request);
    call.hook = hook;
    call.draft = Draft::default();
    let engine = std::sync::Arc::make_mut(&mut call.engine);
    engine.seccomp = yes("engine.seccomp");
    engine.apparmor = yes("engine.apparmor");
    engine.selinux = yes("engine.selinux");
    Some(call)
}

fn kind(error: &PluginError) -> &'static str {
    match error {
        PluginError::Settings { .. } => "settings",
        PluginError::Unsupported { .. } => "unsupported",
        PluginError::RetryLater { .. } => "retry-later",
        PluginError::Fatal { .. } => "fatal",
        PluginError::Broken { .. } => "broken",
        PluginError::Unhandled { .. } | PluginError::Denied { .. } => "not of a plugin",
    }
}

/// Every case of the plugin's own, through wasm and the real host functions.
#[tokio::test]
#[cfg_attr(
    not(springline_components),
    ignore = "this build has no components inside: set SPRINGLINE_COMPONENTS_DIR at build time"
)]
async fn its_own_cases_hold_through_the_real_component() {
    // One host for all: its root is laid anew for every case.
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("seccomp");
    let host = PluginHost::new(PluginHostSettings {
        seccomp_roots: vec![root.clone()],
    });
    let mut ran = 0;
    for hook in [Hook::Container, Hook::Sandbox] {
        let handles: BTreeSet<_> = texts(&asked()["handles"][hook.as_str()])
            .iter()
            .map(|text| pointer(text))
            .collect();
        let cases = plugin_dir().join("cases").join(hook.as_str());
        for case in std::fs::read_dir(cases).unwrap().map(|e| e.unwrap().path()) {
            let _ = std::fs::remove_dir_all(&root);
            std::fs::create_dir(&root).unwrap();
            let files = case.join("files/seccomp");
            if files.exists() {
                copy(&files, &root);
            }
            let Some(call) = case_call(hook, &case, &root) else {
                continue;
            };
            let expected: Value =
                serde_json::from_str(&text(&case.join("expected.json"), &root)).unwrap();
            let case = case.display();
            match host.configure(call).await {
                Ok(configured) => {
                    let draft: BTreeMap<String, Value> = configured
                        .draft
                        .owners()
                        .map(|(at, _)| (at.to_string(), configured.draft.get(at).cloned().into()))
                        .collect();
                    assert_eq!(
                        serde_json::to_value(draft).unwrap(),
                        expected["draft"],
                        "{case}"
                    );
                    assert_eq!(configured.handled, handles, "{case}");
                    assert_eq!(configured.chain_digest.len(), 64, "{case}");
                }
                Err(error) => {
                    assert_eq!(kind(&error), expected["fault"], "{case}: {error}");
                    for part in expected["says"].as_array().unwrap() {
                        let part = part.as_str().unwrap();
                        assert!(error.to_string().contains(part), "{case}: {error}");
                    }
                }
            }
            ran += 1;
        }
    }
    assert!(ran > 50, "{ran} cases");
}
