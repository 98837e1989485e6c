//! Log lines of the daemon itself.
