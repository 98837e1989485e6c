//! What a node says about one plugin: who it is, when it runs, what it may do and how much of it.
//!
//! The shipped plugins' manifests are written here; those of a node's folder will fill the same type. Holds no component and
//! knows no WebAssembly. A manifest that contradicts itself is refused as a whole by [`Manifest::check`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::engine::MAX_MEMORY;
use crate::draft::{Grant, Pointer};

/// Imports that every plugin may use; the others need [`Manifest::imports`].
const BASE_IMPORTS: [&str; 5] = ["types", "request", "draft", "node", "log"];

/// A plugin on this node.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its ID: owner of what it writes, name in every message.
    pub id: String,
    /// Its own version, for status only.
    pub version: String,
    /// Its place in the chain, 0 to 999; equal ones go by ID.
    pub order: u16,
    /// What it may write and take over.
    pub grant: Grant,
    /// Interfaces it may import beyond those that everybody may.
    pub imports: BTreeSet<String>,
    /// Folders that `files.read` reaches, by the name of their root.
    pub files: BTreeMap<String, Vec<PathBuf>>,
    /// What one call of it may use.
    pub limits: Limits,
    /// What `request.setting` gives; null = nothing.
    pub settings: Value,
}

/// What one call may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time on the wall, host calls included.
    pub deadline: Duration,
    /// Time in which the guest itself computes.
    pub cpu: Duration,
    /// Bytes of all its memories.
    pub memory: usize,
    /// Calls of host functions.
    pub host_calls: u32,
    /// Lines that it may log.
    pub log_lines: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(250),
            cpu: Duration::from_millis(100),
            memory: 32 * 1024 * 1024,
            host_calls: 2000,
            log_lines: 50,
        }
    }
}

/// Why a manifest is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The ID is no ID.
    #[error(
        "plugin id {0:?}: use 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit, and not \"core\""
    )]
    Id(String),
    /// The place in the chain is none.
    #[error("order {0}: must be 0 to 999")]
    Order(u16),
    /// A limit is out of its range.
    #[error("limit {0}")]
    Limit(String),
    /// A file root is unusable.
    #[error("files root {0:?}: {1}")]
    FileRoot(String, String),
}

impl Manifest {
    /// A manifest that grants nothing.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            version: String::new(),
            order: 500,
            grant: Grant::default(),
            imports: BTreeSet::new(),
            files: BTreeMap::new(),
            limits: Limits::default(),
            settings: Value::Null,
        }
    }

    /// The manifest of the shipped plugin with this ID.
    pub fn shipped(id: &str, seccomp_roots: &[PathBuf]) -> Option<Self> {
        (id == "linux-security").then(|| linux_security(seccomp_roots))
    }

    /// Whether a component under this manifest may import the interface.
    pub fn may_import(&self, interface: &str) -> bool {
        BASE_IMPORTS.contains(&interface) || self.imports.contains(interface)
    }

    /// Whether it can be acted on.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ManifestError> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = self.id.as_bytes();
        let good = (1..=63).contains(&bytes.len())
            && bytes.iter().all(|&b| plain(b) || b == b'-')
            && bytes.first().is_some_and(|&b| plain(b))
            && bytes.last().is_some_and(|&b| plain(b))
            && self.id != "core";
        if !good {
            return Err(ManifestError::Id(self.id.clone()));
        }
        if self.order > 999 {
            return Err(ManifestError::Order(self.order));
        }
        self.limits.check()?;
        for (root, folders) in &self.files {
            let wrong = folders.iter().find(|folder| !folder.is_absolute());
            if let Some(folder) = wrong {
                let reason = format!("{} is not an absolute path", folder.display());
                return Err(ManifestError::FileRoot(root.clone(), reason));
            }
        }
        Ok(())
    }
}

impl Limits {
    fn check(&self) -> Result<(), ManifestError> {
        let minute = Duration::from_secs(60);
        let wrong = if self.deadline.is_zero() || self.deadline > minute {
            "deadline: must be above 0 and at most a minute".to_owned()
        } else if self.cpu.is_zero() || self.cpu > minute {
            "cpu: must be above 0 and at most a minute".to_owned()
        } else if self.memory == 0 || self.memory > MAX_MEMORY {
            format!("memory: must be above 0 and at most {MAX_MEMORY} bytes")
        } else {
            return Ok(());
        };
        Err(ManifestError::Limit(wrong))
    }
}

/// Seccomp, AppArmor, SELinux, no-new-privileges, masked and read-only paths: the very fields and nothing else.
fn linux_security(seccomp_roots: &[PathBuf]) -> Manifest {
    let host_config = Pointer::of(["HostConfig"]);
    let security_opt = host_config.join("SecurityOpt");
    let options = [
        "seccomp",
        "apparmor",
        "no-new-privileges",
        "label:user",
        "label:role",
        "label:type",
        "label:level",
        "label:disable",
    ];
    let paths = ["MaskedPaths", "ReadonlyPaths"];
    let write = options
        .iter()
        .map(|key| security_opt.join(key))
        .chain(paths.iter().map(|name| host_config.join(name)))
        .collect();
    Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        order: 100,
        grant: Grant {
            write,
            take_over: Vec::new(),
        },
        imports: BTreeSet::from(["files".to_owned()]),
        files: BTreeMap::from([("seccomp".to_owned(), seccomp_roots.to_vec())]),
        limits: Limits {
            // A boot storm on a slow disk is no reason to refuse the node's pods.
            deadline: Duration::from_secs(2),
            cpu: Duration::from_millis(500),
            ..Limits::default()
        },
        ..Manifest::new("linux-security")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_manifest_stands_and_grants_single_options_only() {
        let manifest = Manifest::shipped("linux-security", &["/seccomp".into()]).unwrap();
        assert_eq!(manifest.check(), Ok(()));
        let security_opt: Pointer = "/HostConfig/SecurityOpt".parse().unwrap();
        assert!(!manifest.grant.write.contains(&security_opt));
        assert!(
            manifest
                .grant
                .write
                .contains(&security_opt.join("label:type"))
        );
        assert!(manifest.may_import("files") && !manifest.may_import("credentials"));
        assert_eq!(Manifest::shipped("other", &[]), None);
    }

    #[test]
    fn contradictions_are_refused() {
        let good = Manifest::new("a-1");
        assert_eq!(good.check(), Ok(()));
        for (name, manifest) in [
            ("empty id", Manifest::new("")),
            ("the host's own name", Manifest::new("core")),
            ("capitals", Manifest::new("Abc")),
            ("a dash at the end", Manifest::new("a-")),
            ("a long id", Manifest::new("a".repeat(64))),
            (
                "order",
                Manifest {
                    order: 1000,
                    ..good.clone()
                },
            ),
            (
                "memory above a pool slot",
                Manifest {
                    limits: Limits {
                        memory: MAX_MEMORY + 1,
                        ..Limits::default()
                    },
                    ..good.clone()
                },
            ),
            (
                "no time at all",
                Manifest {
                    limits: Limits {
                        deadline: Duration::ZERO,
                        ..Limits::default()
                    },
                    ..good.clone()
                },
            ),
            (
                "relative folder",
                Manifest {
                    files: BTreeMap::from([("r".into(), vec!["a/b".into()])]),
                    ..good.clone()
                },
            ),
        ] {
            assert!(manifest.check().is_err(), "{name}");
        }
    }
}
