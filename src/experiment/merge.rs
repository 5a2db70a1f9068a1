//! Finished parts of an experiment, joined into the result folder that one machine would have left.

use std::collections::BTreeMap;
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::claims::judge;
use super::collected::{Collected, Place};
use super::config::Experiment;
use super::error::Error;
use super::manifest::{self, PART, seconds};
use super::part::Share;
use super::rows::{OfRun, RunKey, RunRow, distinct};
use super::tables::Tables;
use super::{TRACES, archive, folder, run, sentences};
use crate::atomic;

/// So many missing parts are named.
const MOST_NAMED: usize = 20;

/// One part, as its folder has it.
pub(crate) struct Part {
    folder: PathBuf,
    manifest: Value,
    tables: Tables,
    share: Share,
}

impl Part {
    /// The part in `folder`, by its manifest.
    ///
    /// # Errors
    /// It is no part, has not finished, or its tables are not those that were written.
    pub(crate) fn read(folder: &Path, manifest: Value) -> Result<Self, Error> {
        let unfit = |what: String| Error::part(folder, what);
        let share: Share = serde_json::from_value(manifest[PART].clone()).map_err(|_| {
            let what = "holds no part of an experiment; give the folders that `run --part` wrote";
            unfit(what.to_owned())
        })?;
        if manifest["finished"].is_null() {
            let what = format!(
                "part {share} has not finished; `run --part {share} --resume` goes on with it"
            );
            return Err(unfit(what));
        }
        let there = manifest::table_hashes(folder).map_err(|error| unfit(error.to_string()))?;
        if manifest["tables"] != json!(there) {
            let what = "its tables are not those that were written; run the part again";
            return Err(unfit(what.to_owned()));
        }
        let tables = Tables::read(folder).map_err(|error| unfit(error.to_string()))?;
        Ok(Self {
            folder: folder.to_owned(),
            manifest,
            tables,
            share,
        })
    }

    fn unfit(&self, what: String) -> Error {
        Error::part(&self.folder, what)
    }

    /// Whether it goes with the first part.
    fn goes_with(&self, first: &Self) -> Result<(), Error> {
        let beside = first.folder.display();
        let differs = |key: &str| self.manifest[key] != first.manifest[key];
        let what = if differs("name") {
            let name = |part: &Self| part.manifest["name"].as_str().unwrap_or("?").to_owned();
            let (own, other) = (name(self), name(first));
            format!("is of the experiment \"{own}\", and {beside} of \"{other}\"")
        } else if differs("config_hash") {
            format!(
                "was run with another experiment file, size or --set than {beside}; `grapevine compare` shows what differs"
            )
        } else if differs("program") {
            format!(
                "was run by another version of the program than {beside}; run all parts with one"
            )
        } else if differs("engine") {
            format!("was run on another engine than {beside}")
        } else if self.share.of != first.share.of {
            format!("is part {}, and {beside} is {}", self.share, first.share)
        } else {
            return Ok(());
        };
        Err(self.unfit(what))
    }

    /// The data sets of its manifest, by name and number of test nodes.
    fn test_sets(&self) -> impl Iterator<Item = (&str, usize)> {
        let sets = self.manifest["data_sets"].as_array().into_iter().flatten();
        sets.filter_map(|set| Some((set["name"].as_str()?, set["test"].as_u64()? as usize)))
    }

    /// What stands in its manifest for readers, but what is said again of all parts.
    fn notes(&self) -> impl Iterator<Item = String> {
        let mut again = sentences::of_results(&self.tables, false);
        again.push(run::waits(self.share));
        let notes = self.manifest["notes"].as_array().cloned();
        let notes = notes.unwrap_or_default().into_iter();
        notes
            .filter_map(|note| note.as_str().map(str::to_owned))
            .filter(move |note| !again.contains(note))
    }
}

/// Joins all parts of an experiment in `out`, judges its claims, and returns its tables. `drawn` is
/// what a report of an earlier run may have left there.
///
/// # Errors
/// A part is missing, there twice, or does not go with the others; the folder has results of
/// another experiment; or a file cannot be written.
pub(crate) fn merge(
    experiment: &Experiment,
    mut parts: Vec<Part>,
    (out, drawn): (&Path, &[PathBuf]),
    command: &[String],
) -> Result<Tables, Error> {
    complete(&parts)?;
    parts.sort_by_key(|part| part.share.number);
    let within = |part: &Part| same(&part.folder, out);
    if let Some(part) = parts.iter().find(|part| within(part)) {
        return Err(part.unfit(
            "is one of the parts, and cannot be the folder of all; give another with --out"
                .to_owned(),
        ));
    }
    // Before the tables are taken out of the parts: which notes are said again depends on them.
    let own: Vec<String> = parts.iter().flat_map(Part::notes).collect();
    let mut tables = joined(experiment, &mut parts)?;
    folder::free(out, &experiment.name)?;
    let _lock = folder::occupy(out)?;
    folder::make_way(out, drawn, false)?;
    tables.claims = judge(&experiment.claims, &tables.runs, &experiment.statistics);
    // The size is that of the parts: what their manifests hold is read as it stands.
    let smoke = own.iter().any(|note| note == run::OF_SMOKE);
    let sets = parts.iter().flat_map(Part::test_sets);
    let of_claims = sentences::on_claims(&experiment.claims, &tables.runs, sets);
    let own = own.into_iter().chain(differing(&parts));
    let own = own.chain(run::cautions(experiment, None));
    let all = own.chain(sentences::of_results(&tables, smoke));
    let notes = distinct(all.chain(of_claims));
    for part in &parts {
        for (of, kind) in [(archive::FOLDER, archive::EXTENSION), (TRACES, ".json")] {
            copy(&part.folder.join(of), &out.join(of), kind)?;
        }
    }
    tables.write(out)?;
    let manifest = described(&parts, &notes, command);
    manifest::write_merged(out, manifest).map_err(Error::folder(out))?;
    Ok(tables)
}

/// What has to be said of data that parts read under one name and that are not the same. A sweep
/// may be the reason, so that it is no error.
fn differing(parts: &[Part]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, (&Value, bool)> = BTreeMap::new();
    let sets = parts
        .iter()
        .map(|part| part.manifest["data_sets"].as_array());
    for set in sets.flatten().flatten() {
        let Some(name) = set["name"].as_str() else {
            continue;
        };
        let (first, differs) = by_name.entry(name).or_insert((set, false));
        *differs |= *first != set;
    }
    let differing = by_name.into_iter().filter(|(_, (_, differs))| *differs);
    let told = |(name, _): (&str, (&Value, bool))| {
        format!(
            "Parts read data of several sizes under the name {name}: see data_sets. Unless the experiment sweeps them, the machines had other files."
        )
    };
    differing.map(told).collect()
}

/// Whether every part is there once, and all are of one experiment.
fn complete(parts: &[Part]) -> Result<(), Error> {
    let Some((first, others)) = parts.split_first() else {
        return Ok(());
    };
    others.iter().try_for_each(|part| part.goes_with(first))?;
    let mut by_number: BTreeMap<usize, &Part> = BTreeMap::new();
    for part in parts {
        if let Some(other) = by_number.insert(part.share.number, part) {
            let what = format!("is part {}, as {} is", part.share, other.folder.display());
            return Err(part.unfit(what));
        }
    }
    let missing = first.share.of - by_number.len();
    if missing == 0 {
        return Ok(());
    }
    let numbers = (1..=first.share.of).filter(|number| !by_number.contains_key(number));
    let numbers = numbers.take(MOST_NAMED).map(|number| number.to_string());
    let mut named = numbers.collect::<Vec<_>>().join(", ");
    if missing > MOST_NAMED {
        named.push_str(" and others");
    }
    let (parts, are) = match missing {
        1 => ("part", "is"),
        _ => ("parts", "are"),
    };
    Err(first.unfit(format!(
        "is part {}, and {parts} {named} of {} {are} missing; give all folders",
        first.share, first.share.of,
    )))
}

/// The rows of all parts in the order of the experiment, which then are in the parts no more.
fn joined(experiment: &Experiment, parts: &mut [Part]) -> Result<Tables, Error> {
    let places: BTreeMap<&str, usize> = (experiment.cells().iter())
        .enumerate()
        .map(|(place, cell)| (cell.name.as_str(), place))
        .collect();
    let mut collected = Collected::default();
    let mut there: BTreeMap<Place, usize> = BTreeMap::new();
    for (number, part) in parts.iter_mut().enumerate() {
        for rows in by_run(std::mem::take(&mut part.tables)) {
            let run = &rows.runs[0];
            let seed = experiment.seeds.iter().position(|&seed| seed == run.seed);
            let place = places.get(run.cell.as_str()).copied().zip(seed);
            let told = format!("cell \"{}\" with seed {}", run.cell, run.seed);
            let place = place
                .ok_or_else(|| part.unfit(format!("has {told}, which the experiment has not")))?;
            if there.insert(place, number).is_some() {
                return Err(part.unfit(format!("has {told}, which another part has, too")));
            }
            collected.put(place, rows);
        }
    }
    // Data that are optional may be on one machine and not on another, and all runs are counted.
    let cells: Vec<usize> = there.keys().map(|(cell, _)| *cell).collect();
    for cell in cells {
        for (place, seed) in experiment.seeds.iter().enumerate() {
            if !there.contains_key(&(cell, place)) {
                let name = &experiment.cells()[cell].name;
                return Err(parts[0].unfit(format!(
                    "neither it nor another part has cell \"{name}\" with seed {seed}; were the same data on all machines?"
                )));
            }
        }
    }
    Ok(collected.into_tables())
}

/// The tables of a folder, run by run: their rows stand together.
fn by_run(tables: Tables) -> Vec<Tables> {
    let Tables {
        runs,
        epochs,
        traffic,
        timeline,
        decisions,
        claims: _,
    } = tables;
    let mut epochs = epochs.into_iter().peekable();
    let mut traffic = traffic.into_iter().peekable();
    let mut timeline = timeline.into_iter().peekable();
    let mut decisions = decisions.into_iter().peekable();
    let rows_of = |run: RunRow| {
        let key = run.key();
        Tables {
            epochs: next(&mut epochs, key),
            traffic: next(&mut traffic, key),
            timeline: next(&mut timeline, key),
            decisions: next(&mut decisions, key),
            runs: vec![run],
            ..Tables::default()
        }
    };
    runs.into_iter().map(rows_of).collect()
}

/// Rows up to the first that is of another run.
fn next<R: OfRun>(rows: &mut Peekable<impl Iterator<Item = R>>, of: RunKey<'_>) -> Vec<R> {
    std::iter::from_fn(|| rows.next_if(|row| row.key() == of)).collect()
}

/// The manifest of all parts together.
fn described(parts: &[Part], notes: &[String], command: &[String]) -> Value {
    let mut all = parts[0].manifest.clone();
    let values = |key: &'static str| parts.iter().map(move |part| &part.manifest[key]);
    let sum = |key| values(key).filter_map(Value::as_f64).sum::<f64>();
    let union = |key| json!(distinct(values(key).filter_map(Value::as_array).flatten()));
    let keys = [
        "command",
        "machine",
        "started",
        "finished",
        "elapsed_seconds",
    ];
    let of_part = |part: &Part| {
        let facts = keys
            .iter()
            .map(|key| ((*key).to_owned(), part.manifest[*key].clone()));
        let mut facts: serde_json::Map<String, Value> = facts.collect();
        facts.insert(PART.to_owned(), json!(part.share));
        Value::Object(facts)
    };
    all["parts"] = parts.iter().map(of_part).collect();
    all["command"] = json!(command);
    all["devices"] = union("devices");
    all["data_sets"] = union("data_sets");
    all["notes"] = json!(notes);
    // As text they are in the order of time.
    all["started"] = json!(values("started").filter_map(Value::as_str).min());
    for key in ["elapsed_seconds", "model_seconds"] {
        all[key] = json!(seconds(
            Duration::try_from_secs_f64(sum(key)).unwrap_or_default()
        ));
    }
    if let Some(all) = all.as_object_mut() {
        all.remove(PART);
    }
    all
}

/// Copies the files with this ending, where the folder is there.
fn copy(from: &Path, to: &Path, ending: &str) -> Result<(), Error> {
    let Ok(entries) = fs::read_dir(from) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry.map_err(Error::folder(to))?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        if name.to_string_lossy().ends_with(ending) {
            let copied =
                fs::read(&path).and_then(|bytes| atomic::write_bytes(&to.join(name), &bytes));
            copied.map_err(Error::folder(&to.join(name)))?;
        }
    }
    Ok(())
}

/// Whether both are one folder.
fn same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| fs::canonicalize(path).ok();
    place(one).is_some_and(|one| place(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_none_end_no_merge() {
        let taken = |time: f64| {
            let manifest = json!({ "elapsed_seconds": time, "model_seconds": 1.5 });
            let part = Part {
                folder: PathBuf::new(),
                manifest,
                tables: Tables::default(),
                share: Share { number: 1, of: 1 },
            };
            described(&[part], &[], &[])
        };
        assert_eq!(taken(2.0)["elapsed_seconds"], 2.0);
        for time in [-1.0, 1e300] {
            let manifest = taken(time);
            assert_eq!(manifest["elapsed_seconds"], 0.0);
            assert_eq!(manifest["model_seconds"], 1.5);
        }
    }
}
