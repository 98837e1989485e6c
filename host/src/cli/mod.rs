//! The command line: parses it, runs one command, and turns its end into an exit code.
//!
//! Owns the commands, their flags and what they print. It must not hold any of the daemon's work: `serve` hands over to
//! [`crate::run`]. Exit codes are in [`exit`]; clap uses [`exit::USAGE`] for a command line that makes no sense, too.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::ConfigError;

mod flags;
mod serve;

pub use flags::ConfigFlags;

/// The exit codes of every command.
pub mod exit {
    /// Done.
    pub const OK: u8 = 0;
    /// It could not be done, or what was looked at is not in order.
    pub const FAILED: u8 = 1;
    /// The command line or the configuration is wrong; the same call cannot succeed.
    pub const USAGE: u8 = 2;
}

/// A Kubernetes CRI v1 endpoint for Docker Engine whose platform parts are WebAssembly plugins.
#[derive(Debug, Parser)]
#[command(name = "springline", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon
    Serve(ConfigFlags),
    /// Print the configuration in force, as a config file
    Config(ConfigFlags),
}

/// The program: the only caller is `main`.
pub fn main() -> ExitCode {
    let code = match Cli::parse().command {
        Command::Serve(flags) => serve::serve(&flags),
        Command::Config(flags) => match flags.load() {
            Ok(config) => print(&config.to_toml()),
            Err(error) => wrong_config(&error),
        },
    };
    ExitCode::from(code)
}

/// Writes to standard output. A reader that went away (`springline config | head -1`) is no failure.
fn print(text: &str) -> u8 {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => exit::OK,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OK,
        Err(error) => complain(exit::FAILED, &format!("cannot write: {error}")),
    }
}

fn wrong_config(error: &ConfigError) -> u8 {
    complain(exit::USAGE, &error.to_string())
}

/// Writes an error, one line each with our name before it. With standard error gone there is nobody to tell.
fn complain(code: u8, message: &str) -> u8 {
    let mut err = io::stderr().lock();
    for line in message.lines() {
        let _nobody_to_tell = writeln!(err, "springline: {line}");
    }
    code
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
