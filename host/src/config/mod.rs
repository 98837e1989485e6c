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
mod tests {
    use super::*;

    struct Case {
        name: &'static str,
        file: &'static str,
        flags: &'static [(&'static str, &'static [&'static str])],
        /// `Ok`: lines that the effective configuration holds. `Err`: texts that the error holds.
        expect: Result<&'static [&'static str], &'static [&'static str]>,
    }

    fn flags(list: &[(&str, &[&str])]) -> Vec<Given> {
        list.iter()
            .map(|(key, values)| {
                let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
                let setting = Setting::find(key).expect("a known key");
                Given::flag(setting, values).expect("as many values as the setting takes")
            })
            .collect()
    }

    const CASES: &[Case] = &[
        Case {
            name: "nothing given: the defaults",
            file: "",
            flags: &[],
            expect: Ok(&[
                "container-runtime-endpoint = \"unix:///var/run/springline.sock\"",
                "docker-endpoint = \"unix:///var/run/docker.sock\"",
                "root-dir = \"/var/lib/springline\"",
                "plugins-dir = \"/etc/springline/plugins.d\"",
                "seccomp-root = [\"/var/lib/kubelet/seccomp\"]",
                "network-plugin = \"\"",
                "pod-infra-container-image = \"\"",
                "streaming-bind-addr = \"127.0.0.1:0\"",
                "log-level = \"info\"",
                "log-format = \"text\"",
            ]),
        },
        Case {
            name: "the file is obeyed",
            file: "root-dir = '/srv/s'\nseccomp-root = ['/a', '/b']\n",
            flags: &[],
            expect: Ok(&["root-dir = \"/srv/s\"", "seccomp-root = [\"/a\", \"/b\"]"]),
        },
        Case {
            name: "a flag wins over the file, a list as a whole",
            file: "root-dir = '/srv/s'\nlog-level = 'debug'\nseccomp-root = ['/a', '/b']\n",
            flags: &[("root-dir", &["/other"]), ("seccomp-root", &["/c"])],
            expect: Ok(&[
                "root-dir = \"/other\"",
                "log-level = \"debug\"",
                "seccomp-root = [\"/c\"]",
            ]),
        },
        Case {
            name: "a list of one may be written as a string",
            file: "seccomp-root = '/a'\n",
            flags: &[],
            expect: Ok(&["seccomp-root = [\"/a\"]"]),
        },
        Case {
            name: "socket activation, plain paths",
            file: "container-runtime-endpoint = 'fd://'\ndocker-endpoint = '/run/d.sock'\n",
            flags: &[],
            expect: Ok(&[
                "container-runtime-endpoint = \"fd://\"",
                "docker-endpoint = \"unix:///run/d.sock\"",
            ]),
        },
        Case {
            name: "words for Docker's bridge",
            file: "network-plugin = 'no-op'\n",
            flags: &[],
            expect: Ok(&["network-plugin = \"\""]),
        },
        Case {
            name: "the streaming address by the name of the loopback",
            file: "streaming-bind-addr = 'localhost:10010'\n",
            flags: &[],
            expect: Ok(&["streaming-bind-addr = \"127.0.0.1:10010\""]),
        },
        Case {
            name: "an image of one's own for the sandbox",
            file: "pod-infra-container-image = 'registry.k8s.io/pause:3.10'\n",
            flags: &[],
            expect: Ok(&["pod-infra-container-image = \"registry.k8s.io/pause:3.10\""]),
        },
        Case {
            name: "a misspelt key, with its line and the right one",
            file: "# mine\n\ndokcer-endpoint = '/run/d.sock'\n",
            flags: &[],
            expect: Err(&[
                "unknown key `dokcer-endpoint` in ",
                "config.toml line 3: did you mean `docker-endpoint`?",
            ]),
        },
        Case {
            name: "underscores",
            file: "log_level = 'info'\n",
            flags: &[],
            expect: Err(&[
                "unknown key `log_level`",
                "line 1: did you mean `log-level`?",
            ]),
        },
        Case {
            name: "a key like no other",
            file: "colour = 'green'\n",
            flags: &[],
            expect: Err(&[
                "unknown key `colour`",
                "known are container-runtime-endpoint, ",
            ]),
        },
        Case {
            name: "a section",
            file: "[engine]\nendpoint = '/x'\n",
            flags: &[],
            expect: Err(&["unknown key `engine`", "line 1"]),
        },
        Case {
            name: "a wrong type",
            file: "root-dir = 7\n",
            flags: &[],
            expect: Err(&[
                "`root-dir` in ",
                "line 1: is an integer, a string in quotes is due",
            ]),
        },
        Case {
            name: "a list where one is due",
            file: "root-dir = ['/a']\n",
            flags: &[],
            expect: Err(&["`root-dir`", "is an array, a string in quotes is due"]),
        },
        Case {
            name: "a wrong type within a list",
            file: "seccomp-root = ['/a', 1]\n",
            flags: &[],
            expect: Err(&["`seccomp-root`", "an entry is an integer"]),
        },
        Case {
            name: "an empty list",
            file: "seccomp-root = []\n",
            flags: &[],
            expect: Err(&["`seccomp-root`", "at least one folder"]),
        },
        Case {
            name: "the whole file system as a root",
            file: "seccomp-root = '/'\n",
            flags: &[],
            expect: Err(&["`seccomp-root`", "every file of the node"]),
        },
        Case {
            name: "a path with ..",
            file: "root-dir = '/var/../etc'\n",
            flags: &[],
            expect: Err(&["`root-dir`", "must not hold `..`"]),
        },
        Case {
            name: "all that is wrong is told at once, flags by their flag",
            file: "root-dir = 'here'\nlog-format = 'xml'\n",
            flags: &[("docker-endpoint", &["tcp://10.0.0.1:2375"])],
            expect: Err(&[
                "`root-dir` in ",
                "line 1: `here` must be an absolute path",
                "`log-format` in ",
                "line 2: `xml` is not one of text, json",
                "`--docker-endpoint`: ",
                "tcp://",
            ]),
        },
        Case {
            name: "our endpoint over the network",
            file: "container-runtime-endpoint = 'tcp://127.0.0.1:1'\n",
            flags: &[],
            expect: Err(&[
                "`container-runtime-endpoint`",
                "tcp:// is not supported",
                "unix:///",
                "fd://",
            ]),
        },
        Case {
            name: "socket activation is no way to the engine",
            file: "docker-endpoint = 'fd://'\n",
            flags: &[],
            expect: Err(&["`docker-endpoint`", "fd:// is not supported"]),
        },
        Case {
            name: "cni is later",
            file: "",
            flags: &[("network-plugin", &["cni"])],
            expect: Err(&["`--network-plugin`: `cni` is not supported yet"]),
        },
        Case {
            name: "kubenet is gone",
            file: "",
            flags: &[("network-plugin", &["kubenet"])],
            expect: Err(&["`--network-plugin`: `kubenet`", "removed"]),
        },
        Case {
            name: "a network nobody knows",
            file: "",
            flags: &[("network-plugin", &["dcoker"])],
            expect: Err(&[
                "`--network-plugin`: `dcoker` is not",
                "did you mean `docker`?",
            ]),
        },
        Case {
            name: "an image name with a space",
            file: "pod-infra-container-image = 'a b'\n",
            flags: &[],
            expect: Err(&["`pod-infra-container-image`", "white space"]),
        },
        Case {
            name: "no port in the streaming address",
            file: "streaming-bind-addr = '127.0.0.1'\n",
            flags: &[],
            expect: Err(&["`streaming-bind-addr`", "127.0.0.1:0"]),
        },
        Case {
            name: "a misspelt level",
            file: "log-level = 'infoo'\n",
            flags: &[],
            expect: Err(&["`log-level`", "`infoo`", "did you mean `info`?"]),
        },
        Case {
            name: "the same key twice",
            file: "root-dir = '/a'\nroot-dir = '/b'\n",
            flags: &[],
            expect: Err(&["config.toml line 2", "duplicate key"]),
        },
        Case {
            name: "no TOML",
            file: "root-dir '/a'\n",
            flags: &[],
            expect: Err(&["config.toml line 1"]),
        },
    ];

    #[test]
    fn settings_from_file_and_flags() {
        for case in CASES {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("config.toml");
            std::fs::write(&path, case.file).unwrap();
            let loaded = Config::load(Some(&path), flags(case.flags));
            match (loaded, case.expect) {
                (Ok(config), Ok(lines)) => {
                    let text = config.to_toml();
                    for line in lines {
                        assert!(
                            text.lines().any(|l| l == *line),
                            "{}: {line} is not in\n{text}",
                            case.name
                        );
                    }
                }
                (Err(error), Err(parts)) => {
                    let text = error.to_string();
                    for part in parts {
                        assert!(
                            text.contains(part),
                            "{}: {part:?} is not in {text:?}",
                            case.name
                        );
                    }
                }
                (got, _) => panic!("{}: {got:?}", case.name),
            }
        }
    }

    #[test]
    fn a_named_file_must_exist_and_the_default_one_need_not() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent.toml");
        assert_eq!(
            Config::load_with_default(&absent, None, Vec::new()).unwrap(),
            Config::default()
        );
        let error = Config::load(Some(&absent), Vec::new()).unwrap_err();
        assert!(matches!(error, ConfigError::Missing { .. }), "{error}");
        assert!(error.to_string().contains("absent.toml does not exist"));

        std::fs::write(&absent, "root-dir = '/from/default/file'\n").unwrap();
        let config = Config::load_with_default(&absent, None, Vec::new()).unwrap();
        assert_eq!(config.root_dir, Path::new("/from/default/file"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let error = Config::load(Some(folder.path()), Vec::new()).unwrap_err();
        assert!(matches!(error, ConfigError::Read { .. }), "{error}");
        let latin1 = folder.path().join("latin1.toml");
        std::fs::write(&latin1, b"root-dir = '/\xe9'\n").unwrap();
        let error = Config::load(Some(&latin1), Vec::new()).unwrap_err();
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let config = Config {
            seccomp_roots: vec!["/a \"quoted\"".into(), "/b\\c".into()],
            pod_infra_container_image: Some("pause:1".to_owned()),
            log_level: LogFilter::parse("warn,springline=trace").unwrap(),
            log_format: LogFormat::Json,
            ..Config::default()
        };
        std::fs::write(&path, config.to_toml()).unwrap();
        assert_eq!(Config::load(Some(&path), Vec::new()).unwrap(), config);
    }
}
