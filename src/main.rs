//! The program: parse, dispatch, exit code.

use std::process::ExitCode;

use grapevine::strategies::Registry;

fn main() -> ExitCode {
    grapevine::cli::run_with(&Registry::builtin())
}
