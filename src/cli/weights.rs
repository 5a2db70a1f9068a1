//! `grapevine weights`: what runs start from, for other programs that are to start there too.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::output::print;
use super::{ExperimentArgs, Verdict, read_experiment};
use crate::experiment::{Preparation, base_of, can_be_made, write_weights};
use crate::strategies::Registry;

/// Arguments of `weights`.
#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Folder for the files <cell>-<seed>.npz
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Do not list the files
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let experiment = read_experiment(&args.experiment, registry)?;
    can_be_made(&args.out)?;
    let base = base_of(&args.experiment.file);
    let mut preparation = Preparation::new(registry, base);
    preparation.numbers = true;
    let files = write_weights(&experiment, &mut preparation, &args.out)?;
    for file in files.iter().filter(|_| !args.quiet) {
        print(&format!("{}\n", file.display()))?;
    }
    Ok(Verdict::Good)
}
