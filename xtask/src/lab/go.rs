//! The Go toolchain that the public CRI suite is built with: the machine's own
//! where it is new enough, else Debian's, unpacked and not installed.

use std::{path::PathBuf, process::Command};

use super::packages;
use crate::failure::{Context, Outcome};

/// From this version on, Go fetches the very version that a module asks for.
const OLDEST: (u32, u32) = (1, 21);

/// A command that runs Go.
pub(crate) fn go() -> Outcome<Command> {
    for candidate in ["go", "/usr/local/go/bin/go"] {
        let answer = Command::new(candidate).arg("version").output();
        let answer = answer.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        if answer.is_ok_and(|words| version_in(&words) >= Some(OLDEST)) {
            return Ok(Command::new(candidate));
        }
    }
    let folder = super::cache()?.join("go");
    let program: PathBuf = folder.join("root/usr/lib/go-1.26/bin/go");
    if !program.exists() {
        super::announce("fetching Go of Debian forky", || {
            packages::unpack_from("forky", &["golang-1.26-go", "golang-1.26-src"], &folder)
        })?;
    }
    program
        .exists()
        .then(|| Command::new(&program))
        .context("Debian's package golang-1.26-go holds no go where it is expected")
}

/// Major and minor version in `go version go1.26.8 linux/amd64`.
fn version_in(words: &str) -> Option<(u32, u32)> {
    let version = words.split(' ').nth(2)?.strip_prefix("go")?;
    let mut numbers = version.split('.');
    let major = numbers.next()?.parse().ok()?;
    // A release candidate says `1.27rc1`.
    let minor: String = numbers
        .next()?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    Some((major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{OLDEST, version_in};

    #[test]
    fn versions_are_compared_as_numbers() {
        let cases = [
            ("new enough", "go version go1.26.8 linux/amd64", true),
            (
                "the oldest that will do",
                "go version go1.21 linux/amd64",
                true,
            ),
            (
                "a release candidate",
                "go version go1.27rc1 linux/amd64",
                true,
            ),
            ("one digit less", "go version go1.9.7 linux/amd64", false),
            ("Debian 12's", "go version go1.19.8 linux/amd64", false),
            ("no answer", "", false),
        ];
        for (name, words, good) in cases {
            assert_eq!(version_in(words) >= Some(OLDEST), good, "{name}");
        }
    }
}
