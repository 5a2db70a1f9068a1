//! `grapevine completions`: completions for a shell, on standard output.

use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

use super::output::print;

/// Arguments of `completions`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// Which shell
    shell: Shell,
}

/// # Errors
/// If they cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let mut command = super::Cli::command();
    // Into memory first: the generator panics when what it writes to is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "grapevine", &mut script);
    Ok(print(&String::from_utf8_lossy(&script))?)
}
