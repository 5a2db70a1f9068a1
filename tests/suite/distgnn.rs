//! `DistGNN`: partial sums over edges that were dealt out.

use std::collections::BTreeSet;

use crate::common::{Case, RESTING, assert_close, bits, losses};
use crate::reference::single_device;
use grapevine::graph::{EdgeMethod, VertexCut};
use grapevine::model::{ModelKind, NormKind, OptimizerConfig};
use grapevine::net::TrafficKind;

/// Models that begin a layer with a sum.
const SUMS: [ModelKind; 3] = [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gin];

#[test]
fn without_delay_it_is_training_on_one_device() {
    let shapes = [
        (1, NormKind::None, false, None),
        (2, NormKind::None, false, Some(false)),
        (3, NormKind::Layer, true, None),
    ];
    for kind in SUMS {
        for (layers, norm, residual, self_loops) in shapes {
            for (workers, cut) in [(1, "libra"), (2, "hdrf"), (5, "libra"), (6, "random")] {
                let case = Case {
                    kind,
                    layers,
                    norm,
                    residual,
                    self_loops: self_loops.filter(|_| kind != ModelKind::Gin),
                    workers,
                    epochs: 6,
                    optimizer: OptimizerConfig::Sgd {
                        learning_rate: 0.05,
                        weight_decay: 0.0,
                        momentum: 0.9,
                    },
                    ..Case::default()
                };
                let options = format!("delay = 0\ncut = \"{cut}\"");
                let setting = case.setting(Case::strategy("distgnn", &options).as_ref());
                let expected = single_device(&setting).losses;
                let found = losses(&case.run("distgnn", &options));
                let what = format!("{kind:?}, {layers} layers, {workers} workers, {cut}");
                assert_close(&found, &expected, 2e-5, &what);
            }
        }
    }
}

#[test]
fn sums_of_all_clones_but_the_owners_cross_and_come_back() {
    for (kind, layers, workers, cut, method) in [
        (ModelKind::Gcn, 3, 4, "libra", EdgeMethod::Libra),
        (ModelKind::Sage, 2, 3, "hdrf", EdgeMethod::Hdrf),
        (ModelKind::Gin, 1, 5, "random", EdgeMethod::Random),
    ] {
        let case = Case {
            kind,
            layers,
            workers,
            epochs: 14,
            ..Case::default()
        };
        let of = |delay: usize| {
            let options = format!("delay = {delay}\ncut = \"{cut}\"");
            case.run("distgnn", &options).ledger
        };
        let setting = case.setting(Case::strategy("distgnn", "").as_ref());
        let graph = &setting.dataset.graph;
        // Counted from the edges, not from the rows that the plan lists.
        let mut clones = BTreeSet::new();
        let parts = VertexCut::new(graph, workers, method, case.seed).parts;
        for (rank, part) in parts.iter().enumerate() {
            for (u, v) in part.adjacency.iter_edges() {
                clones.extend([u, v].map(|row| (part.nodes[row as usize], rank)));
            }
        }
        let nodes: BTreeSet<u32> = clones.iter().map(|(node, _)| *node).collect();
        let beside = (clones.len() - nodes.len()) as u64;
        assert!(beside > 0);
        let widths = setting.model.widths.iter().map(|&width| width as u64);
        let widths: Vec<u64> = widths.take(layers).collect();
        let hidden: u64 = widths[1..].iter().sum();
        let expected = [
            (TrafficKind::Feature, 8 * beside * widths[0]),
            (TrafficKind::Activation, 8 * beside * hidden),
            (TrafficKind::ActivationGradient, 8 * beside * hidden),
        ];
        let exact = of(0);
        for (kind, bytes) in expected {
            let sent = |epoch: usize, of: &grapevine::net::Ledger| {
                of.epoch(epoch)
                    .map_or(0, |traffic| traffic.payload_of(kind).0)
            };
            assert!((0..14).all(|epoch| sent(epoch, &exact) == bytes), "{kind}");
            for delay in [1, 2, 4] {
                let late = of(delay);
                // Until the first sums have come nothing goes back.
                let first: u64 = (0..delay).map(|epoch| sent(epoch, &late)).sum();
                assert_eq!(first, bytes / 2, "{kind}, {delay}");
                for start in delay..=14 - delay {
                    let all: u64 = (start..start + delay).map(|epoch| sent(epoch, &late)).sum();
                    assert_eq!(all, bytes, "{kind}, {delay}");
                    // Bins differ by a node each, of a few clones.
                    let share = sent(start, &late) as f64 * delay as f64 / bytes.max(1) as f64;
                    assert!(bytes == 0 || (share - 1.0).abs() < 0.3, "{share}");
                }
            }
        }
    }
}

#[test]
fn what_is_late_is_right_where_nothing_changes() {
    for kind in SUMS {
        let resting = Case {
            kind,
            dropout: 0.0,
            epochs: 16,
            optimizer: RESTING,
            ..Case::default()
        };
        let exact = bits(&resting.run("distgnn", "delay = 0"));
        let late = bits(&resting.run("distgnn", "delay = 1"));
        // Totals come to clones after two epochs, in each of three layers.
        assert_eq!(late[6..], exact[6..], "{kind:?}");
        assert_ne!(late[..6], exact[..6], "{kind:?}");
        // A bin at a time: what is used repeats itself with the bins.
        let bins = bits(&resting.run("distgnn", "delay = 2"));
        assert_eq!(bins[12], bins[14], "{kind:?}");
        assert_ne!(bins[12], exact[12], "{kind:?}");
    }
}

#[test]
fn sums_that_are_five_epochs_late_cost_little_accuracy() {
    let [exact, late] = [0, 5].map(|delay| Case::learnt("distgnn", &format!("delay = {delay}")));
    assert!(late > exact - 0.03, "{late} instead of {exact}");
}

#[test]
fn what_does_not_go_is_refused() {
    for kind in [ModelKind::Gat, ModelKind::SagePool] {
        let case = Case {
            kind,
            ..Case::default()
        };
        let (key, says) = case.refused("distgnn", "");
        assert_eq!(key, None);
        assert!(says.contains("is no sum: take model.kind"), "{says}");
    }
    let case = Case::default();
    for (options, says) in [
        ("cut = \"metis\"", "libra"),
        ("delay = -1", "usize"),
        ("delays = 1", "delay"),
    ] {
        let (_, message) = case.refused("distgnn", options);
        assert!(message.contains(says), "{options}: {message}");
    }
    let batches = Case::in_batches();
    let (_, says) = batches.refused("distgnn", "");
    assert!(says.contains("training.batch"), "{says}");
    // Thirty workers, and fewer components for edges to begin in.
    let few = Case {
        data: "synthetic = { kind = \"sbm\", nodes = 30, classes = 3, features = 10, degree_within = 2.0, degree_between = 1.0 }\nsplit = { train = 0.5, val = 0.2 }",
        workers: 30,
        ..Case::default()
    };
    let (key, says) = few.refused("distgnn", "");
    assert_eq!(key.as_deref(), Some("cut"));
    assert!(says.contains("take \"hdrf\" or \"random\""), "{says}");
    // Without an edge for each no cut would do.
    let fewer = Case {
        data: "synthetic = { kind = \"sbm\", nodes = 30, classes = 3, features = 10, degree_within = 0.1, degree_between = 0.1 }\nsplit = { train = 0.5, val = 0.2 }",
        ..few
    };
    let (_, says) = fewer.refused("distgnn", "");
    assert!(says.contains("lower partition.workers"), "{says}");
}
