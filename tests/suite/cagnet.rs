//! CAGNET's algorithms on a grid of workers: 1.5D and 2D.

use crate::common::{Case, assert_close, bits, losses};
use crate::reference::single_device;
use grapevine::graph::PartitionMethod;
use grapevine::model::{ModelKind, NormKind, OptimizerConfig};
use grapevine::net::{Lane, TrafficKind};

/// Models that begin a layer with a sum.
const SUMS: [ModelKind; 3] = [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gin];

/// Options, and numbers of workers that they are for.
const GRIDS: [(&str, usize); 8] = [
    ("algorithm = \"1.5d\"\nreplication = 1", 3),
    ("algorithm = \"1.5d\"", 4),
    ("algorithm = \"1.5d\"\nreplication = 2", 10),
    ("algorithm = \"1.5d\"\nreplication = 3", 9),
    ("algorithm = \"1.5d\"\nreplication = 1", 1),
    ("algorithm = \"2d\"", 1),
    ("algorithm = \"2d\"", 4),
    ("algorithm = \"2d\"", 9),
];

#[test]
fn a_grid_of_workers_trains_as_one_device() {
    let shapes = [
        (1, NormKind::None, false, None),
        (2, NormKind::None, false, Some(false)),
        (3, NormKind::Layer, true, Some(true)),
    ];
    for kind in SUMS {
        for (layers, norm, residual, self_loops) in shapes {
            for (options, workers) in GRIDS {
                let case = Case {
                    kind,
                    layers,
                    norm,
                    residual,
                    self_loops: self_loops.filter(|_| kind != ModelKind::Gin),
                    workers,
                    method: PartitionMethod::Metis,
                    epochs: 6,
                    optimizer: OptimizerConfig::Sgd {
                        learning_rate: 0.05,
                        weight_decay: 0.0,
                        momentum: 0.9,
                    },
                    ..Case::default()
                };
                let setting = case.setting(Case::strategy("cagnet", options).as_ref());
                let expected = single_device(&setting).losses;
                let found = losses(&case.run("cagnet", options));
                let what = format!("{kind:?}, {layers} layers, {workers} workers, {options}");
                assert_close(&found, &expected, 2e-5, &what);
            }
        }
    }
}

#[test]
fn each_product_costs_what_the_paper_says_whatever_the_cut() {
    for (options, workers) in GRIDS {
        for method in [PartitionMethod::Random, PartitionMethod::Metis] {
            let case = Case {
                workers,
                method,
                epochs: 2,
                ..Case::default()
            };
            let ledger = case.run("cagnet", options).ledger;
            let (n, p) = (120_u64, workers as u64);
            let side = workers.isqrt() as u64;
            let c = match options.split("replication = ").nth(1) {
                Some(c) => c.parse().expect("a number"),
                None => 2,
            };
            let product = |d: u64| {
                if options.contains("2d") {
                    return 4 * 2 * (side - 1) * n * d;
                }
                4 * (p / c - 1 + 2 * (c - 1)) * n * d
            };
            let expected = [
                (TrafficKind::Feature, product(10)),
                (TrafficKind::Activation, product(8 + 8)),
                (TrafficKind::ActivationGradient, product(8 + 8)),
            ];
            for (kind, bytes) in expected {
                for epoch in 0..2 {
                    let traffic = ledger.epoch(epoch);
                    let sent = traffic.map_or(0, |traffic| traffic.payload_of(kind).0);
                    assert_eq!(sent, bytes, "{kind}, {workers} workers, {options}");
                }
            }
        }
    }
}

#[test]
fn a_worker_hears_what_the_paper_says_of_a_process() {
    // Random parts of 120 nodes are of one size.
    let heard = |options: &str, workers: usize| -> Vec<u64> {
        let case = Case {
            workers,
            epochs: 1,
            ..Case::default()
        };
        let traffic = case.run("cagnet", options).ledger.traffic();
        let to = |rank: usize| {
            let hears = |lane: &Lane| {
                (lane.kind, lane.layer, lane.to) == (TrafficKind::Activation, 1, rank as u32)
            };
            let heard = traffic.iter().filter(|(lane, ..)| hears(lane));
            heard.map(|(_, bytes, count)| bytes.0 * count).sum()
        };
        (0..workers).map(to).collect()
    };
    let (n, d) = (120, 8);
    // Of two columns each reads two of four rows of workers; each row is read in one column.
    let (p, c) = (8, 2);
    let hears = |own: u64| 4 * (n * d / c + 2 * n * d * (c - 1) / p - own);
    let own = n * d * c / p;
    let expected = [own, 0, own, 0, 0, own, 0, own].map(hears);
    assert_eq!(heard("algorithm = \"1.5d\"", 8), expected);
    let p = 4;
    assert_eq!(
        heard("algorithm = \"2d\"", 4),
        [4 * (2 * n * d / 2 - 2 * n * d / p); 4]
    );
}

#[test]
fn one_worker_a_row_and_the_1d_algorithm_send_as_much() {
    let case = Case::default();
    let sent = |options: &str| {
        let traffic = case.run("cagnet", options).ledger.traffic();
        [
            TrafficKind::Feature,
            TrafficKind::Activation,
            TrafficKind::ActivationGradient,
        ]
        .map(|kind| traffic.payload_of(kind))
    };
    assert_eq!(sent("algorithm = \"1.5d\"\nreplication = 1"), sent(""));
    assert_eq!(sent("algorithm = \"1d\""), sent(""));
}

#[test]
fn gradients_go_through_codecs_on_a_grid_too() {
    let case = Case::default();
    for algorithm in ["1.5d", "2d"] {
        let plain = format!("algorithm = \"{algorithm}\"");
        let coded = format!("{plain}\ngradients = {{ codec = \"f16\" }}");
        assert_ne!(
            bits(&case.run("cagnet", &coded)),
            bits(&case.run("cagnet", &plain))
        );
    }
}

#[test]
fn grids_that_are_none_are_refused() {
    let case = |workers| Case {
        workers,
        ..Case::default()
    };
    let says = |workers, options: &str, key: &str, what: &str| {
        // What is known before any data are read.
        let table = options.parse().expect("options are TOML");
        let registry = grapevine::strategies::Registry::builtin();
        let (found, message) = match registry.read("cagnet", &table) {
            Err(error) => (error.key, error.message),
            Ok(_) => case(workers).refused("cagnet", options),
        };
        assert_eq!(found.as_deref(), Some(key), "{message}");
        assert!(message.contains(what), "{message}");
    };
    says(6, "algorithm = \"2d\"", "algorithm", "take 4 or 9");
    says(5, "algorithm = \"1.5d\"", "replication", "does not divide");
    let three = "algorithm = \"1.5d\"\nreplication = 3";
    says(6, three, "replication", "whose square is more");
    says(4, "replication = 2", "replication", "is of the 1.5D");
    says(4, "algorithm = \"3d\"", "algorithm", "unknown variant");
    let cached = "algorithm = \"2d\"\ncache_features = true";
    says(4, cached, "cache_features", "is of the 1D algorithm");
    let narrow = Case {
        hidden: 2,
        workers: 9,
        ..Case::default()
    };
    let (key, what) = narrow.refused("cagnet", "algorithm = \"2d\"");
    assert_eq!(key.as_deref(), Some("algorithm"));
    assert!(what.contains("fewer than a row has workers"), "{what}");
    let data = narrow.data.replace("features = 10", "features = 2");
    let featureless = Case {
        data: data.leak(),
        hidden: 8,
        ..narrow
    };
    let (_, what) = featureless.refused("cagnet", "algorithm = \"2d\"");
    // Wider layers would not help.
    assert!(
        what.contains("fewer features") && !what.contains("hidden"),
        "{what}"
    );
    for kind in [ModelKind::Gat, ModelKind::SagePool] {
        let case = Case {
            kind,
            ..Case::default()
        };
        let (_, what) = case.refused("cagnet", "algorithm = \"1.5d\"");
        assert!(what.contains("is no sum"), "{what}");
    }
    let batches = Case::in_batches();
    let (key, _) = batches.refused("cagnet", "algorithm = \"2d\"");
    assert_eq!(key, None);
}
