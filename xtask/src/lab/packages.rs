//! Debian's packages: installing the few that must be installed, and
//! unpacking the others into a folder, where they start no service.
//!
//! Packages of another release come through apt folders of their own, so the
//! machine's package lists stay as they are.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Context, Failure, Outcome},
    process,
};

const SIGNING_KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Installs those packages that are missing, and says which.
pub(crate) fn ensure_installed(packages: &[&str]) -> Outcome {
    let missing: Vec<&str> = packages
        .iter()
        .copied()
        .filter(|name| !installed(name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    process::step(
        &format!("installing Debian packages: {}", missing.join(" ")),
        || {
            refresh_own_lists()?;
            let log = super::cache()?.join("apt-install.log");
            process::quietly(
                Command::new("apt-get")
                    .env("DEBIAN_FRONTEND", "noninteractive")
                    .args(["install", "-qy", "--no-install-recommends"])
                    .args(["-o", "DPkg::Lock::Timeout=300"])
                    .args(&missing),
                &log,
            )
        },
    )
}

/// Whether dpkg holds the package to be installed.
pub(crate) fn installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["-W", "-f", "${db:Status-Status}", package])
        .output()
        .is_ok_and(|output| output.stdout == b"installed")
}

/// Unpacks packages of the machine's own release into `folder`.
pub(crate) fn unpack(packages: &[&str], folder: &Path) -> Outcome {
    refresh_own_lists()?;
    fetch(Command::new("apt-get"), packages, folder)
}

/// Unpacks packages of another Debian release into `folder`.
pub(crate) fn unpack_from(release: &str, packages: &[&str], folder: &Path) -> Outcome {
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        let part = apt.join(part);
        fs::create_dir_all(&part).context(format!("making {}", part.display()))?;
    }
    let sources = apt.join("sources.list");
    let source = format!(
        "deb [signed-by={SIGNING_KEYS}] {} {release} main\n",
        mirror()?
    );
    fs::write(&sources, source).context(format!("writing {}", sources.display()))?;
    let with_own_folders = || {
        let mut command = Command::new("apt-get");
        for (key, value) in [
            ("Dir::Etc::sourcelist", sources.clone()),
            ("Dir::Etc::sourceparts", PathBuf::from("/nonexistent")),
            ("Dir::State::lists", apt.join("lists")),
            ("Dir::Cache", apt.join("cache")),
        ] {
            command.arg("-o").arg(format!("{key}={}", value.display()));
        }
        command.args(["-o", "APT::Sandbox::User=root"]);
        command
    };
    process::quietly(
        with_own_folders().args(["-q", "update"]),
        &apt.join("update.log"),
    )?;
    fetch(with_own_folders(), packages, folder)
}

fn fetch(mut apt: Command, packages: &[&str], folder: &Path) -> Outcome {
    let archives = folder.join("deb");
    fs::create_dir_all(&archives).context(format!("making {}", archives.display()))?;
    apt.args(["-q", "-o", "APT::Sandbox::User=root", "download"])
        .args(packages)
        .current_dir(&archives);
    process::quietly(&mut apt, &folder.join("download.log"))?;
    let root = folder.join("root");
    for archive in entries(&archives)? {
        process::run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&root))?;
        fs::remove_file(&archive).context(format!("removing {}", archive.display()))?;
    }
    Ok(())
}

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let reading = || format!("reading {}", folder.display());
    fs::read_dir(folder)
        .context(reading())?
        .map(|entry| entry.map(|entry| entry.path()).context(reading()))
        .collect()
}

/// `apt-get update`, once per chore and only when a package is about to be fetched.
fn refresh_own_lists() -> Outcome {
    static DONE: std::sync::OnceLock<()> = std::sync::OnceLock::new();
    if DONE.get().is_some() {
        return Ok(());
    }
    let log = super::cache()?.join("apt-update.log");
    process::quietly(Command::new("apt-get").args(["-q", "update"]), &log)?;
    let _ = DONE.set(());
    Ok(())
}

/// The Debian mirror that the machine itself uses.
fn mirror() -> Outcome<String> {
    let deb822 = fs::read_to_string("/etc/apt/sources.list.d/debian.sources").unwrap_or_default();
    let one_line = fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
    mirror_of(&deb822, &one_line).ok_or_else(|| {
        Failure::new(
            "no Debian mirror in /etc/apt/sources.list or sources.list.d/debian.sources: \
             the lab takes its engines from Debian's packages and needs a Debian machine",
        )
    })
}

fn mirror_of(deb822: &str, one_line: &str) -> Option<String> {
    let modern = deb822
        .lines()
        .find_map(|line| line.strip_prefix("URIs:")?.split_whitespace().next());
    let classic = one_line
        .lines()
        .filter_map(|line| line.strip_prefix("deb "))
        .find_map(|line| line.split_whitespace().find(|word| word.contains("://")));
    modern.or(classic).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::mirror_of;

    #[test]
    fn the_mirror_is_found_in_both_formats() {
        let cases = [
            (
                "deb822",
                "Types: deb\n# a remark\nURIs: http://mirror/debian http://other\nSuites: x\n",
                "",
                Some("http://mirror/debian"),
            ),
            (
                "one line with options",
                "",
                "# deb http://no\ndeb [signed-by=/k.gpg arch=amd64] http://mirror/debian trixie main\n",
                Some("http://mirror/debian"),
            ),
            ("none", "", "", None),
        ];
        for (name, deb822, one_line, expected) in cases {
            assert_eq!(mirror_of(deb822, one_line).as_deref(), expected, "{name}");
        }
    }
}
