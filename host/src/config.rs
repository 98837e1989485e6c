//! Configuration: a TOML file and flags.
