//! Rules about the source that no compiler holds: who may import whom, who owns which crate, module docs, sizes, names, and
//! documents that must agree with the code. It reads files and runs nothing; each rule prints all its violations.
//!
//! It reads text, not syntax: comments and a file's `#[cfg(test)]` module are left out, strings are not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and its functions are no tests to the lint"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the host crate and what of the crate each may name beside itself. `cli`, `lib` and `main` wire everything.
const MAY_IMPORT: [(&str, &[&str]); 17] = [
    ("model", &[]),
    ("error", &["runtime::ports"]),
    ("draft", &["error", "model"]),
    ("runtime", &["draft", "error", "model"]),
    ("cri", &["config", "draft", "error", "model", "runtime"]),
    ("admin", &["config", "error", "model", "runtime"]),
    ("streaming", &["config", "error", "model", "runtime"]),
    ("docker", BACK),
    ("network", BACK),
    ("plugin", BACK),
    ("logs", BACK),
    ("stats", BACK),
    ("store", BACK),
    ("config", &["telemetry"]),
    ("telemetry", &["config"]),
    ("shutdown", &[]),
    ("pause", &[]),
];
/// What stands behind a port knows the port, the nouns and the draft, and never its neighbours.
const BACK: &[&str] = &["draft", "model", "runtime::ports"];

/// Crates that one module of the host owns. (`cli/doctor` asks about the daemon through `cri::listener`.)
const OWNERS: [(&str, &str); 11] = [
    ("tonic", "cri"),
    ("tonic_health", "cri"),
    ("tonic_reflection", "cri"),
    ("prost_reflect", "cri"),
    ("cri_api", "cri"),
    ("wasmtime", "plugin"),
    ("flate2", "streaming"),
    ("rcgen", "streaming"),
    ("rustls", "streaming"),
    ("tokio_rustls", "streaming"),
    ("tokio_tungstenite", "streaming"),
];

const LONGEST: usize = 400;
/// Longer files, and why that is better than cutting them.
const LONGER: [(&str, &str); 0] = [];
/// Half of the host's files are shorter than this.
const MEDIAN: usize = 130;
const ARCHITECTURE_LINES: usize = 400;
const NAMELESS: [&str; 7] = [
    "helpers", "helper", "utils", "util", "common", "misc", "convert",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// All files of the repository, as paths from its root; build output and version control left out.
fn files() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            if [".git", "target"].iter().any(|skipped| name == *skipped) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), found);
            } else {
                found.push(entry.path());
            }
        }
    }
    let root = repository();
    let mut found = Vec::new();
    walk(&root, &mut found);
    let mut found: Vec<String> = found
        .iter()
        .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().into())
        .collect();
    found.sort();
    found
}

fn rust_files() -> Vec<String> {
    files()
        .into_iter()
        .filter(|file| file.ends_with(".rs"))
        .collect()
}

/// The host's files that are no tests.
fn host_files() -> Vec<String> {
    rust_files()
        .into_iter()
        .filter(|file| file.starts_with("host/src/"))
        .filter(|file| !file.ends_with("/tests.rs") && !file.contains("/tests/"))
        .collect()
}

fn read(file: &str) -> String {
    fs::read_to_string(repository().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A file without the test module at its end.
fn without_tests(text: &str) -> &str {
    let end = text.find("#[cfg(test)]\nmod ");
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

/// The lines that are neither comment nor part of the test module at the end, with their numbers.
fn code(text: &str) -> Vec<(usize, &str)> {
    without_tests(text)
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .collect()
}

/// The first module below `host/src`: `cri` for `host/src/cri/call.rs`.
fn module_of(file: &str) -> &str {
    let below = file.strip_prefix("host/src/").unwrap();
    let end = below.find(['/', '.']).unwrap();
    below.get(..end).unwrap()
}

/// What a line names of the host crate: `a::b` for `crate::a::b::C`, and each of `crate::{a, b::c}`.
fn imports(line: &str) -> Vec<String> {
    let two_words = |path: &str| -> String {
        let words = path.split("::").take(2).map(|word| {
            let end = word.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            word.get(..end.unwrap_or(word.len())).unwrap_or_default()
        });
        words.collect::<Vec<_>>().join("::")
    };
    line.match_indices("crate::")
        // Not `other_crate::`.
        .filter(|(at, _)| !line.get(..*at).unwrap_or_default().ends_with('_'))
        .flat_map(|(at, crate_word)| {
            let path = line.get(at + crate_word.len()..).unwrap_or_default();
            match path.strip_prefix('{') {
                Some(list) => list
                    .split(',')
                    .map(|one| two_words(one.trim()))
                    .filter(|one| !one.is_empty())
                    .collect(),
                None => vec![two_words(path)],
            }
        })
        .collect()
}

fn is_word_in(word: &str, line: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().last());
        let after = line
            .get(at + word.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(in_word) && !after.is_some_and(in_word)
    })
}

fn none(rule: &str, violations: &[String]) {
    assert!(
        violations.is_empty(),
        "{rule}; {} violation(s):\n  {}",
        violations.len(),
        violations.join("\n  ")
    );
}

#[test]
fn modules_import_in_one_direction() {
    let mut violations = Vec::new();
    for file in host_files() {
        let module = module_of(&file);
        if ["cli", "lib", "main"].contains(&module) {
            continue;
        }
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == module) else {
            violations.push(format!(
                "{file}: module {module} is not in the list of directions"
            ));
            continue;
        };
        for (number, line) in code(&read(&file)) {
            for import in imports(line) {
                let top = import.split("::").next().unwrap_or_default();
                let fine = top == module || allowed.iter().any(|a| *a == top || *a == import);
                if !fine {
                    violations.push(format!("{file}:{number}: {module} must not know {import}"));
                }
            }
        }
    }
    none("modules import in one direction", &violations);
}

#[test]
fn crates_have_one_owner() {
    let mut violations = Vec::new();
    for file in host_files() {
        let module = module_of(&file);
        for (number, line) in code(&read(&file)) {
            for (name, owner) in OWNERS {
                if module != owner && is_word_in(name, line) {
                    violations.push(format!("{file}:{number}: {name} belongs to {owner}/ alone"));
                }
            }
        }
    }
    none("each of these crates is one module's own", &violations);
}

#[test]
fn every_file_says_what_it_is() {
    let mut violations = Vec::new();
    // A module's `tests.rs` is introduced by the module.
    let own = |file: &String| !file.ends_with("/tests.rs");
    for file in rust_files().into_iter().filter(own) {
        let text = read(&file);
        let first = text.lines().find(|line| !line.trim().is_empty());
        if !first.is_some_and(|line| line.starts_with("//! ")) {
            violations.push(file);
        }
    }
    none("a file opens with `//!`: what it is", &violations);
}

#[test]
fn files_are_short() {
    let mut lengths = Vec::new();
    let mut violations = Vec::new();
    for file in host_files() {
        let text = read(&file);
        let lines = without_tests(&text).lines().count();
        lengths.push(lines);
        let listed = LONGER.iter().any(|(name, _)| *name == file);
        match (lines > LONGEST, listed) {
            (true, false) => violations.push(format!("{file}: {lines} lines, tests not counted")),
            (false, true) => violations.push(format!("{file}: no longer long, strike it")),
            _ => {}
        }
    }
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    if median > MEDIAN {
        violations.push(format!(
            "the median of host/src is {median} lines, above {MEDIAN}"
        ));
    }
    none("a file can be read in one sitting", &violations);
}

#[test]
fn names_say_something() {
    let nameless = |file: &String| {
        let mut parts = file.split(['/', '.']);
        parts.any(|part| NAMELESS.contains(&part))
    };
    let violations: Vec<String> = rust_files().into_iter().filter(nameless).collect();
    none(
        "no module is called helpers, utils, common, misc or convert",
        &violations,
    );
}

#[test]
fn no_file_names_a_machine() {
    // In two parts, or this file would name them.
    let places = [concat!("/wo", "rk/"), concat!("/ro", "ot/.")];
    let mut violations = Vec::new();
    for file in files() {
        let Ok(text) = fs::read_to_string(repository().join(&file)) else {
            continue; // not text
        };
        for (index, line) in text.lines().enumerate() {
            let path_begins = |at: usize| {
                let before = line.get(..at).and_then(|text| text.chars().last());
                !before.is_some_and(|c| c.is_alphanumeric() || "._-}/".contains(c))
            };
            for place in places {
                if line.match_indices(place).any(|(at, _)| path_begins(at)) {
                    violations.push(format!("{file}:{}: {place}", index + 1));
                }
            }
        }
    }
    none("no file names the paths of one machine", &violations);
}

/// `(RPC, done)` of the README's table.
fn promised() -> Vec<(String, bool)> {
    let readme = read("README.md");
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (name, done) = (cells.next()?, cells.next()?);
        let camel = name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric);
        match done {
            _ if !camel => None,
            _ if done.starts_with("yes") => Some((name.to_owned(), true)),
            _ if done.starts_with("no") => Some((name.to_owned(), false)),
            _ => None,
        }
    };
    readme.lines().filter_map(row).collect()
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[test]
fn the_readmes_rpc_table_is_true() {
    let declared: BTreeSet<String> = files()
        .iter()
        .filter(|file| file.starts_with("proto/proto/runtime/v1/") && file.ends_with(".proto"))
        .flat_map(|file| {
            let text = read(file);
            let rpcs = text.lines().filter_map(|line| {
                let rest = line.trim().strip_prefix("rpc ")?;
                Some(rest.split('(').next()?.trim().to_owned())
            });
            rpcs.collect::<Vec<_>>()
        })
        .collect();
    assert!(declared.len() > 40, "the proto files declare {declared:?}");
    let services = ["runtime_service.rs", "image_service.rs"];
    let code = services.map(|file| read(&format!("host/src/cri/{file}")));
    let answered = |rpc: &str| {
        let function = format!("    async fn {}(", snake_case(rpc));
        code.iter()
            .any(|text| text.lines().any(|line| line == function))
    };
    let promised = promised();
    let mut violations = Vec::new();
    for (rpc, done) in &promised {
        if !declared.contains(rpc) {
            violations.push(format!("{rpc} stands in the table, not in the proto files"));
        } else if *done != answered(rpc) {
            let word = if *done { "done" } else { "not done" };
            violations.push(format!("{rpc} is {word} by the table, not by the code"));
        }
    }
    for rpc in &declared {
        let rows = promised.iter().filter(|(name, _)| name == rpc).count();
        if rows != 1 {
            violations.push(format!("{rpc} stands {rows} times in the table"));
        }
    }
    none("README.md tells which RPCs are done", &violations);
}

#[test]
fn the_architecture_can_be_read_in_one_sitting() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(
        lines < ARCHITECTURE_LINES,
        "ARCHITECTURE.md has {lines} lines; a bird's eye view has fewer than {ARCHITECTURE_LINES}"
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut violations = Vec::new();
    for file in files().iter().filter(|file| file.ends_with(".md")) {
        let text = read(file);
        let folder = repository().join(file);
        for (at, _) in text.match_indices("](") {
            let rest = text.get(at + 2..).unwrap_or_default();
            let link = rest.split([')', '#']).next().unwrap_or_default();
            let ours =
                !link.is_empty() && !link.contains("://") && !link.contains(char::is_whitespace);
            if ours && !folder.parent().unwrap().join(link).exists() {
                violations.push(format!("{file}: {link}"));
            }
        }
    }
    none("a link leads to a file that is there", &violations);
}

#[test]
fn every_shipped_plugin_is_complete() {
    let all = files();
    let names: BTreeSet<&str> = all
        .iter()
        .filter_map(|file| file.strip_prefix("plugins/")?.split_once('/'))
        .map(|(name, _)| name)
        .collect();
    assert!(!names.is_empty());
    let mut violations = Vec::new();
    for name in names {
        for part in ["README.md", "plugin.toml", "src/lib.rs", "cases/"] {
            let wanted = format!("plugins/{name}/{part}");
            if !all.iter().any(|file| file.starts_with(&wanted)) {
                violations.push(wanted);
            }
        }
    }
    none("a plugin has README, plugin.toml and cases", &violations);
}
