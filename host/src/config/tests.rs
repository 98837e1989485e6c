//! Files and flags in, settings or words out: a table of cases.

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
            "streaming-tls = \"off\"",
            "streaming-tls-cert = \"\"",
            "streaming-tls-key = \"\"",
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
        name: "TLS that is half on, with a certificate somewhere",
        file: "streaming-tls = 'yes'\nstreaming-tls-cert = 'cert.pem'\n",
        flags: &[],
        expect: Err(&[
            "`yes` is neither on nor off",
            "`cert.pem` must be an absolute path",
        ]),
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
