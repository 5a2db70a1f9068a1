//! Whether trainings were still getting better when they ended.

use std::collections::BTreeMap;

use super::Tables;
use super::rows::metric_title;

/// What to say where validation was best at the last evaluation in more than half of the runs.
/// Those that were evaluated once do not count: their last evaluation is the best of one.
pub(super) fn note(tables: &Tables) -> Option<String> {
    let mut evaluated: BTreeMap<(&str, u64), (usize, u64)> = BTreeMap::new();
    for row in &tables.epochs {
        if row.val_accuracy.is_some() {
            let (times, last) = evaluated.entry((row.cell.as_str(), row.seed)).or_default();
            *times += 1;
            *last = row.epoch.max(*last);
        }
    }
    let ends = tables.runs.iter().filter_map(|run| {
        let best = run.measured?.best_epoch?;
        let (times, last) = *evaluated.get(&(run.cell.as_str(), run.seed))?;
        (times > 1).then_some(best == last)
    });
    let ends: Vec<bool> = ends.collect();
    let (of, rising) = (ends.len(), ends.iter().filter(|rises| **rises).count());
    (2 * rising > of).then(|| {
        format!(
            "in {rising} of {of} runs validation was best at the last evaluation: with more epochs {} may still rise",
            metric_title(&tables.runs)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{EpochRow, Measured, RunRow};

    /// Runs of epochs 0 to 5, with the best of each; evaluated after every so many epochs and after
    /// the last.
    fn tables(best: &[u64], every: u64) -> Tables {
        let mut tables = Tables::default();
        for (seed, &best) in (0..).zip(best) {
            tables.runs.push(RunRow {
                cell: "full".into(),
                seed,
                epochs: 6,
                ..RunRow::finished(Measured {
                    best_epoch: Some(best),
                    ..Measured::default()
                })
            });
            tables.epochs.extend((0..6_u64).map(|epoch| EpochRow {
                cell: "full".into(),
                seed,
                epoch,
                val_accuracy: (epoch == 5 || (epoch + 1).is_multiple_of(every)).then_some(0.5),
                ..EpochRow::default()
            }));
        }
        tables
    }

    #[test]
    fn more_than_half_of_the_runs_must_be_best_at_the_end() {
        let told = note(&tables(&[5, 5, 3], 1)).unwrap();
        assert_eq!(
            told,
            "in 2 of 3 runs validation was best at the last evaluation: with more epochs accuracy may still rise"
        );
        assert_eq!(note(&tables(&[5, 3], 1)), None, "half of them");
        assert_eq!(note(&tables(&[4, 4], 1)), None, "the last but one");
        assert!(
            note(&tables(&[5], 4)).is_some(),
            "after the fourth and the last"
        );
        assert_eq!(note(&tables(&[5], 10)), None, "evaluated once");
        assert_eq!(note(&Tables::default()), None);
    }
}
