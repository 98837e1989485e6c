//! The table of settings: name, how a value is checked and taken over, how it is shown.
//!
//! Owns that one table; the file's keys, the flags and the page for operators are held against it by tests. A check looks at
//! the value alone, never at the machine: whether a folder exists is for those who use it, and for `springline doctor`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};

use super::error::{Problem, nearest};
use super::{Config, Endpoint, NetworkPlugin, SocketPath};
use crate::telemetry::{LogFilter, LogFormat};

/// A setting's value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// One text.
    Text(String),
    /// Several.
    List(Vec<String>),
}

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In a config file.
    File {
        /// Which one.
        path: PathBuf,
        /// Where in it, from 1.
        line: usize,
    },
    /// On the command line, by the flag named after the key.
    Flag,
}

/// A setting that was given somewhere.
#[derive(Debug, Clone)]
pub struct Given {
    pub(super) setting: &'static Setting,
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file and, with two dashes, its flag.
    pub key: &'static str,
    take: Take,
    show: fn(&Config) -> Value,
}

#[derive(Debug)]
enum Take {
    Text(fn(&mut Config, &str) -> Result<(), String>),
    List(fn(&mut Config, &[String]) -> Result<(), String>),
}

impl Given {
    /// A setting given by its flag. `None` when it has no values, or several where it takes one.
    pub fn flag(setting: &'static Setting, mut values: Vec<String>) -> Option<Self> {
        let value = if values.is_empty() {
            return None;
        } else if setting.is_list() {
            Value::List(values)
        } else {
            let one = values.pop()?;
            if !values.is_empty() {
                return None;
            }
            Value::Text(one)
        };
        Some(Self {
            setting,
            value,
            origin: Origin::Flag,
        })
    }

    /// Checks the value and takes it over.
    pub(super) fn apply(self, config: &mut Config) -> Result<(), Problem> {
        let taken = match (&self.setting.take, &self.value) {
            (Take::Text(take), Value::Text(text)) => take(config, text),
            (Take::List(take), Value::List(list)) => take(config, list),
            (Take::Text(_), Value::List(_)) => Err("takes one value, several were given".into()),
            (Take::List(take), Value::Text(text)) => take(config, std::slice::from_ref(text)),
        };
        taken.map_err(|reason| Problem::Value {
            key: self.setting.key,
            origin: self.origin,
            reason,
        })
    }
}

impl Setting {
    /// The setting of this name.
    pub fn find(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// Whether it takes several values.
    pub fn is_list(&self) -> bool {
        matches!(self.take, Take::List(_))
    }

    /// Its value in `config`.
    pub fn value(&self, config: &Config) -> Value {
        (self.show)(config)
    }
}

/// Every setting, in the order in which they are shown.
pub static SETTINGS: &[Setting] = &[
    Setting {
        key: "container-runtime-endpoint",
        take: Take::Text(|config, text| {
            config.container_runtime_endpoint = Endpoint::parse(text).map_err(|e| e.to_string())?;
            Ok(())
        }),
        show: |config| Value::Text(config.container_runtime_endpoint.to_string()),
    },
    Setting {
        key: "docker-endpoint",
        take: Take::Text(|config, text| {
            config.docker_endpoint = SocketPath::parse(text).map_err(|e| e.to_string())?;
            Ok(())
        }),
        show: |config| Value::Text(config.docker_endpoint.to_string()),
    },
    Setting {
        key: "root-dir",
        take: Take::Text(|config, text| {
            config.root_dir = folder(text)?;
            Ok(())
        }),
        show: |config| Value::Text(config.root_dir.display().to_string()),
    },
    Setting {
        key: "plugins-dir",
        take: Take::Text(|config, text| {
            config.plugins_dir = folder(text)?;
            Ok(())
        }),
        show: |config| Value::Text(config.plugins_dir.display().to_string()),
    },
    Setting {
        key: "seccomp-root",
        take: Take::List(|config, list| {
            config.seccomp_roots = seccomp_roots(list)?;
            Ok(())
        }),
        show: |config| {
            let roots = config.seccomp_roots.iter();
            Value::List(roots.map(|root| root.display().to_string()).collect())
        },
    },
    Setting {
        key: "network-plugin",
        take: Take::Text(|config, text| {
            config.network_plugin = network_plugin(text)?;
            Ok(())
        }),
        show: |config| {
            Value::Text(match config.network_plugin {
                NetworkPlugin::Docker => String::new(),
            })
        },
    },
    Setting {
        key: "pod-infra-container-image",
        take: Take::Text(|config, text| {
            if text.contains(char::is_whitespace) {
                return Err(format!("`{text}` holds white space, no image's name does"));
            }
            config.pod_infra_container_image = (!text.is_empty()).then(|| text.to_owned());
            Ok(())
        }),
        show: |config| Value::Text(config.pod_infra_container_image.clone().unwrap_or_default()),
    },
    Setting {
        key: "streaming-bind-addr",
        take: Take::Text(|config, text| {
            config.streaming_bind_addr = socket_addr(text)?;
            Ok(())
        }),
        show: |config| Value::Text(config.streaming_bind_addr.to_string()),
    },
    Setting {
        key: "streaming-tls",
        take: Take::Text(|config, text| {
            config.streaming_tls = match text {
                "on" => true,
                "off" => false,
                other => return Err(format!("`{other}` is neither on nor off")),
            };
            Ok(())
        }),
        show: |config| Value::Text(if config.streaming_tls { "on" } else { "off" }.to_owned()),
    },
    Setting {
        key: "streaming-tls-cert",
        take: Take::Text(|config, text| {
            config.streaming_tls_cert = file(text)?;
            Ok(())
        }),
        show: |config| shown(config.streaming_tls_cert.as_deref()),
    },
    Setting {
        key: "streaming-tls-key",
        take: Take::Text(|config, text| {
            config.streaming_tls_key = file(text)?;
            Ok(())
        }),
        show: |config| shown(config.streaming_tls_key.as_deref()),
    },
    Setting {
        key: "log-level",
        take: Take::Text(|config, text| {
            config.log_level = LogFilter::parse(text).map_err(|e| e.to_string())?;
            Ok(())
        }),
        show: |config| Value::Text(config.log_level.as_str().to_owned()),
    },
    Setting {
        key: "log-format",
        take: Take::Text(|config, text| {
            config.log_format = LogFormat::parse(text)
                .ok_or_else(|| format!("`{text}` is not one of {}", LogFormat::NAMES.join(", ")))?;
            Ok(())
        }),
        show: |config| Value::Text(config.log_format.as_str().to_owned()),
    },
];

/// The absolute path of a file; empty is none.
fn file(text: &str) -> Result<Option<PathBuf>, String> {
    let path = Path::new(text);
    if !text.is_empty() && !path.is_absolute() {
        return Err(format!("`{text}` must be an absolute path"));
    }
    Ok((!text.is_empty()).then(|| path.to_path_buf()))
}

fn shown(path: Option<&Path>) -> Value {
    Value::Text(
        path.map(|path| path.display().to_string())
            .unwrap_or_default(),
    )
}

fn folder(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if text.is_empty() {
        return Err("is empty, the absolute path of a folder is due".to_owned());
    }
    if !path.is_absolute() {
        return Err(format!("`{text}` must be an absolute path"));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(format!("`{text}` must not hold `..`"));
    }
    Ok(path.to_path_buf())
}

/// A root is what plugins may read below, so the file system's own root would void the boundary.
fn seccomp_roots(list: &[String]) -> Result<Vec<PathBuf>, String> {
    let mut roots = Vec::new();
    for text in list {
        let root = folder(text)?;
        if root == Path::new("/") {
            return Err("`/` would let plugins read every file of the node".to_owned());
        }
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    if roots.is_empty() {
        return Err("needs at least one folder".to_owned());
    }
    Ok(roots)
}

fn network_plugin(text: &str) -> Result<NetworkPlugin, String> {
    match text {
        "" | "docker" | "no-op" => Ok(NetworkPlugin::Docker),
        "cni" => Err(
            "`cni` is not supported yet: leave it empty, and pods are on Docker's bridge"
                .to_owned(),
        ),
        "kubenet" => Err(
            "`kubenet` was removed from Kubernetes: leave it empty, and pods are on Docker's bridge"
                .to_owned(),
        ),
        other => {
            let meant = nearest(other, ["docker", "no-op"])
                .map(|word| format!(": did you mean `{word}`?"))
                .unwrap_or_default();
            Err(format!(
                "`{other}` is not a known way to connect pods{meant}"
            ))
        }
    }
}

fn socket_addr(text: &str) -> Result<SocketAddr, String> {
    let port_of_loopback = text
        .strip_prefix("localhost:")
        .and_then(|port| port.parse::<u16>().ok());
    if let Some(port) = port_of_loopback {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse().map_err(|_| {
        format!(
            "`{text}` is no address with a port, such as 127.0.0.1:0 (any free port) or [::1]:10010"
        )
    })
}
