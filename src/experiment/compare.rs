//! What changed between result folders: another machine, another version, another setting.

use serde::Serialize;

use super::claims::is_accuracy;
use super::rows::{ClaimRow, ClaimVerdict, Row, RunRow, distinct, grouped};
use super::statistics::{IntervalMethod, Sample};
use crate::names::named;

/// What is compared: columns of the table of runs that are outcomes, not settings.
pub(crate) const MEASURES: [&str; 9] = [
    "test_accuracy",
    "val_accuracy",
    "payload_bytes",
    "wire_bytes",
    "messages",
    "simulated_seconds",
    "seconds_to_target",
    "measured_seconds",
    "peak_memory_bytes",
];

named! {
    /// What can be said of a difference.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum Verdict {
        /// Every pair of runs has the same value, to the bit.
        Equal = "equal",
        /// The interval of the mean difference does not contain zero.
        Differs = "differs",
        /// The interval contains zero.
        Unclear = "unclear",
        /// One pair has no interval.
        OnePair = "one pair",
    }
}

/// One measure of one cell in two folders, over the seeds that both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// Name of the cell.
    pub cell: String,
    /// A column of the table of runs.
    pub measure: &'static str,
    /// Number of seeds in both folders.
    pub pairs: usize,
    /// Mean in the first folder.
    pub first: f64,
    /// Mean in the other.
    pub other: f64,
    /// Mean of other − first.
    pub difference: f64,
    /// The 95 % Student-t interval of the mean of the differences paired by seed; none for one
    /// pair.
    pub(crate) interval: Option<(f64, f64)>,
    /// What can be said.
    pub verdict: Verdict,
}

/// The comparison of two folders.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Cell by cell, in the first folder's order.
    pub changes: Vec<Change>,
    /// Cells that the first folder alone has.
    pub(crate) first_only: Vec<String>,
    /// Cells that the other folder alone has.
    pub(crate) other_only: Vec<String>,
    /// Cells with runs that failed in the first folder, and how many.
    pub(crate) first_failed: Vec<(String, usize)>,
    /// The same of the other.
    pub(crate) other_failed: Vec<(String, usize)>,
    /// Finished runs of cells that both have, with seeds that one folder alone has: they are
    /// compared with nothing.
    pub(crate) unpaired: usize,
    /// Cells, measures, and how many pairs of runs have a number of it in one folder alone.
    pub(crate) one_sided: Vec<(String, &'static str, usize)>,
}

/// A claim with another verdict in another folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Judged {
    /// The claim's identifier.
    pub id: String,
    /// Its verdict in the first folder.
    pub first: ClaimVerdict,
    /// That in the other.
    pub other: ClaimVerdict,
    /// What was measured for it in both; none where there was nothing to measure.
    pub measured: [Option<f64>; 2],
}

/// The claims that both tables have, by their identifiers, with verdicts that are not the same.
pub(crate) fn judged(first: &[ClaimRow], other: &[ClaimRow]) -> Vec<Judged> {
    let pairs = first.iter().filter_map(|claim| {
        let theirs = other.iter().find(|theirs| theirs.id == claim.id)?;
        (claim.verdict != theirs.verdict).then(|| Judged {
            id: claim.id.clone(),
            first: claim.verdict,
            other: theirs.verdict,
            measured: [claim.measured, theirs.measured],
        })
    });
    pairs.collect()
}

/// Compares the finished runs of two tables, joined by cell and seed. Of a measure, seeds count for
/// which both have a value.
pub(crate) fn compare(first: &[RunRow], other: &[RunRow]) -> Comparison {
    let mut comparison = Comparison::default();
    for cell in cells(first) {
        if finished(other, cell).next().is_none() {
            if other.iter().all(|run| run.cell != cell) {
                comparison.first_only.push(cell.to_owned());
            }
            continue;
        }
        let pairs: Vec<(&RunRow, &RunRow)> = finished(first, cell)
            .filter_map(|a| Some((a, finished(other, cell).find(|b| b.seed == a.seed)?)))
            .collect();
        let alone = |own, theirs| {
            let lacks = |run: &&RunRow| finished(theirs, cell).all(|one| one.seed != run.seed);
            finished(own, cell).filter(lacks).count()
        };
        comparison.unpaired += alone(first, other) + alone(other, first);
        for measure in MEASURES {
            let (mut values, mut alone) = (Vec::new(), 0);
            for (a, b) in &pairs {
                // A ROC-AUC is not compared with an accuracy.
                if is_accuracy(measure) && a.metric() != b.metric() {
                    continue;
                }
                let value = |run: &RunRow| run.number(measure).filter(|value| value.is_finite());
                match (value(a), value(b)) {
                    (Some(first), Some(other)) => values.push((first, other)),
                    (None, None) => {}
                    _ => alone += 1,
                }
            }
            comparison.changes.extend(change(cell, measure, &values));
            if alone > 0 {
                let one_sided = (cell.to_owned(), measure, alone);
                comparison.one_sided.push(one_sided);
            }
        }
    }
    let new = cells(other).into_iter();
    let new = new.filter(|cell| first.iter().all(|run| run.cell != *cell));
    comparison.other_only = new.map(str::to_owned).collect();
    [comparison.first_failed, comparison.other_failed] = [first, other].map(failed);
    comparison
}

fn change(cell: &str, measure: &'static str, values: &[(f64, f64)]) -> Option<Change> {
    let differences: Vec<f64> = values.iter().map(|(first, other)| other - first).collect();
    let sample = Sample::of(&differences, IntervalMethod::StudentT)?;
    let interval = sample.interval(0.95);
    let mean =
        |of: fn(&(f64, f64)) -> f64| values.iter().map(of).sum::<f64>() / values.len() as f64;
    let verdict = match interval {
        // Asked first: a single pair that is equal to the bit needs no interval.
        _ if differences.iter().all(|&difference| difference == 0.0) => Verdict::Equal,
        None => Verdict::OnePair,
        Some((low, high)) if low > 0.0 || high < 0.0 => Verdict::Differs,
        Some(_) => Verdict::Unclear,
    };
    Some(Change {
        cell: cell.to_owned(),
        measure,
        pairs: values.len(),
        first: mean(|pair| pair.0),
        other: mean(|pair| pair.1),
        difference: sample.mean,
        interval,
        verdict,
    })
}

/// Cells with finished runs, in their order.
fn cells(runs: &[RunRow]) -> Vec<&str> {
    let finished = runs.iter().filter(|run| run.is_ok());
    distinct(finished.map(|run| run.cell.as_str()))
}

/// Cells with runs that failed, and how many.
pub(crate) fn failed(runs: &[RunRow]) -> Vec<(String, usize)> {
    let failed = runs.iter().filter(|run| !run.is_ok());
    let cells = grouped(failed.map(|run| (&run.cell, run))).into_iter();
    cells
        .map(|(cell, runs)| (cell.clone(), runs.len()))
        .collect()
}

fn finished<'a>(runs: &'a [RunRow], cell: &'a str) -> impl Iterator<Item = &'a RunRow> {
    runs.iter()
        .filter(move |run| run.is_ok() && run.cell == cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::Measured;

    fn run(cell: &str, seed: u64, accuracy: f64, bytes: u64) -> RunRow {
        RunRow {
            cell: cell.into(),
            seed,
            ..RunRow::finished(Measured {
                test_accuracy: Some(accuracy),
                payload_bytes: bytes,
                ..Measured::default()
            })
        }
    }

    #[test]
    fn verdicts_that_are_not_the_same_are_told() {
        let claim = |id: &str, verdict, measured| ClaimRow {
            id: id.to_owned(),
            verdict,
            measured,
            ..ClaimRow::default()
        };
        let (yes, no) = (ClaimVerdict::Reproduced, ClaimVerdict::NotReproduced);
        let first = [
            claim("same", yes, Some(1.0)),
            claim("faster", yes, Some(3.7)),
            claim("gone", yes, None),
        ];
        let other = [
            claim("faster", no, Some(1.75)),
            claim("same", yes, Some(2.0)),
            claim("new", no, None),
        ];
        let expected = Judged {
            id: "faster".to_owned(),
            first: yes,
            other: no,
            measured: [Some(3.7), Some(1.75)],
        };
        assert_eq!(judged(&first, &other), [expected]);
    }

    fn of<'a>(comparison: &'a Comparison, cell: &str, measure: &str) -> &'a Change {
        let mut changes = comparison.changes.iter();
        changes
            .find(|change| change.cell == cell && change.measure == measure)
            .unwrap()
    }

    #[test]
    fn a_run_that_is_there_twice_has_its_partner() {
        let once: Vec<RunRow> = (0..2).map(|seed| run("full", seed, 0.8, 100)).collect();
        let twice = [once.clone(), once.clone()].concat();
        assert_eq!(compare(&twice, &once).unpaired, 0);
        assert_eq!(compare(&once, &twice).unpaired, 0);
        assert_eq!(compare(&twice, &once[..1]).unpaired, 2);
    }

    #[test]
    fn seeds_are_paired_and_what_is_equal_differs_or_is_unclear_is_told_apart() {
        let first: Vec<RunRow> = (0..3)
            .map(|s| run("full", s, 0.8 + 0.01 * s as f64, 100))
            .collect();
        let mut other: Vec<RunRow> = (0..4)
            .rev()
            .map(|s| run("full", s, 0.9 + 0.011 * s as f64, 100))
            .collect();
        let found = compare(&first, &other);
        let accuracy = of(&found, "full", "test_accuracy");
        assert_eq!((accuracy.pairs, accuracy.verdict), (3, Verdict::Differs));
        assert!((accuracy.difference - 0.101).abs() < 1e-12);
        assert!((accuracy.first - 0.81).abs() < 1e-12);
        assert_eq!(of(&found, "full", "payload_bytes").verdict, Verdict::Equal);
        // Pairs that go both ways.
        other[3].measured.as_mut().unwrap().test_accuracy = Some(0.5);
        let unclear = compare(&first, &other);
        assert_eq!(
            of(&unclear, "full", "test_accuracy").verdict,
            Verdict::Unclear
        );
        let single = compare(&first[..1], &other);
        assert_eq!(
            of(&single, "full", "test_accuracy").verdict,
            Verdict::OnePair
        );
        assert!(
            found
                .changes
                .iter()
                .all(|change| change.measure != "val_accuracy")
        );
    }

    #[test]
    fn numbers_that_one_side_alone_has_are_told() {
        let first: Vec<RunRow> = (0..3).map(|s| run("full", s, 0.8, 100)).collect();
        let mut other = first.clone();
        other[0].measured.as_mut().unwrap().test_accuracy = None;
        other[1].measured.as_mut().unwrap().test_accuracy = Some(f64::NAN);
        let found = compare(&first, &other);
        let expected = ("full".to_owned(), "test_accuracy", 2);
        assert_eq!(found.one_sided, [expected]);
        assert_eq!(of(&found, "full", "test_accuracy").pairs, 1);
    }

    #[test]
    fn cells_of_one_side_and_failed_runs_are_not_compared() {
        let failed = RunRow {
            measured: None,
            ..run("b", 0, 0.1, 1)
        };
        let first = [
            run("a", 0, 0.5, 1),
            run("b", 0, 0.5, 1),
            run("seeds", 1, 0.5, 1),
        ];
        let other = [
            run("a", 0, 0.5, 1),
            failed,
            run("c", 0, 0.5, 1),
            run("seeds", 2, 0.5, 1),
        ];
        let found = compare(&first, &other);
        assert!(found.first_only.is_empty(), "of b a run failed there");
        assert!(found.first_failed.is_empty());
        assert_eq!(found.other_failed, [("b".to_owned(), 1)]);
        assert_eq!(found.unpaired, 2, "seeds 1 and 2");
        assert_eq!(found.other_only, ["c"]);
        assert!(found.changes.iter().all(|change| change.cell == "a"));
    }
}
