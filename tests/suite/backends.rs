//! One training on every backend of this build.

use crate::common::{Case, assert_close, distance, losses, other_backends};
use crate::probe::Probe;
use grapevine::graph::BatchSpec;
use grapevine::model::{ModelKind, NormKind, OptimizerConfig};
use grapevine::sim::Backend;

#[test]
fn a_step_has_the_same_loss_and_gradient_on_every_backend() {
    let (backends, _turn) = other_backends("a training step");
    for backend in backends {
        for (kind, norm) in [
            (ModelKind::Gcn, NormKind::None),
            (ModelKind::Sage, NormKind::Layer),
            (ModelKind::SagePool, NormKind::None),
            (ModelKind::Gat, NormKind::None),
            (ModelKind::Gin, NormKind::Layer),
        ] {
            let case = |backend| Case {
                backend,
                kind,
                norm,
                workers: 2,
                epochs: 2,
                optimizer: OptimizerConfig::Sgd {
                    learning_rate: 0.1,
                    weight_decay: 1e-3,
                    momentum: 0.5,
                },
                ..Case::default()
            };
            let train = |case: Case| {
                let probe = Probe::default();
                let losses = losses(&case.train("probe", &probe));
                let gradients = probe.seen.lock().unwrap().gradients.clone();
                (losses, gradients)
            };
            let what = format!("{kind:?} on {backend:?}");
            let expected = train(case(Backend::Flex));
            let found = train(case(backend));
            assert_close(&found.0, &expected.0, 1e-4, &what);
            for (found, expected) in found.1.iter().zip(&expected.1) {
                assert_eq!(found[0], found[1], "{what}: replicas agree");
                let apart = distance(&found[0], &expected[0]);
                assert!(apart <= 1e-4, "{what}: {apart:e}");
            }
        }
    }
}

#[test]
fn every_strategy_trains_on_every_backend() {
    let (backends, _turn) = other_backends("strategies");
    for backend in backends {
        for kind in [
            "full", "isolated", "fixed", "varco", "bns", "pipe", "adaqp", "grappa", "retexo",
            "distdgl", "llcg", "cluster",
        ] {
            let batches = BatchSpec {
                size: 10,
                fanouts: vec![3, 2],
            };
            let case = |backend| Case {
                batch: (kind == "distdgl").then(|| batches.clone()),
                backend,
                workers: 2,
                layers: 2,
                epochs: 1,
                ..Case::default()
            };
            let expected = losses(&case(Backend::Flex).run(kind, ""));
            let found = losses(&case(backend).run(kind, ""));
            assert_close(&found, &expected, 1e-4, &format!("{kind} on {backend:?}"));
        }
    }
}
