//! What is sent, against the formulas of the papers.

use crate::common::Case;
use grapevine::model::ModelKind;
use grapevine::net::{Traffic, TrafficKind};
use grapevine::sim::{Outcome, Setting};

struct Run {
    setting: std::sync::Arc<Setting>,
    outcome: Outcome,
}

impl Run {
    fn new(case: &Case, kind: &str, options: &str) -> Self {
        Self {
            setting: case.setting(Case::strategy(kind, options).as_ref()),
            outcome: case.run(kind, options),
        }
    }

    /// Rows that cross the cut, one way.
    fn boundary(&self) -> u64 {
        self.crossing(|rows| rows)
    }

    /// The sum of what crosses of the rows of each ordered pair of workers.
    fn crossing(&self, of: impl Fn(u64) -> u64) -> u64 {
        let workers = self.setting.workers();
        let pairs = (0..workers).flat_map(|from| (0..workers).map(move |to| (from, to)));
        // Counted from the graph, not from the plan under test.
        let (graph, owner) = (
            &self.setting.dataset.graph,
            &self.setting.partition.assignment,
        );
        let needed = |from: usize, to: usize| {
            (0..graph.nodes())
                .filter(|&v| owner[v] as usize == from)
                .filter(|&v| {
                    graph
                        .neighbours(v)
                        .iter()
                        .any(|&u| owner[u as usize] as usize == to)
                })
                .count() as u64
        };
        pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| of(needed(from, to)))
            .sum()
    }

    fn widths(&self) -> Vec<u64> {
        self.setting
            .model
            .widths
            .iter()
            .map(|&w| w as u64)
            .collect()
    }

    fn epoch(&self, epoch: usize, kind: TrafficKind) -> u64 {
        let traffic = self.outcome.ledger.epoch(epoch);
        traffic.map_or(0, |traffic| traffic.payload_of(kind).0)
    }

    fn all(&self) -> Traffic {
        self.outcome.ledger.traffic()
    }
}

fn cases() -> impl Iterator<Item = Case> {
    [
        (ModelKind::Gcn, 2, 4),
        (ModelKind::Sage, 3, 3),
        (ModelKind::Gcn, 3, 1),
        (ModelKind::Gat, 3, 4),
        (ModelKind::SagePool, 2, 2),
        (ModelKind::Gin, 8, 2),
    ]
    .into_iter()
    .map(|(kind, layers, workers)| Case {
        workers,
        kind,
        layers,
        ..Case::default()
    })
}

#[test]
fn full_sends_features_once_and_every_hidden_row_twice_an_epoch() {
    for case in cases() {
        let run = Run::new(&case, "full", "");
        let (b, d) = (run.boundary(), run.widths());
        let hidden: u64 = d[1..case.layers].iter().sum();
        for epoch in 0..case.epochs {
            let features = if epoch == 0 { 4 * b * d[0] } else { 0 };
            assert_eq!(run.epoch(epoch, TrafficKind::Feature), features);
            assert_eq!(run.epoch(epoch, TrafficKind::Activation), 4 * b * hidden);
            assert_eq!(
                run.epoch(epoch, TrafficKind::ActivationGradient),
                4 * b * hidden
            );
        }
        assert_eq!(b > 0, case.workers > 1);
        let resent = Run::new(&case, "full", "cache_features = false");
        for epoch in 0..case.epochs {
            assert_eq!(resent.epoch(epoch, TrafficKind::Feature), 4 * b * d[0]);
        }
    }
}

#[test]
fn every_strategy_that_sums_gradients_sends_what_a_ring_sends() {
    for case in cases() {
        for kind in [
            "full", "isolated", "fixed", "varco", "bns", "pipe", "adaqp", "grappa",
        ] {
            let run = Run::new(&case, kind, "");
            let p = case.workers as u64;
            // Grappa's sum of weights is one number more.
            let values = run.outcome.parameters as u64 + u64::from(kind == "grappa");
            for epoch in 0..case.epochs {
                let sent = run.epoch(epoch, TrafficKind::ParameterGradient);
                assert_eq!(sent, 2 * (p - 1) * 4 * values, "{kind}, {p} workers");
            }
        }
    }
}

#[test]
fn bns_sends_a_share_of_every_pairs_rows_and_their_ids() {
    for case in cases() {
        // Exact shares of the pairs: the numerator and the denominator of p.
        for (share, over) in [(1, 4), (1, 2), (1, 1), (0, 1)] {
            let p = share as f64 / over as f64;
            let options = format!("share = {p:?}");
            let run = Run::new(&case, "bns", &options);
            let resent = Run::new(&case, "bns", &format!("{options}\ncache_features = false"));
            let drawn = run.crossing(|rows| rows * share / over);
            let whole = run.boundary();
            let d = run.widths();
            let hidden: u64 = d[1..case.layers].iter().sum();
            for epoch in 0..case.epochs {
                let features = if epoch == 0 { 4 * whole * d[0] } else { 0 };
                assert_eq!(run.epoch(epoch, TrafficKind::Feature), features);
                let again = resent.epoch(epoch, TrafficKind::Feature);
                assert_eq!(again, 4 * drawn * d[0]);
                for run in [&run, &resent] {
                    let of = |kind| run.epoch(epoch, kind);
                    assert_eq!(of(TrafficKind::Sample), 8 * drawn);
                    assert_eq!(of(TrafficKind::Activation), 4 * drawn * hidden);
                    assert_eq!(of(TrafficKind::ActivationGradient), 4 * drawn * hidden);
                }
            }
        }
    }
}

#[test]
fn isolated_sends_no_node_data() {
    let run = Run::new(&Case::default(), "isolated", "");
    assert!(run.boundary() > 0);
    assert!(
        run.all()
            .iter()
            .all(|(lane, _, _)| lane.kind == TrafficKind::ParameterGradient)
    );
}

/// Bytes of one epoch at ratio `c`: everything but the last layer's input is compressed, and at least one column travels.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // columns are few
fn compressed(run: &Run, c: f64) -> (u64, u64) {
    let (b, d) = (run.boundary(), run.widths());
    let last = d.len() - 2;
    let columns = |l: usize| {
        if l == last {
            d[l]
        } else {
            ((d[l] as f64 / c).floor() as u64).max(1)
        }
    };
    let hidden: u64 = (1..=last).map(columns).sum();
    (4 * b * columns(0), 4 * b * hidden)
}

fn assert_compressed(run: &Run, epoch: usize, c: f64) {
    let (features, hidden) = compressed(run, c);
    let what = format!("epoch {epoch} at ratio {c}");
    assert_eq!(run.epoch(epoch, TrafficKind::Feature), features, "{what}");
    assert_eq!(run.epoch(epoch, TrafficKind::Activation), hidden, "{what}");
    assert_eq!(
        run.epoch(epoch, TrafficKind::ActivationGradient),
        hidden,
        "{what}"
    );
}

#[test]
fn fixed_compression_sends_its_share_of_the_columns() {
    for ratio in [1.0, 2.0, 2.5, 8.0, 128.0] {
        let run = Run::new(&Case::default(), "fixed", &format!("ratio = {ratio}"));
        for epoch in 0..3 {
            assert_compressed(&run, epoch, ratio);
        }
    }
}

#[test]
fn varco_sends_what_its_schedule_says_in_every_epoch() {
    let case = Case {
        epochs: 12,
        ..Case::default()
    };
    let run = Run::new(
        &case,
        "varco",
        "schedule = { kind = \"linear\", from = 10, to = 1, slope = 2 }",
    );
    let mut before = f64::INFINITY;
    for epoch in 0..12 {
        // c(t) = max(c_max − a·t·(c_max − c_min)/(T − 2), c_min)
        let ratio = (10.0 - 2.0 * epoch as f64 * 9.0 / 10.0).max(1.0);
        assert_eq!(run.outcome.epochs[epoch].compression_ratio, Some(ratio));
        assert_compressed(&run, epoch, ratio);
        assert!(ratio <= before);
        before = ratio;
    }
    assert!((before - 1.0).abs() < f64::EPSILON, "it ends exact");
}
