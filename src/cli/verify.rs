//! `grapevine verify`: every invariant of a result folder.

use std::fmt::Display;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::compare::failures;
use super::output::{BadFolder, print, print_json, tell};
use super::{Verdict, with_vocabulary};
use crate::Error;
use crate::experiment::compare::failed;
use crate::experiment::config::PAPER;
use crate::experiment::verify::{Breach, verify, verify_manifest, verify_plan, verify_timeline};
use crate::experiment::{Experiment, PART, Preparation, Tables, judged_by};
use crate::report::format::counted;
use crate::strategies::Registry;

/// Arguments of `verify`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// Result folder
    folder: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let folder = args.folder.display().to_string();
    let bad = |reason: &dyn Display| BadFolder::of(&args.folder, reason);
    let manifest = BadFolder::or_manifest(&args.folder)?;
    let tables = Tables::read(&args.folder).map_err(|error| bad(&error))?;
    let (claims, statistics) =
        judged_by(&manifest).map_err(|reason| bad(&format!("manifest.json: {reason}")))?;
    let part = !manifest[PART].is_null();
    // A part has not all runs either, and no verdicts.
    let finished = !manifest["finished"].is_null() && !part;
    let mut breaches = verify_manifest(&args.folder, &manifest, &tables);
    breaches.extend(verify(
        &tables.runs,
        &tables.epochs,
        &tables.traffic,
        &tables.claims,
        finished.then_some((&claims[..], &statistics)),
    ));
    breaches.extend(verify_timeline(&tables.runs, &tables.timeline));
    let mut notes = match resolved(&manifest, registry) {
        Ok(experiment) => {
            let base = PathBuf::from(manifest["base"].as_str().unwrap_or_default());
            let mut preparation = Preparation::new(registry, base);
            preparation.numbers = true;
            let (more, notes) = verify_plan(&experiment, &mut preparation, &tables, finished);
            breaches.extend(more);
            notes
        }
        Err(error) => vec![format!("not checked against the plan: {error}")],
    };
    let failed = failed(&tables.runs);
    if !failed.is_empty() {
        notes.insert(0, failures(&failed, &folder));
    }
    if part {
        let note = "one part of the runs alone; `grapevine merge` joins all, and judges the claims";
        notes.insert(0, note.to_owned());
    } else if !finished {
        notes.insert(
            0,
            "the experiment did not finish; `run --resume` goes on with it".to_owned(),
        );
    }
    if args.json {
        let texts: Vec<String> = breaches.iter().map(ToString::to_string).collect();
        print_json(&json!({ "folder": folder, "breaches": texts, "notes": notes }))?;
        return Ok(verdict(&breaches));
    }
    for note in &notes {
        tell(&format!("note: {note}\n"));
    }
    if breaches.is_empty() {
        print(&format!(
            "{folder}: {}, {}, {}, {}: every invariant {}holds\n",
            counted(tables.runs.len() as u64, "run"),
            counted(tables.epochs.len() as u64, "epoch"),
            counted(tables.traffic.len() as u64, "traffic row"),
            counted(tables.claims.len() as u64, "claim"),
            if notes.is_empty() {
                ""
            } else {
                "that could be checked "
            }
        ))?;
    } else {
        for breach in &breaches {
            print(&format!("{breach}\n"))?;
        }
        let count = match breaches.len() {
            1 => "1 breach".to_owned(),
            count => format!("{count} breaches"),
        };
        tell(&format!("error: {folder}: {count}\n"));
    }
    Ok(verdict(&breaches))
}

fn verdict(breaches: &[Breach]) -> Verdict {
    if breaches.is_empty() {
        Verdict::Good
    } else {
        Verdict::Breached
    }
}

/// The experiment whose results these are.
pub(super) fn resolved(manifest: &Value, registry: &Registry) -> Result<Experiment, Error> {
    let text = manifest["config_toml"].as_str().unwrap_or_default();
    let name = "the configuration in manifest.json";
    with_vocabulary(registry, |vocabulary| {
        // Its size and all --set are in the configuration already.
        Experiment::parse(text, name, PAPER, &[], vocabulary)
    })
}
