//! Features that one strategy sends in every epoch and `full` once.

use std::collections::BTreeSet;

use super::Tables;
use super::rows::{OfRun, RunKey, RunRow, TrafficRow, distinct};
use crate::net::TrafficKind;

/// What to know of strategies that send more node data than `full`, because it keeps features and
/// they do not. Who samples rows anew in every step could not keep them.
pub(super) fn note(tables: &Tables) -> Option<String> {
    let again = |row: &&TrafficRow| row.kind == TrafficKind::Feature && row.epoch > 0;
    let resend: BTreeSet<RunKey<'_>> = (tables.traffic.iter().filter(again))
        .map(OfRun::key)
        .collect();
    // One worker alone sends nothing, and fewer epochs send less: who is compared has as many.
    let setting = |run: &RunRow| (run.seed, run.workers, run.epochs, run.sweep.clone());
    let more = |run: &&RunRow| {
        let keeps = |full: &RunRow| full.kind() == "full" && !resend.contains(&full.key());
        let beside = |full: &&RunRow| keeps(full) && setting(full) == setting(run);
        let pairs = tables.runs.iter().filter(beside);
        let mut pairs = pairs.filter_map(|full| Some((run.measured?, full.measured?)));
        pairs.any(|(own, full)| {
            own.sample_bytes + full.sample_bytes == 0
                && own.node_data_bytes() > full.node_data_bytes()
                && own.feature_bytes > full.feature_bytes
        })
    };
    let found = (tables.runs.iter()).filter(|run| resend.contains(&run.key()) && more(run));
    let found = distinct(found.map(|run| run.strategy.as_str()));
    (!found.is_empty()).then(|| {
        format!(
            "{}: more node data than full, which sends features once, where these send them in every epoch; \
             `cache_features = true` has those that take it send them once, too",
            found.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::Measured;

    fn run(kind: &str, features: u64, activations: u64) -> RunRow {
        RunRow {
            cell: kind.into(),
            strategy: kind.into(),
            strategy_kind: Some(kind.into()),
            ..RunRow::finished(Measured {
                feature_bytes: features,
                activation_bytes: activations,
                ..Measured::default()
            })
        }
    }

    /// The note on these runs, of which one sent features in this epoch.
    fn told(runs: Vec<RunRow>, epoch: u64) -> Option<String> {
        let traffic = TrafficRow {
            cell: "fixed".into(),
            kind: TrafficKind::Feature,
            epoch,
            ..TrafficRow::default()
        };
        note(&Tables {
            runs,
            traffic: vec![traffic],
            ..Tables::default()
        })
    }

    #[test]
    fn who_compresses_and_sends_more_is_told_why() {
        let full = || run("full", 10, 100);
        let beside = |run: RunRow| vec![full(), run];
        let text = told(beside(run("fixed", 150, 10)), 1).unwrap();
        assert!(text.starts_with("fixed: more node data"), "{text}");
        assert_eq!(told(beside(run("fixed", 150, 10)), 0), None, "sent once");
        assert_eq!(told(beside(run("fixed", 10, 101)), 1), None);
        assert_eq!(told(beside(run("varco", 20, 10)), 1), None);
        assert_eq!(told(vec![run("fixed", 150, 10)], 1), None);
        let mut sampled = run("fixed", 150, 10);
        sampled.measured.as_mut().unwrap().sample_bytes = 1;
        assert_eq!(told(beside(sampled), 1), None, "sampled anew in each step");
        let one_worker = RunRow {
            workers: 1,
            ..run("full", 0, 0)
        };
        let shorter = RunRow {
            epochs: 1,
            ..full()
        };
        let again = TrafficRow {
            cell: "full".into(),
            kind: TrafficKind::Feature,
            epoch: 1,
            ..TrafficRow::default()
        };
        let traffic = vec![
            again.clone(),
            TrafficRow {
                cell: "fixed".into(),
                ..again
            },
        ];
        let runs = beside(run("fixed", 150, 10));
        let tables = Tables {
            runs,
            traffic,
            ..Tables::default()
        };
        assert_eq!(
            note(&tables),
            None,
            "this full sends them in every epoch, too"
        );
        let mut of_batches = full();
        of_batches.measured.as_mut().unwrap().sample_bytes = 1;
        for other in [one_worker, shorter, of_batches] {
            assert_eq!(told(vec![other, run("fixed", 150, 10)], 1), None);
        }
    }
}
