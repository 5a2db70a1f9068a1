//! The manifest agrees with itself, with the tables and with their files.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::Breach;
use crate::experiment::Tables;
use crate::experiment::claims::seeds_by_rule;
use crate::experiment::manifest::{ASKED_AGAIN, judged_by, sha256, table_hashes};
use crate::experiment::rows::distinct;

/// Where breaches of the manifest are.
pub(super) const MANIFEST: &str = "manifest";

/// What of the manifest of `folder` does not agree with itself (the configuration and its hash, as
/// text and as values), with the rows (names and seeds), or with the hashes of the tables' files.
pub fn verify_manifest(folder: &Path, manifest: &Value, tables: &Tables) -> Vec<Breach> {
    let mut found = Vec::new();
    let mut breach = |what: String| {
        found.push(Breach {
            table: MANIFEST,
            row: None,
            what,
        });
    };
    // What is missing is empty here, and its hash is a breach.
    let text = manifest["config_toml"].as_str().unwrap_or_default();
    let hash = sha256(text.as_bytes());
    if manifest["config_hash"] != json!(hash) {
        breach(format!(
            "config_hash is {}, but the hash of config_toml is {hash}",
            manifest["config_hash"]
        ));
    }
    match toml::from_str::<toml::Table>(text) {
        Ok(table) => {
            let config = json!(table);
            if config != manifest["config"] {
                breach("config is not what config_toml says".to_owned());
            }
            // Claims that were asked later are not those of the run, and the manifest says so.
            let asked_again = manifest[ASKED_AGAIN] == json!(true);
            let keys = [("name", "name"), ("figures", "figure"), ("claims", "claim")];
            for (key, of) in &keys[..if asked_again { 2 } else { 3 }] {
                // A resolved file leaves out a list that is empty.
                let absent = config[*of].is_null() && manifest[*key] == json!([]);
                if manifest[*key] != config[*of] && !absent {
                    breach(format!("{key} is not what config_toml says"));
                }
            }
            let other = manifest["statistics"] != config["statistics"];
            if other && !asked_again && !config["statistics"].is_null() {
                breach("statistics is not what config_toml says".to_owned());
            }
            let seeds: Vec<u64> = match config["seeds"]["most"].as_u64() {
                Some(most) => (0..most).collect(),
                None => serde_json::from_value(config["seeds"].clone()).unwrap_or_default(),
            };
            for what in other_seeds(manifest, tables) {
                breach(what);
            }
            for run in tables.runs.iter().filter(|run| !seeds.contains(&run.seed)) {
                breach(format!(
                    "its seeds are {seeds:?}, but cell `{}` has one {}",
                    run.cell, run.seed
                ));
            }
        }
        Err(error) => breach(format!("config_toml is no TOML: {}", error.message())),
    }
    for run in &tables.runs {
        if manifest["engine"] != json!(run.engine) {
            breach(format!(
                "engine is {}, but cell `{}` with seed {} ran on `{}`",
                manifest["engine"], run.cell, run.seed, run.engine
            ));
        }
    }
    let name = manifest["name"].as_str().unwrap_or_default();
    let names = tables.runs.iter().map(|run| ("runs", &run.experiment));
    let names = names.chain(tables.epochs.iter().map(|row| ("epochs", &row.experiment)));
    // A wrong name stands in every row of a table, and is told once.
    for (table, other) in distinct(names.filter(|(_, other)| *other != name)) {
        breach(format!(
            "its name is `{name}`, but {table} has rows of `{other}`"
        ));
    }
    match table_hashes(folder) {
        Ok(hashes) => {
            let written = manifest["tables"].as_object().cloned().unwrap_or_default();
            for (file, hash) in &hashes {
                if written.get(file) != Some(&json!(hash)) {
                    breach(format!(
                        "{file} is not the file that was written: its hash is {hash}"
                    ));
                }
            }
            for file in written.keys().filter(|file| !hashes.contains_key(*file)) {
                breach(format!("{file} was written, and is not there"));
            }
        }
        Err(error) => breach(format!("the tables' files cannot be read: {error}")),
    }
    found
}

/// What of the seeds is not what the rule gives that adds them until claims are decided. By the
/// claims of the run, whatever was asked later.
fn other_seeds(manifest: &Value, tables: &Tables) -> Vec<String> {
    let config = &manifest["config"];
    let as_run = json!({
        "claims": if config["claim"].is_null() { json!([]) } else { config["claim"].clone() },
        "statistics": config["statistics"],
        "config": config,
    });
    let Ok((claims, statistics)) = judged_by(&as_run) else {
        return Vec::new();
    };
    let Some(looks) = statistics.looks.filter(|_| !manifest["finished"].is_null()) else {
        return Vec::new();
    };
    let by_rule = seeds_by_rule(&claims, &tables.runs, &statistics, looks);
    let differs = |(cell, count): (String, usize)| {
        let own = tables.runs.iter().filter(|run| run.cell == cell);
        let seeds: BTreeSet<u64> = own.map(|run| run.seed).collect();
        (!seeds.iter().copied().eq(0..count as u64)).then(|| {
            format!(
                "cell `{cell}` has the seeds {seeds:?}, but its claims ask for the first {count}"
            )
        })
    };
    by_rule.into_iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{Measured, RunRow};

    #[test]
    fn seeds_that_the_rule_does_not_give_are_told() {
        let cell = |name: &str, accuracies: [f64; 3]| {
            let runs = accuracies
                .into_iter()
                .zip(0..)
                .map(|(accuracy, seed)| RunRow {
                    cell: name.to_owned(),
                    strategy: name.to_owned(),
                    seed,
                    ..RunRow::finished(Measured {
                        test_accuracy: Some(accuracy),
                        ..Measured::default()
                    })
                });
            runs.collect::<Vec<RunRow>>()
        };
        let own = [0.8, 0.82, 0.81];
        let (full, noisy) = (cell("full", own), cell("b", [0.7, 0.9, 0.8]));
        let tables = |cells: &[Vec<RunRow>]| Tables {
            runs: cells.concat(),
            ..Tables::default()
        };
        let manifest = json!({
            "finished": "2026-01-01T00:00:00Z",
            "config": {
                "seeds": { "first": 3, "most": 30 },
                "statistics": {},
                "claim": [{
                    "id": "c", "source": "s", "statement": "x", "measure": "test_accuracy",
                    "compare": { "strategy": "b", "to": "full", "within": 0.01 },
                }],
            },
        });
        let few = other_seeds(&manifest, &tables(&[full.clone(), noisy]));
        assert_eq!(few.len(), 2, "{few:?}");
        assert!(
            few[0].ends_with("but its claims ask for the first 8"),
            "{few:?}"
        );
        // Trainings that come to the same decide by themselves.
        let clear = cell("b", own);
        assert!(other_seeds(&manifest, &tables(&[full.clone(), clear.clone()])).is_empty());
        let lost = other_seeds(&manifest, &tables(&[full, clear[..2].to_vec()]));
        assert!(!lost.is_empty());
    }
}
