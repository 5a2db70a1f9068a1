//! What is sent, against the formulas of the papers.

use crate::common::Case;
use grapevine::model::ModelKind;
use grapevine::net::{Traffic, TrafficKind};
use grapevine::sim::{Decision, Outcome, Setting};

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

    /// Columns of what the first product of each layer makes of a row, as the definitions of the layers have it.
    fn products(&self) -> Vec<u64> {
        let (model, d) = (&self.setting.model, self.widths());
        let product = |layer: usize| match model.kind {
            ModelKind::Gcn | ModelKind::Sage => d[layer + 1],
            // Heads side by side, or as many of the classes' width.
            ModelKind::Gat if layer + 2 < d.len() => d[layer + 1],
            ModelKind::Gat => model.heads as u64 * d[layer + 1],
            ModelKind::SagePool | ModelKind::Gin => d[1],
        };
        (0..d.len() - 1).map(product).collect()
    }

    /// Columns with which rows of each layer cross where they are narrower.
    fn narrower(&self) -> Vec<u64> {
        let products = self.products().into_iter();
        let both = products.zip(self.widths());
        both.map(|(product, input)| product.min(input)).collect()
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
        let (b, d, w) = (run.boundary(), run.widths(), run.narrower());
        let points = [
            ("narrower", w.clone()),
            ("input", d[..case.layers].to_vec()),
            ("product", run.products()),
        ];
        for (point, columns) in points {
            let run = Run::new(&case, "full", &format!("exchange = \"{point}\""));
            let hidden: u64 = columns[1..].iter().sum();
            for epoch in 0..case.epochs {
                let features = if epoch == 0 { 4 * b * d[0] } else { 0 };
                let of = |kind| run.epoch(epoch, kind);
                assert_eq!(of(TrafficKind::Feature), features, "{point}");
                assert_eq!(of(TrafficKind::Activation), 4 * b * hidden, "{point}");
                assert_eq!(of(TrafficKind::ActivationGradient), 4 * b * hidden);
            }
            let options = format!("exchange = \"{point}\"\ncache_features = false");
            let resent = Run::new(&case, "full", &options);
            let of = |kind| resent.epoch(1, kind);
            // A product of the features is an activation, and has a gradient.
            let product = point == "product" || (point == "narrower" && w[0] < d[0]);
            let (features, first) = if product { (0, columns[0]) } else { (d[0], 0) };
            assert_eq!(of(TrafficKind::Feature), 4 * b * features, "{point}");
            assert_eq!(of(TrafficKind::Activation), 4 * b * (first + hidden));
            let back = of(TrafficKind::ActivationGradient);
            assert_eq!(back, 4 * b * (first + hidden), "{point}");
        }
        assert_eq!(b > 0, case.workers > 1);
        // By default where they are narrower.
        let default = Run::new(&case, "full", "cache_features = false");
        let narrower = Run::new(
            &case,
            "full",
            "exchange = \"narrower\"\ncache_features = false",
        );
        assert_eq!(default.outcome.ledger, narrower.outcome.ledger);
    }
}

#[test]
fn every_strategy_that_sums_gradients_sends_what_a_ring_sends() {
    for case in cases() {
        for kind in [
            "full", "isolated", "fixed", "varco", "bns", "pipe", "adaqp", "sylvie", "cagnet",
            "sancus", "distgnn", "grappa",
        ] {
            if kind == "distgnn" && matches!(case.kind, ModelKind::Gat | ModelKind::SagePool) {
                continue; // it is of sums
            }
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
fn sylvie_sends_a_bit_an_entry_and_four_bytes_a_row() {
    for case in cases() {
        for options in ["", "late = false", "cache_features = false"] {
            let run = Run::new(&case, "sylvie", options);
            let (b, d) = (run.boundary(), run.widths());
            let message = |rows: u64, width: u64| 4 * rows + (rows * width).div_ceil(8);
            let layer = |l: usize| run.crossing(|rows| message(rows, d[l]));
            let hidden: u64 = (1..case.layers).map(layer).sum();
            for epoch in 0..case.epochs {
                let features = match (options, epoch) {
                    ("cache_features = false", _) => layer(0),
                    (_, 0) => 4 * b * d[0],
                    _ => 0,
                };
                let of = |kind| run.epoch(epoch, kind);
                assert_eq!(of(TrafficKind::Feature), features, "{options}");
                assert_eq!(of(TrafficKind::Activation), hidden, "{options}");
                assert_eq!(of(TrafficKind::ActivationGradient), hidden, "{options}");
            }
        }
    }
}

#[test]
fn ecgraph_sends_whole_rows_now_and_then_and_two_bits_between() {
    for case in cases() {
        let run = Run::new(&case, "ecgraph", "period = 2");
        let (b, d) = (run.boundary(), run.widths());
        let quantised = |rows: u64, width: u64| 4 * rows + (2 * rows * width).div_ceil(8);
        let hidden = |of: &dyn Fn(u64, u64) -> u64| -> u64 {
            let layer = |l: usize| run.crossing(|rows| of(rows, d[l]));
            (1..case.layers).map(layer).sum()
        };
        let back = hidden(&quantised);
        // Two bits a row say what a reader takes.
        let between = hidden(&|rows, width| quantised(rows, width) + rows.div_ceil(4));
        let whole = hidden(&|rows, width| 4 * rows * width);
        for epoch in 0..case.epochs {
            let of = |kind| run.epoch(epoch, kind);
            let forward = if epoch % 2 == 0 { whole } else { between };
            assert_eq!(
                of(TrafficKind::Feature),
                if epoch == 0 { 4 * b * d[0] } else { 0 }
            );
            assert_eq!(of(TrafficKind::Activation), forward);
            assert_eq!(of(TrafficKind::ActivationGradient), back);
        }
    }
}

#[test]
fn a_tuned_ecgraph_sends_as_many_bits_as_it_decided_for_each_reader() {
    let case = Case {
        workers: 3,
        layers: 3,
        epochs: 14,
        ..Case::default()
    };
    let run = Run::new(&case, "ecgraph", "period = 4\ntune = true");
    let parts = &run.setting.boundary.parts;
    let widths = run.widths();
    let mut bits = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for epoch in 0..case.epochs {
        match run.outcome.decisions.get(&epoch) {
            Some(Decision::ReaderBits(now)) => bits.clone_from(now),
            Some(other) => panic!("{other:?}"),
            None => {}
        }
        let mut between = 0;
        for (part, bits) in parts.iter().zip(&bits) {
            let bits = u64::from(bits.count());
            seen.insert(bits);
            for (_, range) in part.receives.iter() {
                let rows = range.len() as u64;
                let hidden = widths[1..case.layers].iter();
                between += hidden
                    .map(|width| 4 * rows + (bits * rows * width).div_ceil(8) + rows.div_ceil(4))
                    .sum::<u64>();
            }
        }
        let whole = epoch % 4 == 0;
        if !whole {
            assert_eq!(run.epoch(epoch, TrafficKind::Activation), between);
        }
        // Two floats for each worker, of which all together send 2(P − 1) times as many.
        let told = !whole && epoch + 1 < case.epochs;
        let expected = if told { 2 * 2 * 4 * 6 } else { 0 };
        assert_eq!(run.epoch(epoch, TrafficKind::Control), expected);
    }
    assert!(seen.len() > 1, "bits change: {seen:?}");
    assert!(run.outcome.decisions.contains_key(&0));
}

#[test]
fn cagnet_sends_all_rows_to_all_whatever_the_cut() {
    for case in cases() {
        for options in ["", "cache_features = true"] {
            let run = Run::new(&case, "cagnet", options);
            let (n, p) = (
                run.setting.dataset.graph.nodes() as u64,
                case.workers as u64,
            );
            let d = run.widths();
            let product = |columns: u64| 4 * (p - 1) * n * columns;
            let hidden = product(d[1..case.layers].iter().sum());
            for epoch in 0..case.epochs {
                let once = epoch > 0 && !options.is_empty();
                let features = if once { 0 } else { product(d[0]) };
                let of = |kind| run.epoch(epoch, kind);
                assert_eq!(of(TrafficKind::Feature), features);
                assert_eq!(of(TrafficKind::Activation), hidden);
                assert_eq!(of(TrafficKind::ActivationGradient), hidden);
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

/// Bytes of one epoch at ratio `c`: everything but the last layer's rows is compressed, and at least one column travels. First of
/// features, then of other rows each way: of all layers where the product of the features crosses.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // columns are few
fn compressed(run: &Run, c: f64) -> (u64, u64) {
    let (b, d, w) = (run.boundary(), run.widths(), run.narrower());
    let last = w.len() - 1;
    let columns = |l: usize| {
        if l == last {
            w[l]
        } else {
            ((w[l] as f64 / c).floor() as u64).max(1)
        }
    };
    let hidden: u64 = (1..=last).map(columns).sum();
    if w[0] < d[0] {
        (0, 4 * b * (columns(0) + hidden))
    } else {
        (4 * b * columns(0), 4 * b * hidden)
    }
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
    // Ten features, of which the product is narrower or wider.
    for hidden in [8, 16] {
        let case = Case {
            hidden,
            ..Case::default()
        };
        for ratio in [1.0, 2.0, 2.5, 8.0, 128.0] {
            let run = Run::new(&case, "fixed", &format!("ratio = {ratio}"));
            for epoch in 0..3 {
                assert_compressed(&run, epoch, ratio);
            }
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
