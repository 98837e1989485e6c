//! What is said when the configuration is wrong.
//!
//! Owns the wording around a problem; the wording of the problem itself belongs to the setting's check.

use std::fmt;
use std::path::PathBuf;

use super::settings::{Origin, SETTINGS};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that was named does not exist.
    #[error(
        "config file {} does not exist: make it, or leave --config out to go without",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("config file {} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is no TOML.
    #[error("config file {} line {line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where in it, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// Settings are unknown or wrong: all of them, one a line.
    #[error("{}", lines(.0))]
    Wrong(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

/// One setting that is unknown or wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// No setting has this name.
    Unknown {
        /// The name.
        key: String,
        /// Where it was given.
        origin: Origin,
    },
    /// The setting's value is impossible.
    Value {
        /// The setting's name.
        key: &'static str,
        /// Where it was given.
        origin: Origin,
        /// What is wrong, and what would be right.
        reason: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { key, origin } => {
                match origin {
                    Origin::File { path, line } => {
                        write!(f, "unknown key `{key}` in {} line {line}: ", path.display())?;
                    }
                    Origin::Flag => write!(f, "unknown flag `--{key}`: ")?,
                }
                match nearest(&key.replace('_', "-"), SETTINGS.iter().map(|s| s.key)) {
                    Some(known) => write!(f, "did you mean `{known}`?"),
                    None => {
                        let known: Vec<&str> = SETTINGS.iter().map(|s| s.key).collect();
                        write!(f, "known are {}", known.join(", "))
                    }
                }
            }
            Self::Value {
                key,
                origin,
                reason,
            } => match origin {
                Origin::File { path, line } => {
                    write!(f, "`{key}` in {} line {line}: {reason}", path.display())
                }
                Origin::Flag => write!(f, "`--{key}`: {reason}"),
            },
        }
    }
}

/// The word among `known` that was most likely meant by `word`, if any is near.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near_enough = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|one| (strsim::damerau_levenshtein(word, one), one))
        .filter(|(distance, _)| *distance <= near_enough)
        .min()
        .map(|(_, one)| one)
}
