//! Addresses of sockets as operators write them: `unix:///path`, a plain path, `fd://`.
//!
//! Owns their grammar. It must not know whether anything is at the address. Fails naming the scheme that is not supported
//! and those that are.

use std::fmt;
use std::path::{Path, PathBuf};

/// Longest path that the kernel takes as a socket's address, in bytes (`sun_path` less its terminating NUL).
const SOCKET_PATH_MAX: usize = 107;

/// Where we serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket that we make.
    Unix(SocketPath),
    /// The listening socket that the service manager passes (`fd://`).
    Passed,
}

/// The absolute path of a Unix socket, short enough for the kernel. Displays as `unix:///path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketPath(PathBuf);

/// Why a text is no address of a socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Nothing at all.
    #[error("is empty; give {wanted}")]
    Empty {
        /// The forms that are supported here.
        wanted: &'static str,
    },
    /// A scheme that is not supported here.
    #[error("{scheme}:// is not supported; give {wanted}")]
    Scheme {
        /// The scheme.
        scheme: String,
        /// The forms that are supported here.
        wanted: &'static str,
    },
    /// A path that does not begin at the root.
    #[error("`{text}` must be an absolute path: did you mean `unix:///{}`?", text.trim_start_matches("unix://"))]
    Relative {
        /// The address.
        text: String,
    },
    /// A path that names a folder.
    #[error("`{text}` names a folder, not a socket")]
    Folder {
        /// The address.
        text: String,
    },
    /// A path longer than the kernel takes.
    #[error("the path has {bytes} bytes, a socket's path has {SOCKET_PATH_MAX} at most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// `fd://` with something behind it.
    #[error("`{text}` selects a socket; there is only `fd://`, the one that was passed")]
    Selected {
        /// The address.
        text: String,
    },
}

impl Endpoint {
    const WANTED: &'static str = "unix:///path/of.sock or fd:// (socket activation)";

    /// Reads `unix:///path`, a plain absolute path or `fd://`.
    ///
    /// # Errors
    /// When it is anything else, or the path is impossible for a socket.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        match text.strip_prefix("fd://") {
            Some("") => Ok(Self::Passed),
            Some(_) => Err(EndpointError::Selected {
                text: text.to_owned(),
            }),
            None => SocketPath::parse_wanting(text, Self::WANTED).map(Self::Unix),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.fmt(f),
            Self::Passed => f.write_str("fd://"),
        }
    }
}

impl SocketPath {
    const WANTED: &'static str = "unix:///path/of.sock";

    /// Reads `unix:///path` or a plain absolute path.
    ///
    /// # Errors
    /// When it is anything else, or the path is impossible for a socket.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        Self::parse_wanting(text, Self::WANTED)
    }

    /// A path known to be right.
    pub(super) fn fixed(path: &'static str) -> Self {
        Self(PathBuf::from(path))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn parse_wanting(text: &str, wanted: &'static str) -> Result<Self, EndpointError> {
        let path = match text.split_once("://") {
            _ if text.is_empty() => return Err(EndpointError::Empty { wanted }),
            None => text,
            Some(("unix", path)) => path,
            Some((scheme, _)) => {
                return Err(EndpointError::Scheme {
                    scheme: scheme.to_owned(),
                    wanted,
                });
            }
        };
        if path.is_empty() {
            return Err(EndpointError::Empty { wanted });
        }
        if !path.starts_with('/') {
            return Err(EndpointError::Relative {
                text: text.to_owned(),
            });
        }
        if path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..") {
            return Err(EndpointError::Folder {
                text: text.to_owned(),
            });
        }
        if path.len() > SOCKET_PATH_MAX {
            return Err(EndpointError::TooLong { bytes: path.len() });
        }
        Ok(Self(PathBuf::from(path)))
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.0.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        let long = format!("/{}", "x".repeat(SOCKET_PATH_MAX));
        let just = format!("/{}", "x".repeat(SOCKET_PATH_MAX - 1));
        let cases: &[(&str, &str, Result<&str, &str>)] = &[
            ("url", "unix:///run/s.sock", Ok("unix:///run/s.sock")),
            ("plain path", "/run/s.sock", Ok("unix:///run/s.sock")),
            ("passed", "fd://", Ok("fd://")),
            ("longest", &just, Ok(&format!("unix://{just}"))),
            ("too long", &long, Err("108 bytes")),
            ("empty", "", Err("is empty; give unix:///")),
            ("scheme alone", "unix://", Err("is empty")),
            (
                "host instead of path",
                "unix://run/s.sock",
                Err("did you mean `unix:///run/s.sock`?"),
            ),
            ("relative", "s.sock", Err("did you mean `unix:///s.sock`?")),
            ("folder", "unix:///run/", Err("names a folder")),
            ("root", "/", Err("names a folder")),
            ("dots", "/run/..", Err("names a folder")),
            ("abstract", "unix://@s", Err("absolute")),
            ("tcp", "tcp://127.0.0.1:1", Err("tcp:// is not supported")),
            (
                "pipe",
                "npipe:////./pipe/docker",
                Err("npipe:// is not supported"),
            ),
            ("numbered", "fd://4", Err("there is only `fd://`")),
        ];
        for (name, text, expect) in cases {
            match (Endpoint::parse(text), expect) {
                (Ok(endpoint), Ok(shown)) => assert_eq!(endpoint.to_string(), *shown, "{name}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{name}: {error}");
                }
                (got, _) => panic!("{name}: {got:?}"),
            }
        }
    }
}
