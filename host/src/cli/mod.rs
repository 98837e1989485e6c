//! The command line: parses it, runs one command, and turns its end into an exit code.
//!
//! Owns the commands, their flags and what they print. It must not hold any of the daemon's work: `serve` hands over to
//! `crate::run`. Exit codes are in [`exit`]; clap uses [`exit::USAGE`] for a command line that makes no sense, too.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::ConfigError;

mod doctor;
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
    /// Look at the engine, the plugins and the node, and say what is wrong and what to do
    Doctor(doctor::DoctorFlags),
    /// Print the configuration in force, as a config file
    Config(ConfigFlags),
}

/// The program: the only caller is `main`.
pub fn main() -> ExitCode {
    let code = match Cli::parse().command {
        Command::Serve(flags) => serve::serve(&flags),
        Command::Doctor(flags) => doctor::doctor(&flags),
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
    use crate::config::{Config, SETTINGS};

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    const PAGE: &str = include_str!("../../../docs/config.md");

    #[test]
    fn every_command_and_flag_is_on_the_page() {
        for command in Cli::command().get_subcommands() {
            let row = format!("| `springline {}` |", command.get_name());
            assert!(PAGE.contains(&row), "no row {row:?}");
            for argument in command.get_arguments() {
                let aliases = argument.get_all_aliases().unwrap_or_default();
                for flag in argument.get_long().into_iter().chain(aliases) {
                    let setting = crate::config::Setting::find(flag).is_some();
                    let named = PAGE.contains(&format!("`--{flag}`"));
                    assert!(setting || named, "--{flag} is not on the page");
                }
            }
        }
    }

    #[test]
    fn every_setting_is_on_the_page_with_its_default() {
        let defaults = Config::default().to_toml();
        assert_eq!(defaults.lines().count(), SETTINGS.len());
        for line in defaults.lines() {
            let (key, value) = line.split_once(" = ").unwrap();
            let bare = value.trim_matches('"');
            let shown = if bare.is_empty() { value } else { bare };
            let row = format!("| `{key}` | `{shown}` | ");
            assert!(PAGE.contains(&row), "no row {row:?}");
        }
        let rows = PAGE.lines().skip_while(|line| !line.starts_with("| Key"));
        let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
        assert_eq!(rows.count(), SETTINGS.len(), "a row for no setting");
    }

    #[test]
    fn the_example_on_the_page_is_right() {
        let example = PAGE.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), example).unwrap();
        Config::load(Some(file.path()), Vec::new()).unwrap();
    }

    #[test]
    fn the_exit_codes_on_the_page_are_ours() {
        for code in [exit::OK, exit::FAILED, exit::USAGE] {
            assert!(PAGE.contains(&format!("\n| {code} | ")), "{code}");
        }
    }
}
