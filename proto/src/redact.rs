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
