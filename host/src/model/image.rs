//! Images as CRI tells of them, and the credentials to fetch one.

use std::collections::BTreeMap;
use std::fmt;

use super::ids::{ImageId, RepoDigest};

/// An image that the engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The one identity in all answers.
    pub id: ImageId,
    /// Tags, without `<none>`.
    pub repo_tags: Vec<String>,
    /// Digests, without `<none>`.
    pub repo_digests: Vec<RepoDigest>,
    /// Bytes on disk.
    pub size: u64,
    /// The image's `USER`, as it is written there (`uid`, `name`, `uid:gid`, …).
    pub user: String,
    /// The image's own labels.
    pub labels: BTreeMap<String, String>,
    /// Never to be collected by the kubelet.
    pub pinned: bool,
}

impl Image {
    /// The user as CRI splits it: a number, else a name; group parts are left out. Both unset = root.
    pub fn user_parts(&self) -> (Option<i64>, String) {
        let user = self.user.split(':').next().unwrap_or_default();
        match user.parse::<i64>() {
            Ok(uid) => (Some(uid), String::new()),
            Err(_) => (None, user.to_owned()),
        }
    }

    /// CRI `image_ref`: a repo digest where there is one, else the ID.
    pub fn reference(&self) -> String {
        self.repo_digests
            .first()
            .map_or_else(|| self.id.to_string(), ToString::to_string)
    }
}

/// Credentials for a registry (CRI `AuthConfig`). Never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RegistryAuth {
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
    /// Registry the credentials are for; empty = the image's.
    pub server_address: String,
    /// OAuth identity token.
    pub identity_token: String,
    /// Bearer token for the registry.
    pub registry_token: String,
}

impl fmt::Debug for RegistryAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegistryAuth(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(user: &str) -> Image {
        Image {
            id: ImageId::new("sha256:1"),
            repo_tags: vec![],
            repo_digests: vec![],
            size: 0,
            user: user.into(),
            labels: BTreeMap::new(),
            pinned: false,
        }
    }

    #[test]
    fn users_are_numbers_or_names() {
        for (user, want) in [
            ("", (None, "")),
            ("1002", (Some(1002), "")),
            ("www-data:100", (None, "www-data")),
            ("1003:users", (Some(1003), "")),
        ] {
            let (uid, name) = image(user).user_parts();
            assert_eq!((uid, name.as_str()), want, "{user}");
        }
    }

    #[test]
    fn credentials_are_not_printed() {
        let auth = RegistryAuth {
            password: "secret".into(),
            ..RegistryAuth::default()
        };
        assert!(!format!("{auth:?}").contains("secret"));
    }
}
