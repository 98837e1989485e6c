//! Which protocol a client and we speak: names, versions, what each can do.
//!
//! As everywhere in Kubernetes the first of the client's names that we know wins.

use super::status::Form;

/// Versions of the remote command protocol (exec, attach).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// No resize, plain errors.
    V1,
    /// The same, with streams awaited in order.
    V2,
    /// Resize.
    V3,
    /// The end as a `metav1.Status`.
    V4,
    /// The client can close a channel (WebSocket only).
    V5,
}

impl Version {
    /// How the end is told.
    pub fn form(self) -> Form {
        if self >= Self::V4 {
            Form::Status
        } else {
            Form::Words
        }
    }

    /// Whether a terminal's client opens a stream for its size.
    pub fn has_resize(self) -> bool {
        self >= Self::V3
    }
}

/// How channels are written into WebSocket messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    /// The channel as a byte, then the bytes.
    Binary,
    /// The channel as a digit, then the bytes in base64, as text.
    Base64,
}

/// Exec and attach over SPDY.
pub(super) const SPDY_COMMAND: &[(&str, Version)] = &[
    ("v4.channel.k8s.io", Version::V4),
    ("v3.channel.k8s.io", Version::V3),
    ("v2.channel.k8s.io", Version::V2),
    ("channel.k8s.io", Version::V1),
];

/// Exec and attach over WebSocket. The empty name: the client named none.
pub(super) const WEBSOCKET_COMMAND: &[(&str, (Version, Codec))] = &[
    ("v5.channel.k8s.io", (Version::V5, Codec::Binary)),
    ("v4.channel.k8s.io", (Version::V4, Codec::Binary)),
    ("v4.base64.channel.k8s.io", (Version::V4, Codec::Base64)),
    ("channel.k8s.io", (Version::V1, Codec::Binary)),
    ("base64.channel.k8s.io", (Version::V1, Codec::Base64)),
    ("", (Version::V1, Codec::Binary)),
];

/// Port-forward over SPDY.
pub(super) const SPDY_FORWARD: &[(&str, ())] = &[("portforward.k8s.io", ())];

/// How ports are forwarded over WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forward {
    /// SPDY in binary messages.
    Tunnel,
    /// Two channels for each port of the request.
    Channels(Codec),
}

/// Port-forward over WebSocket.
pub(super) const WEBSOCKET_FORWARD: &[(&str, Forward)] = &[
    ("SPDY/3.1+portforward.k8s.io", Forward::Tunnel),
    ("v4.channel.k8s.io", Forward::Channels(Codec::Binary)),
    ("v4.base64.channel.k8s.io", Forward::Channels(Codec::Base64)),
    ("", Forward::Channels(Codec::Binary)),
];

/// The first of the client's names that is known.
pub(super) fn choose<T: Copy>(
    offered: &[String],
    known: &[(&'static str, T)],
) -> Option<(&'static str, T)> {
    offered
        .iter()
        .find_map(|name| known.iter().find(|(known, _)| known == name).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_order_decides() {
        let offered = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let chosen = |names: &[&str]| choose(&offered(names), SPDY_COMMAND);
        assert_eq!(
            chosen(&[
                "v5.channel.k8s.io",
                "v3.channel.k8s.io",
                "v4.channel.k8s.io"
            ]),
            Some(("v3.channel.k8s.io", Version::V3))
        );
        assert_eq!(chosen(&["v9.channel.k8s.io"]), None);
        assert_eq!(chosen(&[]), None);
    }
}
