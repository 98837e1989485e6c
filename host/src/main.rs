//! The program `springline`: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    springline::cli::main()
}
