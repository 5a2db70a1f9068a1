//! `grapevine merge`: parts of an experiment that several machines have run, in one result folder.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Verdict;
use super::output::{BadFolder, print, tell};
use super::run::claim_line;
use super::verify::resolved;
use crate::experiment::{Part, default_out, merge, read_manifest};
use crate::report::{self, format::counted};
use crate::strategies::Registry;

/// Arguments of `merge`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// Result folders of all parts, as `run --part` wrote them
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Folder for all of it [default: results/<name of the experiment>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let mut parts = Vec::new();
    let mut first = None;
    for folder in &args.folders {
        let manifest = BadFolder::or_manifest(folder)?;
        first.get_or_insert_with(|| (folder, manifest.clone()));
        parts.push(Part::read(folder, manifest)?);
    }
    let Some((folder, manifest)) = first else {
        return Ok(Verdict::Good);
    };
    let experiment = resolved(&manifest, registry).map_err(|error| BadFolder::of(folder, error))?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| default_out(&experiment, None));
    let command: Vec<String> = std::env::args().collect();
    let drawn = report::files(&out);
    let tables = merge(&experiment, parts, (&out, &drawn), &command)?;
    let manifest = read_manifest(&out).map_err(|error| BadFolder::of(&out, error))?;
    let written = report::build(&out, &tables, &manifest)?;
    for note in written.notes {
        tell(&format!("note: {note}\n"));
    }
    let claims: String = tables.claims.iter().map(claim_line).collect();
    print(&format!(
        "{claims}{} of {}\n{}\n",
        counted(tables.runs.len() as u64, "run"),
        counted(args.folders.len() as u64, "part"),
        out.join("report.html").display()
    ))?;
    Ok(Verdict::Good)
}
