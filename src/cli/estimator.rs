//! `grapevine estimator`: how far Grappa's gradients are from the full one, and what each weight
//! does about it.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Verdict;
use super::output::{print, print_json, tell};
use crate::Error;
use crate::experiment::{EstimatorStudy, can_be_made, estimate};
use crate::report;

/// Arguments of `estimator`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// File of the study
    file: PathBuf,
    /// Folder for estimator.csv, tables and figures [default: print only]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Change a value of the file; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let study = EstimatorStudy::read(&args.file, &args.sets).map_err(Error::from)?;
    if let Some(folder) = &args.out {
        can_be_made(folder)?;
    }
    let rows = estimate(&study, &mut |setting| {
        if !args.quiet {
            tell(&format!("{setting}\n"));
        }
    })?;
    if let Some(folder) = &args.out {
        for path in report::write_estimator(folder, &study, &rows)? {
            if !args.quiet {
                tell(&format!("wrote {}\n", path.display()));
            }
        }
    }
    if args.json {
        print_json(&rows)?;
    } else {
        print(&report::estimator_tables(&rows))?;
    }
    Ok(Verdict::Good)
}
