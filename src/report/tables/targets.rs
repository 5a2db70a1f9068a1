//! How long, and how many bytes, until the target accuracy; runs that never get there are counted,
//! not dropped.

use super::{Entry, Table, columns};
use crate::experiment::rows::{Measured, RunRow};
use crate::graph::Metric;
use crate::report::format;
use crate::report::series::{Entrant, metric};

/// One row per cell; `None` where no target is `stated` and none was reached.
///
/// A run that does not reach the target takes at least its whole time and payload: with those, the
/// mean is a lower bound.
pub(crate) fn targets(cells: &[Entrant], stated: Option<f64>) -> Option<Table> {
    let reached = |run: &&(&RunRow, &Measured)| run.1.seconds_to_target.is_some();
    let any = cells
        .iter()
        .any(|cell| cell.runs.iter().any(|run| reached(&run)));
    if cells.is_empty() || !(any || stated.is_some()) {
        return None;
    }
    let rows = cells.iter().map(|cell| {
        let count = cell.runs.iter().filter(reached).count();
        let bound = if count < cell.runs.len() { "≥ " } else { "" };
        let seconds = cell.over_seeds(|run| run.seconds_to_target.or(Some(run.simulated_seconds)));
        let bytes =
            cell.over_seeds(|run| Some(run.bytes_to_target.unwrap_or(run.payload_bytes) as f64));
        let text =
            |number: Option<String>| number.map_or("–".into(), |text| format!("{bound}{text}"));
        vec![
            Entry::new(&cell.label),
            Entry::new(format!("{count} of {}", cell.runs.len())),
            Entry::new(text(seconds.map(|sum| format::seconds(sum.mean)))),
            Entry::new(text(bytes.map(|sum| format::bytes(sum.mean)))),
        ]
    });
    let metric = metric(cells);
    let target = match stated {
        _ if metric != Metric::Accuracy.title() => {
            let target = stated.map_or("its target".into(), format::percent);
            format!("the validation {metric} is {target}")
        }
        Some(target) => format!("{} of validation nodes are right", format::percent(target)),
        None => "the target of its setting is reached".into(),
    };
    Some(Table {
        name: "targets",
        caption: format!(
            "Simulated time and total payload until {target}, mean over seeds, and how many runs get there. A run that \
             does not counts with its whole time and payload, so that ≥ marks a lower bound of the mean."
        ),
        columns: columns(&[
            "strategy",
            "#reached",
            "#time to target",
            "#payload to target",
        ]),
        rows: rows.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::series;

    fn run(seed: u64, reached: Option<f64>) -> RunRow {
        RunRow {
            cell: "full".into(),
            strategy: "full".into(),
            seed,
            ..RunRow::finished(Measured {
                simulated_seconds: 9.0,
                payload_bytes: 9_000,
                seconds_to_target: reached,
                bytes_to_target: reached.map(|_| 1_000),
                ..Measured::default()
            })
        }
    }

    fn row(runs: &[RunRow], stated: Option<f64>) -> Option<Vec<String>> {
        let table = targets(&series::cells(runs, &[]), stated)?;
        Some(
            table.rows[0]
                .iter()
                .map(|entry| entry.text.clone())
                .collect(),
        )
    }

    #[test]
    fn runs_that_miss_the_target_are_counted_and_make_the_mean_a_lower_bound() {
        let expected = ["full", "1 of 2", "≥ 6.00 s", "≥ 5.00 kB"];
        assert_eq!(
            row(&[run(0, Some(3.0)), run(1, None)], None).unwrap(),
            expected
        );
        let expected = ["full", "2 of 2", "4.00 s", "1.00 kB"];
        assert_eq!(
            row(&[run(0, Some(3.0)), run(1, Some(5.0))], None).unwrap(),
            expected
        );
    }

    #[test]
    fn a_target_that_nobody_reaches_is_told_and_without_one_there_is_nothing_to_tell() {
        let missed = [run(0, None)];
        assert_eq!(row(&missed, Some(0.9)).unwrap()[1], "0 of 1");
        assert!(row(&missed, None).is_none());
    }
}
