//! The program: parse, dispatch, exit code.

use std::process::ExitCode;

use grapevine::sim::CacheLines;
use grapevine::strategies::Registry;

#[global_allocator]
static ALLOCATOR: CacheLines = CacheLines;

fn main() -> ExitCode {
    grapevine::cli::run_with(&Registry::builtin())
}
