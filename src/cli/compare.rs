//! `grapevine compare`: what changed between result folders.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::Verdict as Ending;
use super::output::{BadFolder, columns, print, print_json};
use crate::experiment::Tables;
use crate::experiment::compare::{Change, Comparison, Judged, Verdict, compare, judged};
use crate::experiment::differences::differences;
use crate::experiment::rows::{ClaimRow, ClaimVerdict, RunRow};
use crate::report::format::counted;

/// Measures of the machine and not of what was trained.
const OF_THE_MACHINE: [&str; 2] = ["measured_seconds", "peak_memory_bytes"];

/// Arguments of `compare`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// Result folders; the others are compared with the first
    #[arg(required = true, num_args = 2.., value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Show what is equal, too
    #[arg(long)]
    all: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// A result folder, as far as it is compared.
struct Folder {
    name: String,
    manifest: Value,
    runs: Vec<RunRow>,
    claims: Vec<ClaimRow>,
}

impl Folder {
    fn read(path: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            name: path.display().to_string(),
            manifest: BadFolder::or_manifest(path)?,
            // Nothing else is read, so that reference results, which keep no Parquet files, can be
            // compared.
            runs: Tables::read_runs(path).map_err(|error| BadFolder::of(path, error))?,
            claims: Tables::read_claims(path).map_err(|error| BadFolder::of(path, error))?,
        })
    }

    /// What may explain a difference and stands in the manifest, by name.
    fn circumstances(&self) -> [(&'static str, String); 5] {
        let text = |value: &Value| match value {
            Value::Null => "–".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let of = |key: &str| text(&self.manifest[key]);
        [
            ("experiment", of("name")),
            ("version", of("version")),
            ("program", of("program")),
            ("processor", text(&self.manifest["machine"]["cpu"])),
            ("devices", of("devices")),
        ]
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Ending> {
    let folders: Vec<Folder> = args
        .folders
        .iter()
        .map(|path| Folder::read(path))
        .collect::<anyhow::Result<_>>()?;
    let (first, others) = folders.split_at(1);
    let first = &first[0];
    let compared = others.iter().map(|other| {
        let verdicts = judged(&first.claims, &other.claims);
        (other, compare(&first.runs, &other.runs), verdicts)
    });
    if args.json {
        let comparisons = compared.map(|(other, comparison, verdicts)| {
            json!({ "first": first.name, "other": other.name, "comparison": comparison, "verdicts": verdicts })
        });
        print_json(&comparisons.collect::<Vec<_>>())?;
    } else {
        for (other, comparison, verdicts) in compared {
            print(&text(first, other, &comparison, &verdicts, args.all))?;
        }
    }
    Ok(Ending::Good)
}

/// `failed in old: 3 runs of full, 1 run of varco`.
pub(super) fn failures(cells: &[(String, usize)], folder: &str) -> String {
    let of = |(cell, runs): &(String, usize)| format!("{} of {cell}", counted(*runs as u64, "run"));
    let cells: Vec<String> = cells.iter().map(of).collect();
    format!("failed in {folder}: {}", cells.join(", "))
}

/// How many values are equal, and whether all that are not are the machine's.
fn equality(comparison: &Comparison) -> String {
    let changes = &comparison.changes;
    let changed = changes
        .iter()
        .filter(|change| change.verdict != Verdict::Equal);
    let (values, unequal) = (changes.len(), changed.clone().count());
    let of_the_machine = |change: &Change| OF_THE_MACHINE.contains(&change.measure);
    let only = if unequal > 0 && changed.clone().all(of_the_machine) {
        ": all results; the others are time and memory of the machine"
    } else {
        ""
    };
    let equal = values - unequal;
    format!("{equal} of {values} values are equal in every run{only}\n")
}

/// What a claim came to in both folders.
fn verdict(judged: &Judged) -> String {
    let of = |verdict: ClaimVerdict, measured: Option<f64>| {
        let value = measured.map_or_else(String::new, |value| format!(" ({})", number(value)));
        format!("{}{value}", verdict.name())
    };
    let [first, other] = judged.measured;
    format!(
        "another verdict on the claim {}: {} → {}\n",
        judged.id,
        of(judged.first, first),
        of(judged.other, other)
    )
}

fn text(
    first: &Folder,
    other: &Folder,
    comparison: &Comparison,
    verdicts: &[Judged],
    all: bool,
) -> String {
    let mut text = format!("{} against {}\n", other.name, first.name);
    text.push_str(&equality(comparison));
    text.extend(verdicts.iter().map(verdict));
    let pairs = first.circumstances().into_iter().zip(other.circumstances());
    for ((name, before), (_, after)) in pairs.filter(|(before, after)| before != after) {
        text.push_str(&format!("another {name}: {before} → {after}\n"));
    }
    for [key, before, after] in differences(&first.manifest, &other.manifest) {
        text.push_str(&format!("another {key}: {before} → {after}\n"));
    }
    for (cells, folder) in [
        (&comparison.first_only, first),
        (&comparison.other_only, other),
    ] {
        if !cells.is_empty() {
            text.push_str(&format!("only in {}: {}\n", folder.name, cells.join(", ")));
        }
    }
    for (cells, folder) in [
        (&comparison.first_failed, first),
        (&comparison.other_failed, other),
    ] {
        if !cells.is_empty() {
            text.push_str(&format!("{}\n", failures(cells, &folder.name)));
        }
    }
    if comparison.unpaired > 0 {
        text.push_str(&format!(
            "finished runs left out, because the other folder lacks their seeds: {}\n",
            comparison.unpaired
        ));
    }
    for (cell, measure, pairs) in &comparison.one_sided {
        text.push_str(&format!(
            "in one folder alone: {measure} of {cell}, in {} of runs\n",
            counted(*pairs as u64, "pair")
        ));
    }
    let shown = |change: &&Change| all || change.verdict != Verdict::Equal;
    let mut rows: Vec<&Change> = comparison.changes.iter().filter(shown).collect();
    // What the machine took says least of what changed.
    rows.sort_by_key(|change| OF_THE_MACHINE.contains(&change.measure));
    let rows: Vec<Vec<String>> = rows.into_iter().map(row).collect();
    if !rows.is_empty() {
        let header = [
            "cell",
            "measure",
            "seeds",
            "first",
            "other",
            "difference",
            "95 % interval",
            "",
        ];
        text.push_str(&columns(&header, &rows));
    }
    text
}

fn row(change: &Change) -> Vec<String> {
    let interval = change.interval.map_or("–".to_owned(), |(low, high)| {
        format!("[{}, {}]", number(low), number(high))
    });
    vec![
        change.cell.clone(),
        change.measure.to_owned(),
        change.pairs.to_string(),
        number(change.first),
        number(change.other),
        number(change.difference),
        interval,
        change.verdict.name().to_owned(),
    ]
}

/// Whole numbers in full, others to six digits.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    // Zero, which has no logarithm, is whole and came out above.
    let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    format!("{value:.digits$}")
}
