//! The timeline agrees with the runs it is of.

use std::collections::BTreeMap;

use super::Breach;
use crate::experiment::rows::{Activity, Row, RunRow, TimelineRow};

/// Everything that does not hold of a timeline: its rows are of finished runs and their workers,
/// end after they start and before the run does, and no worker computes and waits at once.
pub fn verify_timeline(runs: &[RunRow], timeline: &[TimelineRow]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    // Until when a worker has been busy with computing or waiting.
    let mut busy: BTreeMap<(&str, u64, u64), f64> = BTreeMap::new();
    for (row, span) in timeline.iter().enumerate() {
        let mut breach = |what: String| {
            breaches.push(Breach {
                table: TimelineRow::TABLE,
                row: Some(row),
                what,
            });
        };
        let of = |run: &&RunRow| run.cell == span.cell && run.seed == span.seed;
        let run = runs.iter().find(of);
        let Some((run, measured)) = run.and_then(|run| Some((run, run.measured?))) else {
            breach(format!(
                "no run of cell \"{}\" and seed {} has finished",
                span.cell, span.seed
            ));
            continue;
        };
        let (start, end) = (span.start_seconds, span.end_seconds);
        // A worker that ends a run by sending does not see its message arrive.
        let sends = span.activity == Activity::Send;
        let last = measured.simulated_seconds;
        if !(0.0 <= start && start < end && (sends || end <= last * (1.0 + 1e-9))) {
            breach(format!(
                "it lasts from {start} to {end} of a run of {last} seconds"
            ));
        }
        if span.worker >= run.workers {
            let workers = run.workers;
            breach(format!("worker {} of {workers}", span.worker));
        }
        if sends {
            continue;
        }
        let until = busy
            .entry((&span.cell, span.seed, span.worker))
            .or_insert(f64::NEG_INFINITY);
        if start < *until {
            breach(format!(
                "worker {} is still busy until {until} when it begins to {} at {start}",
                span.worker,
                span.activity.name()
            ));
        }
        *until = until.max(end);
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::Measured;

    fn found(change: impl Fn(&mut Vec<TimelineRow>)) -> String {
        let run = RunRow {
            cell: "full".into(),
            workers: 2,
            ..RunRow::finished(Measured {
                simulated_seconds: 3.0,
                ..Measured::default()
            })
        };
        let span = |activity: Activity, start_seconds, end_seconds| TimelineRow {
            cell: "full".into(),
            activity,
            start_seconds,
            end_seconds,
            ..TimelineRow::default()
        };
        let mut rows = vec![
            span(Activity::Compute, 0.0, 1.0),
            span(Activity::Wait, 1.0, 3.0),
            span(Activity::Send, 0.5, 3.5),
        ];
        change(&mut rows);
        let breaches = verify_timeline(&[run], &rows);
        breaches
            .iter()
            .map(Breach::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_sound_timeline_passes_and_each_unsound_one_is_named() {
        assert_eq!(found(|_| {}), "");
        assert_eq!(
            found(|rows| rows[1].start_seconds = 0.5),
            "timeline, row 1: worker 0 is still busy until 1 when it begins to wait at 0.5"
        );
        assert_eq!(
            found(|rows| rows[1].end_seconds = 4.0),
            "timeline, row 1: it lasts from 1 to 4 of a run of 3 seconds"
        );
        assert_eq!(
            found(|rows| rows[2].worker = 2),
            "timeline, row 2: worker 2 of 2"
        );
        assert_eq!(
            found(|rows| rows[2].seed = 7),
            "timeline, row 2: no run of cell \"full\" and seed 7 has finished"
        );
    }
}
