//! Building the public suite into the cache.
//!
//! The cache is keyed by the pinned module's checksums and by our test image,
//! so a changed pin or image builds anew and nothing else does.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Context, Failure, Outcome},
    lab, paths, process,
};

/// The digest by which the suite names one image. The image that has it cannot
/// be rebuilt bit by bit, so ours takes its place in the built program.
const DIGEST_IN_SUITE: &str =
    "sha256:9700f9a2f5bf2c45f2f605a0bd3bce7cf37420ec9d3ed50ac2758413308766bf";

/// The suite's program, naming our image by `digest`.
pub(super) fn build(digest: &str) -> Outcome<PathBuf> {
    let module = paths::repository().join("tests/conformance");
    let built = tool(&module, "critest")?;
    let key: String = digest
        .trim_start_matches("sha256:")
        .chars()
        .take(12)
        .collect();
    let ours = built.with_file_name(format!("critest-{key}"));
    if !ours.exists() {
        let mut program = fs::read(&built).context("reading the built suite")?;
        let places = replace(&mut program, DIGEST_IN_SUITE.as_bytes(), digest.as_bytes())?;
        if places == 0 {
            return Err(Failure::new(
                "the suite does not name the digest that was expected",
            ));
        }
        install(&program, &ours)?;
    }
    Ok(ours)
}

/// The command line client of the same release, for people.
pub(super) fn crictl() -> Outcome<PathBuf> {
    tool(&paths::repository().join("tests/conformance"), "crictl")
}

/// Builds `crictl` or `critest` from the pinned module unless the cache has it.
fn tool(module: &Path, name: &str) -> Outcome<PathBuf> {
    let pins = fs::read(module.join("go.sum")).context("reading tests/conformance/go.sum")?;
    let key: String = lab::fingerprint(&pins).chars().take(12).collect();
    let folder = paths::cache()?
        .join("tools")
        .join(format!("cri-tools-{key}"));
    let program = folder.join(name);
    if program.exists() {
        return Ok(program);
    }
    let mut command = lab::go::go()?;
    process::step(
        &format!("building {name} (about two minutes the first time)"),
        || {
            let unfinished = folder.join(format!("{name}.unfinished"));
            let package = format!("sigs.k8s.io/cri-tools/cmd/{name}");
            command
                .current_dir(module)
                .envs([("GOFLAGS", "-mod=readonly -trimpath"), ("CGO_ENABLED", "0")]);
            // The suite's command is a test binary.
            match name {
                "critest" => command.args(["test", "-c"]),
                _ => command.arg("build"),
            };
            command.arg("-o").arg(&unfinished).arg(package);
            process::quietly(&mut command, &folder.join(format!("{name}.log")))?;
            fs::rename(&unfinished, &program).context("keeping the built program")
        },
    )?;
    Ok(program)
}

fn install(program: &[u8], path: &Path) -> Outcome {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, program).context("writing the suite's program")?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o755))
        .context("making the suite's program executable")?;
    fs::rename(&unfinished, path).context("keeping the suite's program")
}

/// Replaces `old` by `new` everywhere, in place; returns the number of places.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) -> Outcome<usize> {
    if old.len() != new.len() {
        return Err(Failure::new("the two digests differ in length"));
    }
    let places: Vec<usize> = bytes
        .windows(old.len())
        .enumerate()
        .filter(|(_, window)| *window == old)
        .map(|(at, _)| at)
        .collect();
    for at in &places {
        if let Some(place) = bytes.get_mut(*at..*at + new.len()) {
            place.copy_from_slice(new);
        }
    }
    Ok(places.len())
}

/// What the suite has done so far, read from its log.
pub(super) fn progress(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    marks(&String::from_utf8_lossy(&text))
}

/// Counts the marks that begin lines: a dot for each case that ran, an S for one that was skipped.
fn marks(text: &str) -> String {
    let (mut ran, mut failed, mut skipped) = (0, 0, 0);
    for line in text.lines() {
        let rest = line.trim_start_matches(['•', 'S']);
        let begins = line.strip_suffix(rest).unwrap_or_default();
        // Words that happen to begin with an S.
        if !begins.contains('•') && rest.starts_with(|next: char| next.is_alphabetic()) {
            continue;
        }
        ran += begins.matches('•').count();
        skipped += begins.matches('S').count();
        failed += usize::from(rest.starts_with(" [FAILED]"));
    }
    let passed = ran.saturating_sub(failed);
    format!("{passed} passed, {failed} failed, {skipped} skipped so far")
}

#[cfg(test)]
mod tests {
    use super::{marks, replace};

    #[test]
    fn progress_is_read_from_the_marks() {
        let log = "Will run 142 of 142 specs\n••SS•\n• [FAILED] [3.1 seconds]\n  STEP: x\n\
                   S•E1130 remote\nSummarizing 1 Failure:\nSSS\n";
        assert_eq!(marks(log), "4 passed, 1 failed, 6 skipped so far");
    }

    #[test]
    fn a_digest_is_replaced_in_place() {
        let mut program = *b"..old..old.";
        assert_eq!(replace(&mut program, b"old", b"new").unwrap(), 2);
        assert_eq!(&program, b"..new..new.");
        assert!(replace(&mut program, b"new", b"longer").is_err());
    }
}
