//! What sets trainings apart, or does not: which learnt no more than the largest class, and claims
//! about two that differ in more than their strategy, or of which runs failed.

use super::claims::{ClaimSpec, Named};
use super::rows::{RunRow, grouped};
use crate::strategies::EpochKind;

/// Who learnt no more than the largest class, with every seed.
pub(super) fn who_learnt_nothing(runs: &[RunRow]) -> Option<String> {
    let known = runs.iter().filter(|run| run.is_ok());
    let of_cells = grouped(known.map(|run| (run.cell.as_str(), run)));
    let nothing = of_cells.iter().filter(|(_, runs)| {
        let mut runs = runs.iter();
        runs.all(|run| run.learnt_nothing() == Some(true))
    });
    let cells: Vec<&str> = nothing.map(|(cell, _)| *cell).collect();
    let first = cells.first()?;
    let more = match cells.len() - 1 {
        0 => String::new(),
        1 => " (and one other cell)".to_owned(),
        others => format!(" (and {others} other cells)"),
    };
    let largest = runs.iter().find(|run| run.cell == *first)?.largest_class?;
    Some(format!(
        "{first}{more}: no more accurate than the same answer for every node, the largest class ({:.1} % of the test nodes), so that \
         nothing was learnt; claims that it is as accurate as another are not decided by it",
        100.0 * largest
    ))
}

/// What to know of claims before their verdicts are read.
pub(super) fn notes_on_claims(claims: &[ClaimSpec], runs: &[RunRow]) -> Vec<String> {
    let mut notes = unlike_settings(claims, runs);
    notes.extend(failed_runs(claims, runs));
    notes
}

/// Claims whose two sides are trained in different settings, which is more than their strategy.
fn unlike_settings(claims: &[ClaimSpec], runs: &[RunRow]) -> Vec<String> {
    let mut notes = Vec::new();
    for claim in claims {
        let Some(to) = claim.compare.baseline() else {
            continue;
        };
        let settings = claim.compare.settings(runs.iter().map(Named::from));
        let of = |setting, what: &str| {
            let mut runs = runs.iter();
            runs.find(|run| Named::from(*run).is(setting, what))
        };
        for setting in settings {
            let sides = [claim.compare.strategy(), to].map(|what| of(setting, what));
            let [Some(own), Some(other)] = sides else {
                continue;
            };
            // Two cells by their whole names are to differ in what the sweep gives them.
            if setting.is_none() && !own.sweep.is_empty() {
                continue;
            }
            let differ = differences(own, other);
            if !differ.is_empty() {
                notes.push(format!(
                    "claim {}: {} and {} differ in more than their strategy: {}",
                    claim.id,
                    claim.compare.strategy(),
                    to,
                    differ.join(", ")
                ));
                break;
            }
        }
    }
    notes
}

/// Claims of which runs failed: their seeds are in no mean, and may have failed for what the claim
/// is about.
fn failed_runs(claims: &[ClaimSpec], runs: &[RunRow]) -> Vec<String> {
    let mut notes = Vec::new();
    for claim in claims {
        let cells = claim.compare.cells(runs.iter().map(Named::from));
        let own = runs.iter().filter(|run| cells.contains(run.cell.as_str()));
        let failed = own.clone().filter(|run| !run.is_ok()).count();
        if failed > 0 {
            notes.push(format!(
                "claim {}: {failed} of the {} runs it is about failed; their seeds are left out, on both sides",
                claim.id,
                own.count()
            ));
        }
    }
    notes
}

/// What two runs differ in beside their strategy.
fn differences(own: &RunRow, other: &RunRow) -> Vec<String> {
    let texts = [
        ("data set", &own.dataset, &other.dataset),
        ("model", &own.model, &other.model),
        ("network", &own.network, &other.network),
    ];
    let texts = texts.map(|(what, a, b)| (what, a.clone(), b.clone()));
    let number = |what, a: u64, b: u64| (what, a.to_string(), b.to_string());
    let mut all = texts.to_vec();
    all.push(number("layers", own.layers, other.layers));
    all.push(number("hidden", own.hidden, other.hidden));
    all.push(number("workers", own.workers, other.workers));
    // Rounds and epochs of sub-models are other things than epochs.
    let pass = |run: &RunRow| run.epoch_kind == Some(EpochKind::Pass);
    if pass(own) && pass(other) {
        all.push(number("epochs", own.epochs, other.epochs));
    }
    let differ = all.into_iter().filter(|(_, a, b)| a != b);
    differ
        .map(|(what, a, b)| format!("{what} {a} and {b}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::Measured;

    fn run(strategy: &str, seed: u64, accuracy: f64) -> RunRow {
        RunRow {
            cell: strategy.into(),
            strategy: strategy.into(),
            largest_class: Some(0.3),
            network: "wan".into(),
            epoch_kind: Some(EpochKind::Pass),
            epochs: 10,
            seed,
            ..RunRow::finished(Measured {
                test_accuracy: Some(accuracy),
                measured_seconds: accuracy,
                ..Measured::default()
            })
        }
    }

    #[test]
    fn who_learnt_nothing_is_named_unless_one_seed_did() {
        let runs = [
            run("full", 0, 0.3),
            run("full", 1, 0.2),
            run("bns", 0, 0.3),
            run("bns", 1, 0.4),
        ];
        let told = who_learnt_nothing(&runs).unwrap();
        assert!(
            told.starts_with("full: no more accurate") && told.contains("30.0 %"),
            "{told}"
        );
        assert_eq!(who_learnt_nothing(&runs[2..]), None);
        let unknown = RunRow {
            largest_class: None,
            ..run("full", 0, 0.1)
        };
        assert_eq!(who_learnt_nothing(&[unknown]), None);
    }

    #[test]
    fn a_claim_between_unlike_settings_says_what_differs() {
        let claim: ClaimSpec = toml::from_str(
            "id = 'fast'\nsource = 's'\nstatement = 'x'\nmeasure = 'simulated_seconds'\n\
             compare = { strategy = 'bns', to = 'full', times_less = 5 }",
        )
        .unwrap();
        let told = |own: RunRow| {
            unlike_settings(std::slice::from_ref(&claim), &[run("full", 0, 0.5), own])
        };
        assert_eq!(told(run("bns", 0, 0.5)), Vec::<String>::new());
        let other = RunRow {
            network: "lte".into(),
            epochs: 5,
            ..run("bns", 0, 0.5)
        };
        assert_eq!(
            told(other.clone()),
            [
                "claim fast: bns and full differ in more than their strategy: network lte and wan, epochs 5 and 10"
            ]
        );
        let broken = RunRow {
            status: "failed: it broke".into(),
            measured: None,
            ..run("bns", 1, 0.5)
        };
        let notes = notes_on_claims(
            std::slice::from_ref(&claim),
            &[run("full", 0, 0.5), run("bns", 0, 0.5), broken],
        );
        let said = "claim fast: 1 of the 3 runs it is about failed; their seeds are left out";
        assert!(notes.len() == 1 && notes[0].starts_with(said), "{notes:?}");
        let rounds = RunRow {
            epoch_kind: Some(EpochKind::Round),
            ..other
        };
        assert!(told(rounds)[0].ends_with("network lte and wan"));
    }
}
