//! `grapevine verify`: every invariant of a result folder.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args as ClapArgs;
use serde_json::json;

use super::Verdict;
use super::output::{BadFolder, print, print_json, tell};
use crate::experiment::claims::ClaimSpec;
use crate::experiment::verify::{verify, verify_csv, verify_timeline};
use crate::experiment::{Tables, read_manifest};

/// Arguments of `verify`.
#[derive(ClapArgs)]
pub struct Args {
    /// Result folder
    folder: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let folder = args.folder.display().to_string();
    let bad = |reason: String| BadFolder {
        folder: folder.clone(),
        reason,
    };
    let manifest =
        read_manifest(&args.folder).map_err(|error| bad(format!("manifest.json: {error}")))?;
    let tables = Tables::read(&args.folder).map_err(|error| bad(error.to_string()))?;
    let claims: Vec<ClaimSpec> = serde_json::from_value(manifest["claims"].clone())
        .context("manifest.json: claims cannot be read")?;
    let mut breaches = verify(
        &tables.runs,
        &tables.epochs,
        &tables.traffic,
        &tables.claims,
        &claims,
    );
    breaches.extend(verify_timeline(&tables.runs, &tables.timeline));
    breaches.extend(verify_csv(&args.folder, &tables));
    if args.json {
        let texts: Vec<String> = breaches.iter().map(ToString::to_string).collect();
        print_json(&json!({ "folder": folder, "breaches": texts }))?;
    } else if breaches.is_empty() {
        print(&format!(
            "{folder}: {} runs, {} epochs, {} traffic rows, {} claims: every invariant holds\n",
            tables.runs.len(),
            tables.epochs.len(),
            tables.traffic.len(),
            tables.claims.len()
        ));
    } else {
        for breach in &breaches {
            print(&format!("{breach}\n"));
        }
        tell(&format!("error: {folder}: {} breaches\n", breaches.len()));
    }
    Ok(if breaches.is_empty() {
        Verdict::Good
    } else {
        Verdict::Breached
    })
}
