//! Identifiers, one type each, so that an image ID cannot be passed where a container ID is meant.
//!
//! They carry what the engine or the caller said, unverified; resolving a short ID is the verbs' work.

use std::fmt;

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id_type! {
    /// The engine's full 64-digit ID of a pod sandbox's own (pause) container; CRI's `pod_sandbox_id`.
    SandboxId
}
id_type! {
    /// The engine's full 64-digit ID of a container; CRI's `container_id`.
    ContainerId
}
id_type! {
    /// The engine's ID of an image with its algorithm, `sha256:…`: one identity in every CRI answer.
    ImageId
}
id_type! {
    /// What a user or the kubelet writes to name an image: a tag, a digest or an ID.
    ImageReference
}
id_type! {
    /// A repository and the digest of a manifest in it, `name@sha256:…`.
    RepoDigest
}

/// Whether `text` can be (the start of) an engine container ID: 1 to 64 lower-case hexadecimal digits.
///
/// Everything else (`/`, `..`, NUL, names) never reaches an engine URL: it cannot name anything, so it is "not found".
pub fn is_container_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_ids_are_hexadecimal() {
        let long = "a".repeat(64);
        for (name, text, want) in [
            ("short", "0af3", true),
            ("full", long.as_str(), true),
            ("empty", "", false),
            ("too long", &"a".repeat(65), false),
            ("upper case", "ABC", false),
            ("path", "../x", false),
            ("slash", "a/b", false),
            ("nul", "a\0", false),
        ] {
            assert_eq!(is_container_id(text), want, "{name}");
        }
    }
}
