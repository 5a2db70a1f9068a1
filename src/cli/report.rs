//! `grapevine report`: figures, tables and the page of a result folder, from its tables.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Verdict;
use super::output::{BadFolder, print, tell};
use crate::Error;
use crate::experiment::Tables;

/// Arguments of `report`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// Result folder
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let mut manifest = BadFolder::or_manifest(&args.folder)?;
    let mut tables =
        Tables::read(&args.folder).map_err(|error| BadFolder::of(&args.folder, error))?;
    tables
        .judge_again(&args.folder, &mut manifest)
        .map_err(Error::from)?;
    let written = crate::report::build(&args.folder, &tables, &manifest)?;
    for path in written.files {
        print(&format!("{}\n", path.display()))?;
    }
    for note in written.notes {
        tell(&format!("note: {note}\n"));
    }
    Ok(Verdict::Good)
}
