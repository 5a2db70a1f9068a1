//! `grapevine completions`: completions for a shell, on standard output.

use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(ClapArgs)]
pub struct Args {
    /// Which shell
    shell: Shell,
}

pub(super) fn run(args: &Args) {
    let mut command = super::Cli::command();
    clap_complete::generate(
        args.shell,
        &mut command,
        "grapevine",
        &mut std::io::stdout(),
    );
}
