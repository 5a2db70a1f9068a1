//! What everything else hangs on: a strategy that loses nothing trains as one device does.

use crate::common::{CORA, Case, KINDS, assert_close, distance, losses};
use crate::probe::Probe;
use crate::reference::single_device;
use grapevine::graph::PartitionMethod;
use grapevine::model::{NormKind, OptimizerConfig};
use grapevine::sim::{Outcome, Scores};
use grapevine::strategies::parts::ExchangePoint;

/// Strategies that lose nothing when there is nobody to send to.
pub(crate) const LOSSLESS: [(&str, &str); 31] = [
    ("full", ""),
    ("full", "exchange = \"product\"\ncache_features = false"),
    ("full", "cache_features = false"),
    ("isolated", ""),
    ("pipe", ""),
    ("pipe", "smoothing = \"both\""),
    ("sylvie", ""),
    ("ecgraph", ""),
    ("cagnet", ""),
    ("sancus", ""),
    ("train", "rows = \"blocks\"\nbound = 2"),
    ("sylvie", "cache_features = false\nlate = false"),
    ("adaqp", "assign_every = 2"),
    ("adaqp", "bits = 2"),
    ("bns", ""),
    ("bns", "share = 0.5\ncache_features = false"),
    ("fixed", "ratio = 1"),
    (
        "varco",
        "schedule = { kind = \"linear\", from = 1, to = 1 }",
    ),
    ("grappa", "repartition_every = 2"),
    (
        "grappa",
        "halo = false\nweight = \"node_ht\"\nnormalise = \"none\"\nshrinkage = \"none\"",
    ),
    ("grappa", "weight = \"none\""),
    ("grappa", "halo_degrees = \"authors\""),
    (
        "grappa",
        "halo = false\nweight = \"batch_mean\"\nshrinkage = \"lambda\"\nlambda = 0.25\ncap = 1.0",
    ),
    (
        "grappa",
        "weight = \"node_ht\"\nshrinkage = \"kappa\"\nkappa = 3\nnormalise = \"rho\"\ncoverage_hops = 2",
    ),
    (
        "grappa",
        "weight = \"batch_gram\"\nshrinkage = \"james_stein\"\nnormalise = \"rho\"",
    ),
    (
        "grappa",
        "chunks = 3\nschedule = \"regroup\"\nrepartition_every = 1\nweight = \"node_hajek\"",
    ),
    ("grappa", "chunks = 2\nremote_sampling = 0.5"),
    ("llcg", "local_steps = 1\nrho = 1\nserver_steps = 0"),
    ("fedavg", "local_steps = 1"),
    ("llcg", "local_steps = 0\nserver_steps = 1"),
    ("cluster", "clusters = 2\nclusters_per_batch = 2"),
];

fn scores(outcome: &Outcome) -> Vec<Scores> {
    let all = outcome.epochs.iter();
    all.map(|record| record.scores.expect("evaluated in every epoch"))
        .collect()
}

fn models() -> impl Iterator<Item = Case> {
    let plain = Case {
        self_loops: Some(false),
        epochs: 5,
        ..Case::default()
    };
    let all = KINDS.into_iter().flat_map(|kind| {
        [
            (2, NormKind::None, false),
            (3, NormKind::None, false),
            (3, NormKind::Layer, true),
        ]
        .into_iter()
        .map(move |(layers, norm, residual)| Case {
            kind,
            layers,
            norm,
            residual,
            epochs: 5,
            ..Case::default()
        })
    });
    all.chain([plain])
}

fn name(case: &Case) -> String {
    format!(
        "{:?} of {} layers, norm {:?}, residual {}, self-loops {:?}",
        case.kind, case.layers, case.norm, case.residual, case.self_loops
    )
}

/// Losses and accuracies of every epoch, to the bit. As the loss of an epoch is that of the parameters after the one before, these
/// are equal too.
pub(crate) fn assert_trains_as_one_device(case: &Case, kind: &str, options: &str) {
    let expected = single_device(&case.setting(Case::strategy(kind, options).as_ref()));
    let outcome = case.run(kind, options);
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let what = format!("{kind} {options}, {}", name(case));
    assert_eq!(
        bits(&losses(&outcome)),
        bits(&expected.losses),
        "{what}: {:?} instead of {:?}",
        losses(&outcome),
        expected.losses
    );
    assert_eq!(scores(&outcome), expected.scores, "{what}");
    let (first, later) = expected.losses.split_first().unwrap();
    assert!(later.iter().any(|loss| loss < first), "it learns: {what}");
}

#[test]
fn one_worker_with_any_lossless_strategy_is_single_device_training_to_the_bit() {
    for model in models() {
        let case = Case {
            workers: 1,
            ..model
        };
        for (kind, options) in LOSSLESS {
            assert_trains_as_one_device(&case, kind, options);
        }
    }
}

#[test]
fn one_worker_on_cora_with_its_sparse_features_is_single_device_training_to_the_bit() {
    for kind in KINDS {
        let case = Case {
            data: CORA,
            workers: 1,
            layers: 2,
            hidden: 16,
            kind,
            epochs: 3,
            optimizer: OptimizerConfig::Adam {
                learning_rate: 0.01,
                weight_decay: 5e-4,
                epsilon: 1e-8,
            },
            ..Case::default()
        };
        for (strategy, options) in [("full", ""), ("fixed", "ratio = 1"), ("grappa", "")] {
            assert_trains_as_one_device(&case, strategy, options);
        }
    }
}

#[test]
fn one_worker_ends_with_the_parameters_of_one_device_to_the_bit() {
    for model in models() {
        let case = Case {
            workers: 1,
            ..model
        };
        let probe = Probe::default();
        let expected = single_device(&case.setting(&probe));
        case.train("probe", &probe);
        let seen = probe.seen.lock().unwrap();
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(
            bits(&seen.parameters[0]),
            bits(&expected.parameters),
            "{}",
            name(&case)
        );
        for (epoch, gradient) in expected.gradients.iter().enumerate() {
            assert_eq!(
                bits(&seen.gradients[epoch][0]),
                bits(gradient),
                "{}",
                name(&case)
            );
        }
    }
}

/// Small steps, so that rounding does not send the trajectories apart.
const STEADY: OptimizerConfig = OptimizerConfig::Sgd {
    learning_rate: 0.05,
    weight_decay: 0.0,
    momentum: 0.9,
};

#[test]
fn full_on_many_workers_has_the_gradients_of_one_device_at_every_step() {
    for model in models() {
        for workers in [2, 4, 8] {
            for method in [PartitionMethod::Random, PartitionMethod::Metis] {
                let case = Case {
                    workers,
                    method,
                    optimizer: STEADY,
                    ..model.clone()
                };
                let what = format!("{}, {workers} workers, {method:?}", name(&case));
                let probe = Probe::default();
                let expected = single_device(&case.setting(&probe));
                let outcome = case.train("probe", &probe);
                assert_close(&losses(&outcome), &expected.losses, 1e-5, &what);
                let seen = probe.seen.lock().unwrap();
                for (epoch, gradient) in expected.gradients.iter().enumerate() {
                    let found = &seen.gradients[epoch];
                    assert_eq!(found.len(), workers);
                    assert!(
                        found.iter().all(|g| *g == found[0]),
                        "{what}: replicas agree"
                    );
                    let apart = distance(&found[0], gradient);
                    // At first the parameters are equal to the bit; later they are as far apart as
                    // earlier sums were rounded.
                    let tolerance = if epoch == 0 { 1e-5 } else { 5e-5 };
                    assert!(apart <= tolerance, "{what}, epoch {epoch}: {apart:e}");
                }
                assert!(
                    seen.parameters.iter().all(|p| *p == seen.parameters[0]),
                    "{what}"
                );
                // The built-in strategy is the same program, with features sent once.
                let full = case.run("full", "exchange = \"input\"");
                assert_eq!(losses(&full), losses(&outcome), "{what}");
            }
        }
    }
}

#[test]
fn rows_that_cross_after_the_product_have_the_gradients_of_one_device_at_every_step() {
    for model in models() {
        for (workers, point, name_of) in [
            (2, ExchangePoint::Product, "product"),
            (4, ExchangePoint::Narrower, "narrower"),
        ] {
            let case = Case {
                workers,
                optimizer: STEADY,
                ..model.clone()
            };
            let what = format!("{}, {workers} workers, {name_of}", name(&case));
            let probe = Probe {
                point,
                ..Probe::default()
            };
            let expected = single_device(&case.setting(&probe));
            let outcome = case.train("probe", &probe);
            assert_close(&losses(&outcome), &expected.losses, 1e-5, &what);
            let seen = probe.seen.lock().unwrap();
            for (epoch, gradient) in expected.gradients.iter().enumerate() {
                let found = &seen.gradients[epoch];
                assert!(found.iter().all(|g| *g == found[0]), "{what}: replicas");
                let apart = distance(&found[0], gradient);
                let tolerance = if epoch == 0 { 1e-5 } else { 5e-5 };
                assert!(apart <= tolerance, "{what}, epoch {epoch}: {apart:e}");
            }
            drop(seen);
            // The built-in strategy is the same program, and so with features sent once.
            let options = format!("exchange = \"{name_of}\"\ncache_features = false");
            let full = case.run("full", &options);
            assert_eq!(losses(&full), losses(&outcome), "{what}");
            let once = case.run("full", &format!("exchange = \"{name_of}\""));
            assert_close(&losses(&once), &expected.losses, 1e-5, &what);
        }
    }
}

#[test]
fn dropping_cut_edges_is_not_exact_so_the_anchor_can_fail() {
    let case = Case {
        optimizer: STEADY,
        ..Case::default()
    };
    let expected = single_device(&case.setting(Case::strategy("full", "").as_ref()));
    let isolated = losses(&case.run("isolated", ""));
    let apart = |losses: &[f64]| (losses[0] / expected.losses[0] - 1.0).abs();
    assert!(apart(&isolated) > 1e-3, "{isolated:?}");
    assert!(apart(&losses(&case.run("full", ""))) < 1e-5);
}

#[test]
fn varco_and_fixed_at_ratio_one_are_full_to_the_bit() {
    for model in models() {
        // What crosses of the first layer depends on whether features are kept.
        let (kept, resent) = (
            model.run("full", ""),
            model.run("full", "cache_features = false"),
        );
        for (kind, options) in [
            (
                "varco",
                "schedule = { kind = \"linear\", from = 1, to = 1 }",
            ),
            (
                "varco",
                "schedule = { kind = \"cosine\", from = 1 }\nrescale = true",
            ),
            (
                "varco",
                "schedule = { kind = \"exponential\", from = 1 }\ncache_features = true",
            ),
            ("fixed", "ratio = 1"),
            ("fixed", "ratio = 1\nrescale = true"),
        ] {
            let outcome = model.run(kind, options);
            let keeps = options.contains("cache_features = true");
            let exact = if keeps { &kept } else { &resent };
            assert_eq!(losses(&outcome), losses(exact), "{kind} {options}");
            assert_eq!(scores(&outcome), scores(exact), "{kind} {options}");
        }
        // At other ratios something is lost.
        assert_ne!(losses(&model.run("fixed", "ratio = 2")), losses(&resent));
    }
}
