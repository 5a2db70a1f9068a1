//! `grapevine report`: figures, tables and the page of a result folder, from its tables.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::output::{BadArgument, BadFolder, print, tell};
use super::{ExperimentArgs, Verdict, read_experiment};
use crate::Error;
use crate::experiment::{Tables, ask_again};
use crate::strategies::Registry;

/// Arguments of `report`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// Result folder
    folder: PathBuf,
    /// Judge its runs by the claims of this experiment file, instead of those it was run with; of a
    /// folder that kept runs.csv alone, the claims are all that is written
    #[arg(long, value_name = "FILE")]
    claims: Option<PathBuf>,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let folder = &args.folder;
    let mut manifest = BadFolder::or_manifest(folder)?;
    if let Some(file) = &args.claims {
        let experiment = read_experiment(&ExperimentArgs::of(file), registry)?;
        ask_again(&experiment, &mut manifest).map_err(|what| BadArgument {
            flag: "--claims",
            what,
        })?;
    }
    let broken = |error| BadFolder::of(folder, error);
    let kept = args.claims.is_some() && Tables::has_runs_alone(folder);
    let mut tables = if kept {
        let runs = Tables::read_runs(folder).map_err(broken)?;
        Tables {
            runs,
            ..Tables::default()
        }
    } else {
        Tables::read(folder).map_err(broken)?
    };
    tables
        .judge_again(folder, &mut manifest)
        .map_err(Error::from)?;
    let written = if kept {
        crate::report::claims_alone(folder, &tables, &manifest)?
    } else {
        crate::report::build(folder, &tables, &manifest)?
    };
    for path in written.files {
        print(&format!("{}\n", path.display()))?;
    }
    for note in written.notes {
        tell(&format!("note: {note}\n"));
    }
    Ok(Verdict::Good)
}
