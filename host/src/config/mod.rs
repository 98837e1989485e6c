//! Configuration: what one TOML file and the command line's flags make of the defaults.
//!
//! Owns the settings: their names, forms, defaults and checks ([`Config`], `settings.rs`), how they are read from a file
//! (`file.rs`) and what is said when one is wrong (`error.rs`). A flag wins over the file, the file over the default. It must
//! not know clap (flags arrive as [`Given`] values) nor what a setting is used for, and it looks at no file but the config
//! file itself. Fails with all that is wrong at once, each problem naming the setting and where it was given; a setting that
//! is not known is a failure, since a misspelt one would otherwise be obeyed by nobody.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::telemetry::{LogFilter, LogFormat};

mod endpoint;
mod error;
mod file;
mod settings;

pub use endpoint::{Endpoint, EndpointError, SocketPath};
pub(crate) use error::nearest;
pub use error::{ConfigError, Problem};
pub use settings::{Given, Origin, SETTINGS, Setting, Value};

/// The config file that is read when none is named; it need not exist.
pub const DEFAULT_FILE: &str = "/etc/springline/config.toml";

/// The settings in force. Every field is documented for operators in `docs/config.md`, under its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where we serve the CRI (`container-runtime-endpoint`).
    pub container_runtime_endpoint: Endpoint,
    /// The engine's socket (`docker-endpoint`).
    pub docker_endpoint: SocketPath,
    /// Where our records and the files of sandboxes are kept (`root-dir`); absolute.
    pub root_dir: PathBuf,
    /// Where the node's plugin manifests are (`plugins-dir`); absolute.
    pub plugins_dir: PathBuf,
    /// Folders from which Localhost seccomp profiles may be read (`seccomp-root`); absolute, never `/`, at least one.
    pub seccomp_roots: Vec<PathBuf>,
    /// Who connects pods (`network-plugin`).
    pub network_plugin: NetworkPlugin,
    /// Image of the sandbox container (`pod-infra-container-image`); `None` = the one that is built in.
    pub pod_infra_container_image: Option<String>,
    /// Where the streaming server listens (`streaming-bind-addr`); port 0 = any free one.
    pub streaming_bind_addr: SocketAddr,
    /// Whether the streaming server speaks TLS (`streaming-tls`).
    pub streaming_tls: bool,
    /// Its certificate (`streaming-tls-cert`); absolute. `None` = one is made at the start.
    pub streaming_tls_cert: Option<PathBuf>,
    /// That certificate's private key (`streaming-tls-key`); absolute.
    pub streaming_tls_key: Option<PathBuf>,
    /// Which log lines are written (`log-level`).
    pub log_level: LogFilter,
    /// In which form they are (`log-format`).
    pub log_format: LogFormat,
}

/// Who connects pods to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkPlugin {
    /// Docker's own bridge, with published ports.
    Docker,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            container_runtime_endpoint: Endpoint::Unix(SocketPath::fixed(
                "/var/run/springline.sock",
            )),
            docker_endpoint: SocketPath::fixed("/var/run/docker.sock"),
            root_dir: PathBuf::from("/var/lib/springline"),
            plugins_dir: PathBuf::from("/etc/springline/plugins.d"),
            seccomp_roots: vec![PathBuf::from("/var/lib/kubelet/seccomp")],
            network_plugin: NetworkPlugin::Docker,
            pod_infra_container_image: None,
            streaming_bind_addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            streaming_tls: false,
            streaming_tls_cert: None,
            streaming_tls_key: None,
            log_level: LogFilter::default(),
            log_format: LogFormat::default(),
        }
    }
}

impl Config {
    /// Reads the config file (`named`, or [`DEFAULT_FILE`] when it exists) and puts `flags` over it.
    ///
    /// # Errors
    /// When a named file is missing, a file cannot be read or is no TOML, or any setting is unknown or wrong.
    pub fn load(named: Option<&Path>, flags: Vec<Given>) -> Result<Self, ConfigError> {
        Self::load_with_default(Path::new(DEFAULT_FILE), named, flags)
    }

    fn load_with_default(
        default: &Path,
        named: Option<&Path>,
        flags: Vec<Given>,
    ) -> Result<Self, ConfigError> {
        let (mut given, mut problems) = match file::read(named.unwrap_or(default))? {
            Some(text) => file::settings(named.unwrap_or(default), &text)?,
            None if named.is_none() => Default::default(),
            None => {
                return Err(ConfigError::Missing {
                    path: named.unwrap_or(default).to_path_buf(),
                });
            }
        };
        given.extend(flags);

        let mut config = Self::default();
        for one in given {
            if let Err(problem) = one.apply(&mut config) {
                problems.push(problem);
            }
        }
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Wrong(problems))
        }
    }

    /// The same settings as the text of a config file.
    pub fn to_toml(&self) -> String {
        SETTINGS
            .iter()
            .map(|setting| {
                let value = match setting.value(self) {
                    Value::Text(text) => toml::Value::from(text),
                    Value::List(list) => toml::Value::from(list),
                };
                format!("{} = {value}\n", setting.key)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
