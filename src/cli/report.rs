//! `grapevine report`: figures, tables and the page of a result folder, from its tables.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::output::{BadArgument, BadFolder, print, tell};
use super::run::claim_line;
use super::verify::resolved;
use super::{ExperimentArgs, Verdict, read_experiment};
use crate::Error;
use crate::experiment::config::PAPER;
use crate::experiment::{Tables, TablesError, ask_again, in_settings};
use crate::strategies::Registry;

/// Arguments of `report`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// Result folder
    folder: PathBuf,
    /// Judge its runs by the claims of this experiment file, instead of those it was run with; of a
    /// folder that kept runs.csv alone, the tables that follow from it are written (claims, summary
    /// and targets), and figures that do and are there are drawn anew
    #[arg(long, value_name = "FILE")]
    claims: Option<PathBuf>,
    /// The size of the file in which its runs were made
    #[arg(long, value_name = "SIZE", default_value = PAPER, requires = "claims")]
    scale: String,
    /// What was changed in the file when they were made; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "claims")]
    sets: Vec<String>,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let folder = &args.folder;
    let mut manifest = BadFolder::or_manifest(folder)?;
    let asked = args.claims.as_ref().map(|file| ExperimentArgs {
        file: file.clone(),
        scale: args.scale.clone(),
        sets: args.sets.clone(),
    });
    let asked = asked
        .map(|file| read_experiment(&file, registry))
        .transpose()?;
    let mut after = None;
    if let Some(experiment) = &asked {
        let ran = resolved(&manifest, registry).ok();
        after = ask_again(experiment, ran.as_ref(), &mut manifest).map_err(|what| BadArgument {
            flag: "--claims",
            what,
        })?;
    }
    let broken = |error| BadFolder::of(folder, error);
    let kept = asked.filter(|_| Tables::has_runs_alone(folder));
    let mut tables = match &kept {
        Some(experiment) => Tables {
            runs: in_settings(experiment, Tables::read_runs(folder).map_err(broken)?),
            ..Tables::default()
        },
        None => Tables::read(folder).map_err(broken)?,
    };
    tables
        .judge_again(folder, &mut manifest)
        .map_err(|error| match error {
            TablesError::Manifest(_) => anyhow::Error::from(broken(error)),
            other => Error::from(other).into(),
        })?;
    let written = if kept.is_some() {
        crate::report::build_tables_of_runs(folder, &tables, &manifest)?
    } else {
        crate::report::build(folder, &tables, &manifest)?
    };
    if args.claims.is_some() {
        let claims: String = tables.claims.iter().map(claim_line).collect();
        print(&claims)?;
    }
    for path in written.files {
        print(&format!("{}\n", path.display()))?;
    }
    for note in after.map(str::to_owned).into_iter().chain(written.notes) {
        tell(&format!("note: {note}\n"));
    }
    Ok(Verdict::Good)
}
