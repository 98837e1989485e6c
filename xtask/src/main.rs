//! The project's chores, run as `cargo xtask <chore>`.
//!
//! Owns the command line and the map from chore to module. Each chore says
//! what it does while it does it and how long it took; a failure is one text
//! that says what to do, and exit code 1. Nothing here is part of the daemon.
//!
//! Reading order: [`process`] and [`paths`], [`lab`] (real engines and test
//! images, in network namespaces of their own), [`conformance`] (the public
//! CRI suite), [`check`], [`mod@test`], [`demo`].

#![allow(
    clippy::print_stdout,
    reason = "these chores talk to the person at the terminal"
)]

mod build;
mod check;
mod conformance;
mod daemon;
mod demo;
mod failure;
mod lab;
mod paths;
mod plugins;
mod process;
mod server;
mod test;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{failure::Outcome, lab::LabCommand, lab::engines::Version};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Springline's chores: build, demo, test, check, lab, conformance"
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build the daemon with the shipped plugins inside it.
    Build {
        /// Unoptimised: quicker to build, slower to run.
        #[arg(long)]
        debug: bool,
    },
    /// See it work: a pod on Docker Engine whose seccomp profile a plugin applies.
    Demo(demo::Options),
    /// Everything that CI runs: checks, tests, real engines, the public CRI suite.
    Test(test::Options),
    /// What needs no engine: formatting, lints, docs, unit tests, licences.
    Check,
    /// Real Docker Engines of several ages and a registry with test images.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Run the public CRI validation suite against the daemon on one engine.
    Conformance(conformance::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nxtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Outcome {
    match chore {
        Chore::Build { debug } => build::build(debug).map(|_| ()),
        Chore::Demo(options) => demo::demo(&options),
        Chore::Test(options) => test::test(&options),
        Chore::Check => check::check(),
        Chore::Lab(command) => lab::lab(command),
        Chore::Conformance(options) => conformance::conformance(&options),
    }
}

/// The engines that CI covers: the oldest and the newest of the lab.
const CI_ENGINES: [Version; 2] = [Version::V28, Version::V20];
