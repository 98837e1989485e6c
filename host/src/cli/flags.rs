//! The flags that set the configuration, shared by every command that reads it.
//!
//! Owns their names and one-line helps. Checking their values is the configuration's, so that a flag and a key in the file are
//! held to the same rules in the same words.

use std::path::PathBuf;

use crate::config::{Config, ConfigError, Given, Setting};

/// Flags that set the configuration. Each wins over the key of the same name in the config file.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ConfigFlags {
    /// Config file [default: /etc/springline/config.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the CRI is served: unix:///path, or fd:// for a socket passed by systemd [default: unix:///var/run/springline.sock]
    #[arg(long, value_name = "ENDPOINT")]
    container_runtime_endpoint: Option<String>,
    /// Docker Engine's socket [default: unix:///var/run/docker.sock]
    #[arg(long, value_name = "ENDPOINT")]
    docker_endpoint: Option<String>,
    /// Where records and the files of sandboxes are kept [default: /var/lib/springline]
    #[arg(long, value_name = "DIR", alias = "cri-dockerd-root-directory")]
    root_dir: Option<String>,
    /// Where the node's plugin manifests are [default: /etc/springline/plugins.d]
    #[arg(long, value_name = "DIR")]
    plugins_dir: Option<String>,
    /// Folder of Localhost seccomp profiles; may be given more than once [default: /var/lib/kubelet/seccomp]
    #[arg(long = "seccomp-root", value_name = "DIR")]
    seccomp_roots: Vec<String>,
    /// Who connects pods: empty, docker or no-op for Docker's bridge [default: empty]
    #[arg(long, value_name = "NAME")]
    network_plugin: Option<String>,
    /// Image of the sandbox container [default: one that is built in]
    #[arg(long, value_name = "IMAGE")]
    pod_infra_container_image: Option<String>,
    /// Where the streaming server listens [default: 127.0.0.1:0]
    #[arg(long, value_name = "IP:PORT")]
    streaming_bind_addr: Option<String>,
    /// Whether the streaming server speaks TLS: on or off [default: off]
    #[arg(long, value_name = "ON|OFF")]
    streaming_tls: Option<String>,
    /// Its certificate, in PEM form [default: one that is made at the start]
    #[arg(long, value_name = "FILE")]
    streaming_tls_cert: Option<String>,
    /// The private key of that certificate, in PEM form [default: empty]
    #[arg(long, value_name = "FILE")]
    streaming_tls_key: Option<String>,
    /// error, warn, info, debug, trace, or a filter such as warn,springline::docker=trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl ConfigFlags {
    /// The configuration: the file's, under these flags.
    ///
    /// # Errors
    /// When the file or a flag is wrong.
    pub fn load(&self) -> Result<Config, ConfigError> {
        Config::load(self.config.as_deref(), self.given())
    }

    fn given(&self) -> Vec<Given> {
        let Self {
            config: _, // where the rest is read from
            container_runtime_endpoint,
            docker_endpoint,
            root_dir,
            plugins_dir,
            seccomp_roots,
            network_plugin,
            pod_infra_container_image,
            streaming_bind_addr,
            streaming_tls,
            streaming_tls_cert,
            streaming_tls_key,
            log_level,
            log_format,
        } = self;
        let one = |value: &Option<String>| value.clone().into_iter().collect::<Vec<_>>();
        [
            (
                "container-runtime-endpoint",
                one(container_runtime_endpoint),
            ),
            ("docker-endpoint", one(docker_endpoint)),
            ("root-dir", one(root_dir)),
            ("plugins-dir", one(plugins_dir)),
            ("seccomp-root", seccomp_roots.clone()),
            ("network-plugin", one(network_plugin)),
            ("pod-infra-container-image", one(pod_infra_container_image)),
            ("streaming-bind-addr", one(streaming_bind_addr)),
            ("streaming-tls", one(streaming_tls)),
            ("streaming-tls-cert", one(streaming_tls_cert)),
            ("streaming-tls-key", one(streaming_tls_key)),
            ("log-level", one(log_level)),
            ("log-format", one(log_format)),
        ]
        .into_iter()
        .filter_map(|(key, values)| Given::flag(Setting::find(key)?, values))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{Args, Command, FromArgMatches};

    use super::*;
    use crate::config::{SETTINGS, Value};

    fn parse(line: &[&str]) -> ConfigFlags {
        let command = ConfigFlags::augment_args(Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(line).unwrap();
        ConfigFlags::from_arg_matches(&matches).unwrap()
    }

    /// A value that differs from the default, for each setting.
    fn other_values() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([
            ("container-runtime-endpoint", "unix:///o/s.sock"),
            ("docker-endpoint", "unix:///o/d.sock"),
            ("root-dir", "/o/root"),
            ("plugins-dir", "/o/plugins"),
            ("seccomp-root", "/o/seccomp"),
            ("pod-infra-container-image", "other:1"),
            ("streaming-bind-addr", "127.0.0.1:10010"),
            ("streaming-tls", "on"),
            ("streaming-tls-cert", "/o/cert.pem"),
            ("streaming-tls-key", "/o/key.pem"),
            ("log-level", "debug"),
            ("log-format", "json"),
        ])
    }

    #[test]
    fn every_setting_has_a_flag_that_sets_it_and_nothing_else() {
        for setting in SETTINGS {
            // Nothing but the default can be said of the network yet.
            let other = other_values().get(setting.key).copied();
            let value = other.unwrap_or("");
            let flags = parse(&[&format!("--{}", setting.key), value]);
            assert_eq!(flags.given().len(), 1, "{}", setting.key);
            let config = Config::load(Some(empty_file().path()), flags.given()).unwrap();
            for one in SETTINGS {
                let now = one.value(&config);
                if one.key == setting.key && other.is_some() {
                    let expected = if one.is_list() {
                        Value::List(vec![value.to_owned()])
                    } else {
                        Value::Text(value.to_owned())
                    };
                    assert_eq!(now, expected, "{}", setting.key);
                } else {
                    let default = one.value(&Config::default());
                    assert_eq!(now, default, "--{} changes {}", setting.key, one.key);
                }
            }
        }
    }

    #[test]
    fn every_flag_is_a_setting_or_names_the_file() {
        let command = ConfigFlags::augment_args(Command::new("test"));
        let mut flags: Vec<&str> = command
            .get_arguments()
            .filter_map(|a| a.get_long())
            .collect();
        let mut expected: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
        expected.push("config");
        flags.sort_unstable();
        expected.sort_unstable();
        assert_eq!(flags, expected);
    }

    #[test]
    fn the_help_tells_the_defaults() {
        let command = ConfigFlags::augment_args(Command::new("test"));
        for argument in command.get_arguments() {
            let help = argument.get_help().unwrap().to_string();
            let Some(setting) = argument.get_long().and_then(Setting::find) else {
                continue;
            };
            let default = match setting.value(&Config::default()) {
                Value::Text(text) => text,
                Value::List(list) => list.join(" "),
            };
            assert!(help.contains("[default: "), "{help}");
            assert!(help.contains(&default), "--{}: {help}", setting.key);
        }
    }

    #[test]
    fn lists_and_other_names() {
        let flags = parse(&[
            "--seccomp-root=/a",
            "--seccomp-root=/b",
            "--cri-dockerd-root-directory=/var/lib/cri-dockerd",
        ]);
        let config = Config::load(Some(empty_file().path()), flags.given()).unwrap();
        assert_eq!(config.seccomp_roots, ["/a", "/b"].map(PathBuf::from));
        assert_eq!(config.root_dir, PathBuf::from("/var/lib/cri-dockerd"));
    }

    fn empty_file() -> tempfile::NamedTempFile {
        tempfile::NamedTempFile::new().unwrap()
    }
}
