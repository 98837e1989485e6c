//! The program as an operator meets it: exit codes and what is said. What needs an engine is in the end-to-end tests.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and its functions are no tests to the lint"
)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn springline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_springline"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn wrong_command_lines_and_configurations_end_with_2_and_the_right_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "\ndokcer-endpoint = '/d.sock'\n").unwrap();
    let file = file.to_str().unwrap();
    let unknown_key = format!("unknown key `dokcer-endpoint` in {file} line 2: did you mean");
    let cases: &[(&str, &[&str], &str)] = &[
        ("nothing", &[], "Usage: springline <COMMAND>"),
        ("unknown command", &["sevre"], "'serve'"),
        (
            "unknown flag",
            &["serve", "--dokcer-endpoint", "x"],
            "--docker-endpoint",
        ),
        (
            "wrong flag",
            &["serve", "--log-format", "xml"],
            "`--log-format`: `xml`",
        ),
        ("unknown key", &["serve", "--config", file], &unknown_key),
        (
            "also for doctor",
            &["doctor", "--config", file],
            &unknown_key,
        ),
        (
            "also for config",
            &["config", "--config", file],
            &unknown_key,
        ),
        (
            "named file is missing",
            &["serve", "--config", "/nonexistent/c.toml"],
            "config file /nonexistent/c.toml does not exist",
        ),
    ];
    for (name, arguments, says) in cases {
        let output = springline(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(says), "{name}: {says:?} is not in {said}");
        assert!(output.stdout.is_empty(), "{name}");
    }
}

#[test]
fn the_version_is_the_packages() {
    let output = springline(&["--version"]);
    let expected = format!("springline {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(text(&output.stdout), expected);
    assert!(output.status.success());
}

#[test]
fn the_configuration_in_force_is_printed() {
    let output = springline(&["config", "--config", "/dev/null", "--root-dir", "/srv/s"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("\nroot-dir = \"/srv/s\"\n"));
}

/// A node with nothing on it but a folder.
fn doctor(folder: &Path, more: &[&str]) -> Output {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (ours, docker) = (at("s.sock"), at("docker.sock"));
    let (root, seccomp, plugins) = (at("root"), at("seccomp"), at("plugins.d"));
    let mut arguments = vec![
        "doctor",
        "--config=/dev/null",
        "--container-runtime-endpoint",
        &ours,
        "--docker-endpoint",
        &docker,
        "--root-dir",
        &root,
        "--seccomp-root",
        &seccomp,
        "--plugins-dir",
        &plugins,
    ];
    arguments.extend(more);
    springline(&arguments)
}

#[test]
fn doctor_without_an_engine_ends_with_1_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let output = doctor(folder.path(), &[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let engine = said.lines().find(|line| line.starts_with("FAIL  engine"));
    assert!(engine.unwrap().contains("docker.sock"), "{said}");
    assert!(said.contains("-> start Docker"), "{said}");
    assert!(said.contains("WARN  daemon"), "{said}");
    assert!(said.contains("WARN  seccomp root"), "{said}");
    assert!(said.contains("OK    store"), "{said}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "doctor changes nothing: {left:?}");
}

#[test]
fn doctor_tells_programs_the_same_in_json() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("plugins.d")).unwrap();
    std::fs::write(folder.path().join("plugins.d/gpu.toml"), "").unwrap();
    let output = doctor(folder.path(), &["--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], false);
    let findings = report["findings"].as_array().unwrap();
    let grade = |check: &str| {
        let mut found = findings.iter().filter(|finding| finding["check"] == check);
        found
            .next()
            .map(|finding| finding["grade"].as_str().unwrap())
    };
    assert_eq!(grade("engine"), Some("fail"));
    assert_eq!(grade("store"), Some("ok"));
    assert_eq!(grade("daemon"), Some("warn"));
    assert_eq!(grade("manifests"), Some("warn"));
}
