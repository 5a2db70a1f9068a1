//! One training on every backend of this build.

use crate::common::{Case, assert_close, losses, other_backends};
use crate::probe::{assert_same_steps, steady};
use grapevine::graph::BatchSpec;
use grapevine::model::{ModelKind, NormKind};
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
                ..steady(kind, norm)
            };
            let what = format!("{kind:?} on {backend:?}");
            assert_same_steps(&case(backend), &case(Backend::Flex), &what);
        }
    }
}

#[test]
fn every_strategy_trains_on_every_backend() {
    let (backends, _turn) = other_backends("strategies");
    for backend in backends {
        for kind in [
            "full", "isolated", "fixed", "varco", "bns", "pipe", "adaqp", "grappa", "retexo",
            "distdgl", "llcg", "cluster", "sylvie", "cagnet", "sancus", "fedavg", "fedgcn",
            "ecgraph", "distgnn",
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
                // The loss of the second epoch tells what the step of the first did.
                epochs: 2,
                optimizer: steady(ModelKind::Gcn, NormKind::None).optimizer,
                ..Case::default()
            };
            let expected = losses(&case(Backend::Flex).run(kind, ""));
            let found = losses(&case(backend).run(kind, ""));
            assert_close(&found, &expected, 1e-4, &format!("{kind} on {backend:?}"));
        }
    }
}
