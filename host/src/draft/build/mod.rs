//! The host's own translation.
