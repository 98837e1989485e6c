//! Facts of the engine in, rows out: a table of cases.

use std::time::Duration;

use super::*;
use crate::cli::doctor::finding::Grade;

const ENDPOINT: &str = "unix:///d.sock";

struct Case {
    name: &'static str,
    change: fn(&mut EngineFacts),
    check: &'static str,
    grade: Grade,
    says: &'static str,
}

fn case(
    name: &'static str,
    change: fn(&mut EngineFacts),
    check: &'static str,
    grade: Grade,
    says: &'static str,
) -> Case {
    Case {
        name,
        change,
        check,
        grade,
        says,
    }
}

fn cases() -> Vec<Case> {
    use Grade::{Fail, Ok, Warn};
    vec![
        case(
            "version",
            |f| f.version = "28.5.2".into(),
            "engine",
            Ok,
            "Docker 28.5.2, API",
        ),
        case(
            "oldest API",
            |f| f.api = Version::new(1, 40),
            "engine",
            Ok,
            "API 1.40",
        ),
        case(
            "too old",
            |f| f.api = Version::new(1, 39),
            "engine",
            Fail,
            "API 1.39",
        ),
        case(
            "windows",
            |f| f.os = "windows".into(),
            "platform",
            Fail,
            "windows/",
        ),
        case(
            "kernel",
            |f| f.kernel = "6.1.0".into(),
            "platform",
            Ok,
            "kernel 6.1.0",
        ),
        case(
            "cgroup 2",
            |f| f.cgroup_version = 2,
            "cgroup",
            Ok,
            "version 2, driver",
        ),
        case(
            "cgroup 1",
            |f| f.cgroup_version = 1,
            "cgroup",
            Warn,
            "version 1",
        ),
        case(
            "no driver",
            |f| f.cgroup_driver = "none".into(),
            "cgroup",
            Warn,
            "no limit",
        ),
        case(
            "no quota",
            |f| f.cpu_quota = false,
            "limits",
            Warn,
            "CPU limits",
        ),
        case(
            "no swap limit",
            |f| f.swap_limit = false,
            "limits",
            Warn,
            "swap",
        ),
        case(
            "low enough",
            |f| f.min_oom_score_adj = -998,
            "oom_score_adj",
            Ok,
            "-998",
        ),
        case(
            "one too high",
            |f| f.min_oom_score_adj = -997,
            "oom_score_adj",
            Warn,
            "below -997",
        ),
        case(
            "no capability",
            |f| f.min_oom_score_adj = 0,
            "oom_score_adj",
            Warn,
            "below 0",
        ),
        case("seccomp", |f| f.seccomp = true, "seccomp", Ok, "on"),
        case(
            "no seccomp",
            |f| f.seccomp = false,
            "seccomp",
            Warn,
            "unfiltered",
        ),
        case("apparmor", |f| f.apparmor = true, "apparmor", Ok, "on"),
        case("no apparmor", |f| f.apparmor = false, "apparmor", Ok, "off"),
        case("selinux", |f| f.selinux = true, "selinux", Ok, "on"),
        case("no selinux", |f| f.selinux = false, "selinux", Ok, "off"),
        case(
            "rootless",
            |f| f.rootless = true,
            "rights",
            Warn,
            "without root's rights",
        ),
        case(
            "overlay",
            |f| f.storage_driver = "overlay2".into(),
            "storage",
            Ok,
            "overlay2",
        ),
        case(
            "image store",
            |f| f.containerd_images = true,
            "storage",
            Ok,
            "containerd's",
        ),
        case(
            "own store",
            |f| f.containerd_images = false,
            "storage",
            Ok,
            "engine's own",
        ),
        case(
            "vfs",
            |f| f.storage_driver = "vfs".into(),
            "storage",
            Warn,
            "full copy",
        ),
        case(
            "gone",
            |f| f.storage_driver = "devicemapper".into(),
            "storage",
            Warn,
            "any more",
        ),
        case(
            "logs",
            |f| f.log_driver = "json-file".into(),
            "log driver",
            Ok,
            "json-file",
        ),
        case(
            "journald",
            |f| f.log_driver = "journald".into(),
            "log driver",
            Ok,
            "for pods (journald",
        ),
        case(
            "runtimes",
            |f| {
                f.default_runtime = "runc".into();
                f.runtimes = vec!["runc".into(), "runsc".into()];
            },
            "OCI runtimes",
            Ok,
            "runc (default), runsc",
        ),
        case(
            "a warning of its own",
            |f| f.warnings = vec!["WARNING: bridge-nf-call-iptables is disabled".into()],
            "engine's words",
            Warn,
            "bridge-nf-call-iptables is disabled",
        ),
    ]
}

#[test]
fn facts() {
    for case in cases() {
        let mut facts = EngineFacts::for_tests();
        (case.change)(&mut facts);
        let findings = findings(ENDPOINT, Ok(&facts));
        let found = findings.iter().find(|f| f.check == case.check);
        let found = found.unwrap_or_else(|| panic!("{}: no row {}", case.name, case.check));
        assert_eq!(found.grade, case.grade, "{}: {found:?}", case.name);
        assert!(found.detail.contains(case.says), "{}: {found:?}", case.name);
        for finding in findings {
            let advised = finding.advice.is_some();
            assert_eq!(
                advised,
                finding.grade != Grade::Ok,
                "{}: {finding:?}",
                case.name
            );
        }
    }
}

#[test]
fn no_facts() {
    let cases: &[(&str, EngineError, &str)] = &[
        (
            "not there",
            EngineError::Unreachable {
                endpoint: ENDPOINT.into(),
                reason: "no such file".into(),
            },
            "systemctl start docker",
        ),
        (
            "hangs",
            EngineError::Timeout {
                after: Duration::from_secs(5),
            },
            "does not answer",
        ),
        (
            "too old",
            EngineError::TooOld {
                what: "springline".into(),
                needs: Version::new(1, 40),
                has: Version::new(1, 39),
            },
            "19.03",
        ),
        (
            "something else",
            EngineError::Garbled("<html>".into()),
            "--docker-endpoint",
        ),
    ];
    for (name, error, advice) in cases {
        let findings = findings(ENDPOINT, Err(error));
        assert_eq!(findings.len(), 1, "{name}");
        assert_eq!(findings[0].grade, Grade::Fail, "{name}");
        assert!(findings[0].detail.contains(ENDPOINT), "{name}");
        let told = findings[0].advice.as_deref().unwrap();
        assert!(told.contains(advice), "{name}: {told}");
    }
}
