//! Runs every folder under `cases/<hook>/` through the plugin's logic, natively. A new case is a new folder (README.md says what goes into it).
//! The host here is a strict one: it grants what `plugin.toml` asks for and nothing else, so the two cannot drift apart.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use linux_security::{Fault, Imports, Refusal, configure_container, configure_sandbox};
use serde::Deserialize;
use serde_json::Value;

/// Where the granted root `seccomp` is on the node of the cases.
const SECCOMP_ROOT: &str = "/var/lib/kubelet/seccomp";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    id: String,
    contract: String,
    hooks: Vec<String>,
    #[allow(dead_code, reason = "for the host; held to be present")]
    imports: Vec<String>,
    grant: Grant,
    handles: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields)]
struct Grant {
    write: BTreeSet<String>,
    files: BTreeSet<String>,
}

/// `expected.json`: either what the draft holds afterwards, or the fault and what its text must say.
#[derive(Deserialize, Debug)]
#[serde(untagged, deny_unknown_fields)]
enum Expected {
    Draft {
        draft: BTreeMap<String, Value>,
        #[serde(default)]
        log: Vec<String>,
    },
    Fault {
        fault: String,
        says: Vec<String>,
    },
}

/// A host made of a case folder.
#[derive(Default)]
struct Node {
    request: Value,
    facts: BTreeMap<String, String>,
    files: PathBuf,
    grant: Grant,
    /// What others have set before.
    owned: BTreeMap<String, Value>,
    draft: BTreeMap<String, Value>,
    handled: BTreeSet<String>,
    log: Vec<String>,
}

impl Node {
    fn write(&mut self, pointer: &str, value: Value) -> Result<(), Refusal> {
        if !self.grant.write.contains(pointer) {
            return Err(Refusal::NotGranted(format!("{pointer} is not granted")));
        }
        if self
            .owned
            .get(pointer)
            .is_some_and(|theirs| *theirs != value)
        {
            return Err(Refusal::Conflict(format!(
                "{pointer} is set by other-plugin"
            )));
        }
        let before = self.draft.insert(pointer.to_owned(), value);
        assert_eq!(before, None, "{pointer} written twice");
        Ok(())
    }
}

impl Imports for Node {
    fn request(&self, pointer: &str) -> Option<String> {
        self.request.pointer(pointer).map(Value::to_string)
    }

    fn handled(&mut self, pointer: &str) {
        self.handled.insert(pointer.to_owned());
    }

    fn set_security_opt(&mut self, key: &str, value: &str) -> Result<(), Refusal> {
        self.write(
            &format!("/HostConfig/SecurityOpt/{key}"),
            Value::from(value),
        )
    }

    fn set(&mut self, pointer: &str, json: &str) -> Result<(), Refusal> {
        let value =
            serde_json::from_str(json).map_err(|error| Refusal::BadValue(error.to_string()))?;
        self.write(pointer, value)
    }

    fn read_file(&self, root: &str, path: &str, max: u32) -> Result<Vec<u8>, Refusal> {
        if !self.grant.files.contains(root) {
            return Err(Refusal::NotGranted(format!("no root {root}")));
        }
        let below = match path.strip_prefix(SECCOMP_ROOT) {
            Some(rest) => rest.trim_start_matches('/'),
            None if path.starts_with('/') => {
                return Err(Refusal::NotGranted("outside the root".to_owned()));
            }
            None => path,
        };
        let bytes = fs::read(self.files.join(root).join(below))
            .map_err(|error| Refusal::UnknownPointer(error.to_string()))?;
        if bytes.len() > max as usize {
            return Err(Refusal::Quota(format!("{} bytes", bytes.len())));
        }
        Ok(bytes)
    }

    fn fact(&self, name: &str) -> Option<String> {
        self.facts.get(name).cloned()
    }

    fn info(&mut self, code: &str, _message: &str, _fields: &[(&str, &str)]) {
        self.log.push(code.to_owned());
    }
}

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn manifest() -> Manifest {
    toml::from_str(&fs::read_to_string(crate_dir().join("plugin.toml")).unwrap()).unwrap()
}

fn json<T: for<'de> Deserialize<'de>>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

fn run(hook: &str, node: &mut Node) -> Result<(), Fault> {
    match hook {
        "container" => configure_container(node),
        "sandbox" => configure_sandbox(node),
        other => panic!("no hook {other}"),
    }
}

fn kind(fault: &Fault) -> &'static str {
    match fault {
        Fault::Settings(_) => "settings",
        Fault::Unsupported(_) => "unsupported",
        Fault::RetryLater(_) => "retry-later",
        Fault::Fatal(_) => "fatal",
    }
}

/// What is wrong with one case; none when nothing is.
fn differs(hook: &str, dir: &Path, manifest: &Manifest) -> Option<String> {
    let facts = dir.join("node.json");
    let mut node = Node {
        request: json(&dir.join("request.json")),
        facts: if facts.exists() {
            json(&facts)
        } else {
            BTreeMap::new()
        },
        files: dir.join("files"),
        grant: manifest.grant.clone(),
        ..Node::default()
    };
    let result = run(hook, &mut node);
    match (result, json::<Expected>(&dir.join("expected.json"))) {
        (Ok(()), Expected::Draft { draft, log }) => {
            if node.draft != draft {
                return Some(format!("draft is\n{:#?}\nexpected\n{draft:#?}", node.draft));
            }
            if node.log != log {
                return Some(format!("log is {:?}, expected {log:?}", node.log));
            }
            (node.handled != manifest.handles[hook])
                .then(|| format!("handled is {:?}", node.handled))
        }
        (
            Err(fault),
            Expected::Fault {
                fault: wanted,
                says,
            },
        ) => {
            if kind(&fault) != wanted || says.iter().any(|part| !fault.to_string().contains(part)) {
                return Some(format!(
                    "fault is {fault:?}, expected {wanted} with {says:?}"
                ));
            }
            (!node.handled.is_empty()).then(|| "marked fields although it failed".to_owned())
        }
        (result, expected) => Some(format!("ended with {result:?}, expected {expected:?}")),
    }
}

#[test]
fn every_case_folder() {
    let manifest = manifest();
    let mut count = 0;
    let mut wrong = Vec::new();
    for hook in folders(&crate_dir().join("cases")) {
        let name = hook.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(manifest.hooks.contains(&name), "cases/{name} is no hook");
        for case in folders(&hook) {
            count += 1;
            if let Some(why) = differs(&name, &case, &manifest) {
                wrong.push(format!("{}: {why}", case.display()));
            }
        }
    }
    assert!(count >= 30, "only {count} cases found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_manifest_names_this_crate_and_its_contract() {
    let manifest = manifest();
    assert_eq!(manifest.id, env!("CARGO_PKG_NAME"));
    let wit = crate_dir().join("../../wit").join(&manifest.contract);
    assert!(wit.join("world.wit").exists(), "{}", wit.display());
}

/// A privileged container, which writes the most.
fn privileged(grant: Grant) -> Node {
    Node {
        request: serde_json::json!({"config": {"linux": {"security_context": {"privileged": true}}}}),
        grant,
        ..Node::default()
    }
}

#[test]
fn a_write_that_is_not_granted_is_the_operators_to_mend() {
    for missing in [
        "SecurityOpt/seccomp",
        "SecurityOpt/label:disable",
        "MaskedPaths",
    ] {
        let mut grant = manifest().grant;
        let pointer = format!("/HostConfig/{missing}");
        assert!(grant.write.remove(&pointer));
        let fault = configure_container(&mut privileged(grant)).unwrap_err();
        assert_eq!(kind(&fault), "settings", "{missing}: {fault}");
        assert!(fault.to_string().contains(&pointer), "{missing}: {fault}");
    }
}

#[test]
fn what_another_plugin_has_set_is_a_fault_that_names_both() {
    let mut node = privileged(manifest().grant);
    node.owned.insert(
        "/HostConfig/SecurityOpt/apparmor".to_owned(),
        Value::from("theirs"),
    );
    let fault = configure_container(&mut node).unwrap_err();
    assert_eq!(kind(&fault), "fatal");
    for part in ["linux.security_context.privileged", "other-plugin"] {
        assert!(fault.to_string().contains(part), "{fault}");
    }
}

#[test]
fn a_profile_beyond_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let limit = linux_security::seccomp::MAX_BYTES as usize;
    let least = r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#;
    let dir = std::env::temp_dir().join(format!("linux-security-{}", std::process::id()));
    fs::create_dir_all(dir.join("seccomp")).unwrap();
    let mut results = Vec::new();
    for size in [limit, limit + 1] {
        let text = format!("{least}{}", " ".repeat(size - least.len()));
        fs::write(dir.join("seccomp/p.json"), &text).unwrap();
        let mut node = Node {
            request: serde_json::json!({"config": {"linux": {"security_context":
                {"seccomp": {"profile_type": "Localhost", "localhost_ref": "p.json"}}}}}),
            files: dir.clone(),
            grant: manifest().grant,
            ..Node::default()
        };
        results.push(configure_container(&mut node).map_err(|fault| fault.to_string()));
    }
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(results[0], Ok(()));
    let fault = results[1].clone().unwrap_err();
    assert!(
        fault.contains("localhost_ref") && fault.contains("too large"),
        "{fault}"
    );
}
