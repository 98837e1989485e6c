//! `Debug` for the messages that carry secrets.
//!
//! Owns what a log line may show of them: that a field is set, never what is in it. Messages that contain
//! these print through here too, so `{:?}` of a whole pull or create request is safe.
//! It cannot fail.

use std::fmt;

use crate::runtime::v1::{AuthConfig, KeyValue};

/// Stands in for a secret: tells empty from set, and no more.
struct Secret(bool);

impl Secret {
    fn of(value: &[u8]) -> Self {
        Self(!value.is_empty())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "<redacted>" } else { "<empty>" })
    }
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            username,
            password,
            auth,
            server_address,
            identity_token,
            registry_token,
        } = self;
        f.debug_struct("AuthConfig")
            // With some registries the user name is part of the credential.
            .field("username", &Secret::of(username.as_bytes()))
            .field("password", &Secret::of(password.as_bytes()))
            .field("auth", &Secret::of(auth.as_bytes()))
            .field("server_address", server_address)
            .field("identity_token", &Secret::of(identity_token.as_bytes()))
            .field("registry_token", &Secret::of(registry_token.as_bytes()))
            .finish()
    }
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value } = self;
        f.debug_struct("KeyValue")
            .field("key", key)
            .field("value", &Secret::of(value))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::runtime::v1::{
        AuthConfig, ContainerConfig, CreateContainerRequest, KeyValue, PullImageRequest,
    };

    #[test]
    fn credentials_do_not_show_however_deep_they_are() {
        let request = PullImageRequest {
            auth: Some(AuthConfig {
                username: "secret-1".into(),
                password: "secret-2".into(),
                auth: "secret-3".into(),
                server_address: "registry.test".into(),
                identity_token: "secret-4".into(),
                registry_token: String::new(),
            }),
            ..PullImageRequest::default()
        };
        for shown in [format!("{request:?}"), format!("{request:#?}")] {
            assert!(!shown.contains("secret"), "{shown}");
            assert!(shown.contains("registry.test"), "{shown}");
            assert!(shown.contains("registry_token: <empty>"), "{shown}");
        }
    }

    #[test]
    fn of_an_environment_variable_only_the_name_shows() {
        let request = CreateContainerRequest {
            config: Some(ContainerConfig {
                envs: vec![KeyValue {
                    key: "TOKEN".into(),
                    value: b"s".to_vec(),
                }],
                ..ContainerConfig::default()
            }),
            ..CreateContainerRequest::default()
        };
        let shown = format!("{request:?}");
        assert!(
            shown.contains(r#"KeyValue { key: "TOKEN", value: <redacted> }"#),
            "{shown}"
        );
    }
}
