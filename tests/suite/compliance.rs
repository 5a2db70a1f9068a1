//! Whatever follows from something else in a result folder cannot be changed without verification noticing, even where the
//! hashes of the files are those of what was changed.

use grapevine::cli::{ExperimentArgs, read_experiment};
use grapevine::experiment::claims::ClaimSpec;
use grapevine::experiment::rows::{ClaimVerdict, ColumnKind, Row, Values};
use grapevine::experiment::statistics::Statistics;
use grapevine::experiment::verify::{Breach, verify, verify_manifest, verify_plan};
use grapevine::experiment::{Experiment, Preparation, Tables, read_manifest};
use grapevine::net::TrafficKind;
use grapevine::strategies::Registry;
use serde_json::{Value, json};

use crate::command::{EXPERIMENT, folder_with, grapevine};

/// A result folder and what it is checked against.
struct Results {
    folder: tempfile::TempDir,
    experiment: Experiment,
    manifest: Value,
    tables: Tables,
}

impl Results {
    fn new() -> Self {
        let more = "[[claim]]\nid = 'accuracy'\nsource = 'ours'\nstatement = 'x'\nmeasure = 'test_accuracy'\npaper = '1'\n\
                    compare = { strategy = 'varco', to = 'full', within = 0.2 }\n";
        let text = format!("{EXPERIMENT}{more}").replace(
            "target_accuracy = 0.3",
            "target_accuracy = 0.3\nbyte_budget = 40000\ntime_budget = 1.0",
        );
        let folder = folder_with(&text);
        grapevine(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]).expect(0);
        let args = ExperimentArgs::of(folder.path().join("x.toml"));
        let out = folder.path().join("out");
        Self {
            experiment: read_experiment(&args, &Registry::builtin()).unwrap(),
            manifest: read_manifest(&out).unwrap(),
            tables: Tables::read(&out).unwrap(),
            folder,
        }
    }

    /// All that does not hold, but for hashes.
    fn breaches(&self, tables: &Tables) -> Vec<Breach> {
        let (claims, statistics): (Vec<ClaimSpec>, Statistics) = (
            self.experiment.claims.clone(),
            self.experiment.statistics.clone(),
        );
        let mut breaches = verify(
            &tables.runs,
            &tables.epochs,
            &tables.traffic,
            &tables.claims,
            Some((&claims, &statistics)),
        );
        let registry = Registry::builtin();
        let mut preparation = Preparation::new(&registry, self.folder.path().to_owned());
        let (more, notes) = verify_plan(&self.experiment, &mut preparation, tables, true);
        assert_eq!(notes, [""; 0]);
        breaches.extend(more);
        breaches.extend(
            verify_manifest(&self.out(), &self.manifest, tables)
                .into_iter()
                .filter(|breach| !breach.what.contains("hash")),
        );
        breaches
    }

    fn out(&self) -> std::path::PathBuf {
        self.folder.path().join("out")
    }

    /// Changes a row's cell in each column that is not among those which follow from nothing, and wants a breach each time.
    fn every_column<R: Row>(
        &self,
        row: usize,
        free: &[&str],
        rows: fn(&mut Tables) -> &mut Vec<R>,
    ) {
        for (place, column) in R::COLUMNS.iter().enumerate() {
            if free.contains(&column.name) {
                continue;
            }
            let mut tables = self.tables.clone();
            let mut columns = R::to_columns(rows(&mut tables));
            match &mut columns[place] {
                Values::Text(cells) => cells[row] = format!("{}x", cells[row]).as_str().into(),
                Values::Count(cells) => cells[row] = Some(cells[row].map_or(1, |count| count + 1)),
                Values::Real(cells) => cells[row] = Some(cells[row].map_or(0.5, |x| x + 0.001)),
            }
            // A word that is none of a column's is not even read; every number is.
            let Ok(changed) = R::from_columns(&columns) else {
                assert_eq!(
                    column.kind,
                    ColumnKind::Text,
                    "{}.{}",
                    R::TABLE,
                    column.name
                );
                continue;
            };
            *rows(&mut tables) = changed;
            let breaches = self.breaches(&tables);
            assert!(!breaches.is_empty(), "{}.{}", R::TABLE, column.name);
        }
    }
}

#[test]
fn no_column_that_follows_from_others_can_be_changed() {
    let results = Results::new();
    assert_eq!(results.breaches(&results.tables), []);
    // What was measured, or trained, and is nowhere else.
    let free = [
        "device",
        "parameters",
        "partition_seconds",
        "communication_seconds",
        "simulated_seconds",
        "compute_seconds",
        "exposed_communication_seconds",
        "waiting_seconds",
        "measured_seconds",
        "peak_memory_bytes",
        "load_before",
        "load_during",
        "calibration_spread",
    ];
    results.every_column(0, &free, |tables| &mut tables.runs);
    let best = results.tables.runs[0].measured.unwrap().best_epoch;
    let best = usize::try_from(best.unwrap()).unwrap();
    let free = [
        "simulated_seconds",
        "measured_seconds",
        "train_loss",
        "train_accuracy",
        "val_loss",
        "compression_ratio",
        "coverage",
        "weight_mean",
        "weight_sd",
        "compression_error",
    ];
    results.every_column(best, &free, |tables| &mut tables.epochs);
    results.every_column(3, &["compression_error"], |tables| &mut tables.traffic);
    results.every_column(1, &[], |tables| &mut tables.claims);
}

#[test]
fn bytes_that_are_changed_everywhere_alike_are_not_what_was_planned() {
    let results = Results::new();
    let mut tables = results.tables.clone();
    // One more row in one message, in every table that says so.
    let sent = &mut tables.traffic[0];
    assert_eq!(sent.kind, TrafficKind::Feature);
    (sent.payload_bytes, sent.wire_bytes) = (sent.payload_bytes + 32, sent.wire_bytes + 32);
    let run = tables.runs[0].measured.as_mut().unwrap();
    run.payload_bytes += 32;
    run.wire_bytes += 32;
    run.both_ends_bytes += 64;
    run.feature_bytes += 32;
    run.bytes_to_target = run.bytes_to_target.map(|bytes| bytes + 32);
    for epoch in tables.epochs.iter_mut().take(6) {
        epoch.payload_bytes += 32;
        epoch.wire_bytes += 32;
    }
    tables.claims = grapevine::experiment::claims::judge(
        &results.experiment.claims,
        &tables.runs,
        &results.experiment.statistics,
    );
    let breaches = results.breaches(&tables);
    assert!(
        matches!(&breaches[..], [one] if one.what.contains("were planned")),
        "{breaches:?}"
    );
}

#[test]
fn a_manifest_that_was_changed_is_noticed() {
    let results = Results::new();
    let change = |path: &str, value: Value| {
        let mut manifest = results.manifest.clone();
        *manifest.pointer_mut(path).unwrap() = value;
        let breaches = verify_manifest(&results.out(), &manifest, &results.tables);
        assert!(!breaches.is_empty(), "{path}");
        breaches[0].what.clone()
    };
    for (path, value, what) in [
        ("/config_hash", json!("00"), "the hash of config_toml"),
        ("/config/seeds", json!([0]), "config is not"),
        ("/config/training/epochs", json!(7), "config is not"),
        ("/name", json!("other"), "name is not"),
        ("/claims/0/compare/times_less", json!(2.0), "claims is not"),
        ("/tables/runs.csv", json!("00"), "runs.csv is not the file"),
        ("/config_toml", json!("name = "), "config_hash"),
    ] {
        let found = change(path, value);
        assert!(found.contains(what), "{path}: {found}");
    }
}

#[test]
fn a_cell_that_says_the_same_in_other_words_is_another_file() {
    let results = Results::new();
    let csv = results.out().join("runs.csv");
    let text = std::fs::read_to_string(&csv).unwrap();
    std::fs::write(&csv, format!("{text}\n")).unwrap();
    let ran = grapevine(results.folder.path(), &["verify", "out"]).expect(1);
    assert!(
        ran.stdout
            .contains("manifest: runs.csv is not the file that was written")
    );
}

#[test]
fn what_did_not_finish_decides_nothing_and_is_no_breach() {
    let results = Results::new();
    let (folder, out) = (results.folder.path(), results.out());
    // As a run that was killed after its third row leaves it.
    let mut tables = results.tables.clone();
    tables.runs.truncate(3);
    let kept = |cell: &str, seed: u64| {
        let mut runs = tables.runs.iter();
        runs.any(|run| run.cell == cell && run.seed == seed)
    };
    tables.epochs.retain(|row| kept(&row.cell, row.seed));
    tables.traffic.retain(|row| kept(&row.cell, row.seed));
    tables.claims.clear();
    tables.write(&out).unwrap();
    let ran = grapevine(folder, &["verify", "out"]).expect(1);
    assert!(ran.stdout.contains("has no row"), "{}", ran.stdout);
    let mut manifest = results.manifest.clone();
    manifest["finished"] = Value::Null;
    let text = manifest.to_string();
    std::fs::write(out.join("manifest.json"), text).unwrap();
    let ran = grapevine(folder, &["verify", "out"]).expect(1);
    assert!(ran.stderr.contains("did not finish"), "{}", ran.stderr);
    let missing = format!("{} runs are not there", results.tables.runs.len() - 3);
    assert!(ran.stderr.contains(&missing), "{}", ran.stderr);
    let only_hashes = |line: &str| line.contains("is not the file that was written");
    assert!(ran.stdout.lines().all(only_hashes), "{}", ran.stdout);
    grapevine(folder, &["report", "out"]).expect(0);
    let claims = Tables::read(&out).unwrap().claims;
    assert_eq!(claims.len(), 2);
    assert!(
        claims
            .iter()
            .all(|claim| claim.verdict == ClaimVerdict::Inconclusive)
    );
    // A report does not vouch for tables that it did not write.
    let ran = grapevine(folder, &["verify", "out"]).expect(1);
    assert!(
        ran.stdout.contains("runs.csv is not the file"),
        "{}",
        ran.stdout
    );
}
