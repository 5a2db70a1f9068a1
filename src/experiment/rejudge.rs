//! The verdicts of a result folder anew, by the statistics that its manifest names.

use std::path::Path;

use serde_json::{Value, json};

use super::claims::{Named, goal, judge};
use super::config::{Cell, Experiment, used};
use super::differences::differences;
use super::manifest::{ASKED_AGAIN, MANIFEST, PART, judged_by, table_hashes, write_manifest};
use super::rows::{ClaimRow, ClaimVerdict, Row, RunRow, distinct};
use super::tables::{Tables, TablesError};

/// Puts the claims of an experiment file, and how it judges them, into the manifest of a folder
/// with its runs. `ran` is the experiment as it was run, if the manifest's configuration is read by
/// this version.
///
/// Returns what is to be said of verdicts of claims that were asked or changed after the runs.
///
/// # Errors
/// A sentence, if the folder is of another experiment, or claims are about cells that it does not
/// have, or has with other settings or targets.
pub(crate) fn ask_again(
    experiment: &Experiment,
    ran: Option<&Experiment>,
    manifest: &mut Value,
) -> Result<Option<&'static str>, String> {
    let (asked, run) = (&experiment.name, manifest["name"].as_str().unwrap_or("?"));
    if asked != run {
        return Err(format!(
            "is of the experiment \"{asked}\", and the folder of \"{run}\"; give the file that it was run from"
        ));
    }
    let other = ran.and_then(|ran| of_other_cells(experiment, ran));
    if let Some(what) = other.or_else(|| changed_goal(experiment, ran)) {
        return Err(what);
    }
    let after = "claims, or how they are judged, were written or changed after these runs had been seen: of such a verdict, take the p-value twice";
    let mut notes = manifest["notes"].as_array().cloned().unwrap_or_default();
    // With what a claim is corrected follows from its source, or its family.
    let asked = |claims: &Value, statistics: &Value| -> (Vec<[Value; 4]>, Value) {
        let claims = claims.as_array().into_iter().flatten();
        let claims = claims
            .map(|claim| ["measure", "compare", "source", "family"].map(|key| claim[key].clone()));
        (claims.collect(), statistics.clone())
    };
    let before = asked(&manifest["claims"], &manifest["statistics"]);
    let now = asked(&json!(experiment.claims), &json!(experiment.statistics));
    // Only if another question is asked, or answered by another rule, and once.
    if before != now && !notes.contains(&json!(after)) {
        notes.push(json!(after));
        manifest["notes"] = json!(notes);
    }
    manifest[ASKED_AGAIN] = json!(true);
    manifest["claims"] = json!(experiment.claims);
    manifest["statistics"] = json!(experiment.statistics);
    Ok(notes.contains(&json!(after)).then_some(after))
}

/// What is amiss, if a claim is about strategies of which nothing was run, or about a cell that was
/// run with other settings, for all that it is called the same.
fn of_other_cells(experiment: &Experiment, ran: &Experiment) -> Option<String> {
    fn named(cells: &[Cell]) -> impl Iterator<Item = Named<'_>> + Clone {
        cells.iter().map(Cell::named)
    }
    experiment.claims.iter().find_map(|claim| {
        let (id, compare) = (&claim.id, &claim.compare);
        if compare.settings(named(ran.cells())).is_empty() {
            let labels = distinct(named(ran.cells()).map(|cell| cell.label));
            let to = (compare.baseline()).map_or(String::new(), |to| format!(" and `{to}`"));
            return Some(format!(
                "has a claim `{id}` about `{}`{to}, of which there are no runs; there are some of `{}`",
                compare.strategy(),
                labels.join("`, `")
            ));
        }
        let about = compare.cells(named(experiment.cells()));
        let asked = experiment.cells().iter();
        asked.filter(|cell| about.contains(&*cell.name)).find_map(|cell| {
            let before = ran.cells().iter().find(|other| other.name == cell.name)?;
            let changes = differences(&of_result(before), &of_result(cell));
            let [key, then, now] = changes.into_iter().next()?;
            Some(format!(
                "has a claim `{id}` about the cell \"{}\" with {key} = {now}, and its runs had {then}; ask \
                 with the file that they were run from, and with its --set, or train again",
                cell.name
            ))
        })
    })
}

/// What results of a cell depend on, as a manifest has it.
fn of_result(cell: &Cell) -> Value {
    let mut settings = json!(used(cell));
    // Of goals only those matter that claims need, and checkpoints change nothing.
    for key in [
        "target_accuracy",
        "byte_budget",
        "time_budget",
        "checkpoint_every",
    ] {
        settings["training"][key] = Value::Null;
    }
    settings["strategy"] = json!(cell.strategy.options);
    settings["strategy"]["kind"] = json!(cell.strategy.kind);
    json!({ "config": settings })
}

/// What is amiss, if a claim is about a target or budget that the runs did not have, or none that
/// is known: what they took to it was counted while they trained.
fn changed_goal(experiment: &Experiment, ran: Option<&Experiment>) -> Option<String> {
    let before = |cell: &Cell| {
        let same = |other: &&Cell| other.name == cell.name;
        ran?.cells().iter().find(same)
    };
    let asked = experiment.claims.iter().flat_map(|claim| {
        let cells = experiment.cells().iter().map(move |cell| (claim, cell));
        cells.filter(|(_, cell)| ran.is_none() || before(cell).is_some())
    });
    asked.into_iter().find_map(|(claim, cell)| {
        let of = |cell: &Cell| goal(&claim.measure, &cell.settings.training);
        let (key, now) = of(cell)?;
        let then = before(cell).and_then(of).map_or(Value::Null, |(_, then)| then);
        (now != then).then(|| {
            format!(
                "has a claim `{}` about {} with training.{key} = {now}, and the runs of cell \"{}\" had {then}; what they \
                 took to it was counted while they trained: ask with theirs, or train again",
                claim.id, claim.measure, cell.name
            )
        })
    })
}

/// Runs with the sweep's values of their cells, which tables of older versions do not have.
pub(crate) fn in_settings(experiment: &Experiment, mut runs: Vec<RunRow>) -> Vec<RunRow> {
    for run in runs.iter_mut().filter(|run| run.sweep.is_empty()) {
        let cell = experiment.cells().iter().find(|cell| cell.name == run.cell);
        if let Some(cell) = cell {
            run.sweep = cell.sweep.clone();
        }
    }
    runs
}

impl Tables {
    /// Judges an experiment's claims again, and writes their table and its hashes in the manifest.
    /// What did not finish decides nothing.
    ///
    /// # Errors
    /// The manifest's claims or statistics make no sense, or a file cannot be written.
    pub(crate) fn judge_again(
        &mut self,
        folder: &Path,
        manifest: &mut Value,
    ) -> Result<(), TablesError> {
        let (claims, statistics) = judged_by(manifest).map_err(TablesError::Manifest)?;
        self.claims = judge(&claims, &self.runs, &statistics);
        if manifest["finished"].is_null() || !manifest[PART].is_null() {
            for claim in &mut self.claims {
                claim.verdict = ClaimVerdict::Inconclusive;
            }
        }
        self.write_claims(folder)?;
        let failed = || TablesError::file("write", &folder.join(MANIFEST));
        // Those of the other tables stay as they were written.
        let hashes = table_hashes(folder).map_err(failed())?;
        if !manifest["tables"].is_object() {
            manifest["tables"] = json!({});
        }
        for extension in ["parquet", "csv"] {
            let file = format!("{}.{extension}", ClaimRow::TABLE);
            manifest["tables"][&file] = json!(hashes.get(&file));
        }
        write_manifest(folder, manifest).map_err(failed())
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{PAPER, Vocabulary};
    use super::*;
    use crate::strategies::Registry;

    const FILE: &str = r#"name = "asked"
seeds = [0, 1, 2]
dataset = { name = "cora" }
model = { kind = "gcn" }
training = { epochs = 3 }
partition = { workers = 2, method = "random" }
network = { preset = "ethernet-1g" }
strategy = [{ kind = "full" }, { kind = "isolated" }]

[[claim]]
id = "accuracy"
source = "ours"
statement = "Isolation costs no accuracy"
measure = "test_accuracy"
compare = { strategy = "isolated", to = "full", at_most_below = 0.01 }
"#;

    fn read(text: &str) -> Experiment {
        let registry = Registry::builtin();
        let vocabulary = Vocabulary {
            registry: &registry,
            figures: &[],
        };
        let read = Experiment::parse(text, "x.toml", PAPER, &[], &vocabulary);
        read.expect("it is right")
    }

    /// The notes on a run of the first file after its claims were judged by the others in turn.
    fn notes_after(files: &[String]) -> Vec<Value> {
        let ran = read(FILE);
        let mut manifest = json!({
            "name": "asked",
            "notes": ["one"],
            "claims": ran.claims,
            "statistics": ran.statistics,
        });
        for text in files {
            let asked = ask_again(&read(text), Some(&ran), &mut manifest);
            asked.expect("it is the same experiment");
        }
        manifest["notes"].as_array().expect("a list").clone()
    }

    #[test]
    fn what_a_run_took_to_a_target_is_asked_of_that_target_alone() {
        let with = |target: &str| {
            let training = format!("epochs = 3, target_accuracy = {target}");
            let text = FILE.replace("epochs = 3", &training);
            let text = text.replace("\"test_accuracy\"", "\"bytes_to_target\"");
            read(&text.replace("at_most_below = 0.01", "times_less = 2"))
        };
        let ask = |asked: &Experiment, ran: Option<&Experiment>| {
            ask_again(asked, ran, &mut json!({ "name": "asked" }))
        };
        let half = with("0.5");
        ask(&half, Some(&half)).expect("it had this target");
        let plain = read(FILE);
        ask(&plain, None).expect("it asks of no target");
        for (asked, ran, says) in [
            (
                &with("0.6"),
                Some(&half),
                "training.target_accuracy = 0.6, and the runs of cell \"full\" had 0.5",
            ),
            (&half, Some(&plain), "had null"),
            (&half, None, "had null"),
        ] {
            let refused = ask(asked, ran).unwrap_err();
            assert!(refused.contains(says), "{refused}");
        }
    }

    #[test]
    fn cells_of_the_same_name_with_other_settings_are_others() {
        let ask = |from: &str, to: &str| {
            let mut manifest = json!({ "name": "asked" });
            ask_again(
                &read(&FILE.replace(from, to)),
                Some(&read(FILE)),
                &mut manifest,
            )
        };
        let network = "network = { preset = \"ethernet-1g\" }";
        for (from, to, says) in [
            (
                "epochs = 3",
                "epochs = 4",
                "\"full\" with training.epochs = 4, and its runs had 3",
            ),
            (
                "{ kind = \"isolated\" }",
                "{ kind = \"isolated\", overlap = true }",
                "\"isolated\" with strategy.overlap = true, and its runs had –",
            ),
            (
                "isolated",
                "cluster",
                "about `cluster` and `full`, of which there are no runs; there are some of `full`, `isolated`",
            ),
        ] {
            let refused = ask(from, to).unwrap_err();
            assert!(refused.contains(says), "{refused}");
        }
        for (from, to) in [
            (
                "epochs = 3",
                "epochs = 3, checkpoint_every = 1, target_accuracy = 0.5",
            ),
            (
                network,
                &format!("{network}\nstatistics = {{ level = 0.9 }}"),
            ),
            ("strategy = [", "strategy = [{ kind = \"varco\" }, "),
        ] {
            ask(from, to).expect("the same cells are compared");
        }
        let attends =
            "{ kind = \"full\", label = \"attends\", with = { \"model.kind\" = \"gat\" } }";
        let heads = FILE.replace("strategy = [", &format!("strategy = [{attends}, "));
        let heads = read(&heads.replace("\"gcn\"", "\"gcn\", heads = 4"));
        let asked = ask_again(&heads, Some(&read(FILE)), &mut json!({ "name": "asked" }));
        asked.expect("a GCN has no heads");
    }

    #[test]
    fn a_manifest_whose_tables_are_no_table_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        for tables in [json!([]), json!("x"), json!(3)] {
            let mut manifest = json!({ "claims": [], "tables": tables });
            let judged = Tables::default().judge_again(folder.path(), &mut manifest);
            judged.expect("nothing else is wrong");
            assert!(manifest["tables"]["claims.csv"].is_string(), "{manifest}");
        }
    }

    #[test]
    fn another_question_or_rule_is_noted_once_and_other_words_are_not() {
        let with = |from, to| vec![FILE.replace(from, to)];
        let words = with("costs no accuracy", "is free");
        assert_eq!(notes_after(&words), [json!("one")]);
        let other = [
            with("at_most_below = 0.01", "at_most_below = 0.02"),
            with("\"test_accuracy\"", "\"val_accuracy\""),
            // What a claim is corrected with follows from its source and its family.
            with("\"ours\"", "\"arXiv 1\""),
            with("id = ", "family = \"headlines\"\nid = "),
            with("[[claim]]", "[statistics]\nlevel = 0.9\n\n[[claim]]"),
        ];
        for changed in other {
            let notes = notes_after(&changed);
            assert_eq!(notes.len(), 2, "{notes:?}");
            let twice = notes[1].as_str().expect("a sentence");
            assert!(twice.ends_with("take the p-value twice"), "{twice}");
            // Neither for the same again nor for a third.
            assert_eq!(
                notes_after(&[changed.clone(), changed, words.clone()].concat()),
                notes
            );
        }
    }
}
