//! `grapevine report`: figures, tables and the page of a result folder, from its tables.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Verdict;
use super::output::{BadFolder, print, tell};
use crate::Error;
use crate::experiment::{Tables, read_manifest};

/// Arguments of `report`.
#[derive(ClapArgs)]
pub struct Args {
    /// Result folder
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let mut manifest = read_manifest(&args.folder).map_err(|error| BadFolder {
        folder: args.folder.display().to_string(),
        reason: format!("manifest.json: {error}"),
    })?;
    let mut tables = Tables::read(&args.folder).map_err(|error| BadFolder {
        folder: args.folder.display().to_string(),
        reason: error.to_string(),
    })?;
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
