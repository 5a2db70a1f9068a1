//! `full` written once more against the public traits, leaving behind the gradients and parameters that the built-in one keeps
//! to itself.

use std::sync::{Arc, Mutex};

use crate::common::{Case, assert_close, distance, losses};
use grapevine::graph::BoundaryPlan;
use grapevine::model::{ModelKind, ModelSpec, NormKind, OptimizerConfig, Work, parameters};
use grapevine::net::{AllReduceKind, Reduce, Traffic, TrafficKind};
use grapevine::sim::{Activity, EpochReport, SimError, Worker};
use grapevine::strategies::Strategy;
use grapevine::strategies::full::plain_wire;
use grapevine::strategies::parts::{
    HaloExchange, LayerwiseTrainer, LocalGraph, Wire, gradient_traffic, halo_traffic,
};

/// What worker `rank` saw.
#[derive(Default)]
pub struct Seen {
    /// All-reduced gradients, one per epoch and worker.
    pub gradients: Vec<Vec<Vec<f32>>>,
    /// Of the trained model, one per worker.
    pub parameters: Vec<Vec<f32>>,
}

/// Exact training that sends everything in every epoch.
#[derive(Default)]
pub struct Probe {
    pub seen: Arc<Mutex<Seen>>,
}

fn wires(layers: usize) -> Vec<Option<Wire>> {
    (0..layers).map(|_| Some(plain_wire())).collect()
}

/// Both cases have the same losses and gradients in every epoch, and in each the replicas agree.
pub fn assert_same_steps(found: &Case, expected: &Case, what: &str) {
    let train = |case: &Case| {
        let probe = Probe::default();
        let losses = losses(&case.train("probe", &probe));
        let gradients = probe.seen.lock().unwrap().gradients.clone();
        (losses, gradients)
    };
    let (found, expected) = (train(found), train(expected));
    assert_close(&found.0, &expected.0, 1e-4, what);
    assert_eq!(found.1.len(), expected.1.len(), "{what}: epochs");
    for (found, expected) in found.1.iter().zip(&expected.1) {
        for replica in found {
            assert_eq!(replica, &found[0], "{what}: replicas agree");
        }
        let apart = distance(&found[0], &expected[0]);
        assert!(apart <= 1e-4, "{what}: {apart:e}");
    }
}

/// Three layers on two workers, with plain steps, in which a wrong gradient shows.
pub fn steady(kind: ModelKind, norm: NormKind) -> Case {
    Case {
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
    }
}

impl Strategy for Probe {
    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, _epoch: usize) -> Traffic {
        let mut traffic = halo_traffic(boundary, model, &wires(model.layers()));
        traffic.merge(&gradient_traffic(
            AllReduceKind::Ring,
            boundary.workers(),
            model.parameters(),
        ));
        traffic
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let wires = wires(worker.setting().model.layers());
        let mut model = worker.new_model();
        let mut optimizer = worker.new_optimizer();
        let mut halo = HaloExchange::new(worker);
        let trainer = LayerwiseTrainer::new(worker, LocalGraph::with_halo(worker));
        for epoch in 0..worker.setting().epochs {
            worker.begin_epoch(epoch);
            let features = halo.features(worker, wires[0].as_ref())?;
            let mut step = trainer.step(worker, &model, &features, &halo, &wires, epoch)?;
            worker.all_reduce(
                &mut step.gradient,
                Reduce::Sum,
                TrafficKind::ParameterGradient,
            )?;
            let work = Work::pass(step.gradient.len());
            model = worker.compute(Activity::Model, work, |_| {
                optimizer.step(model, &step.gradient)
            });
            let mut seen = self.seen.lock().expect("no worker panics while it writes");
            if seen.gradients.len() <= epoch {
                seen.gradients.push(Vec::new());
            }
            seen.gradients[epoch].push(step.gradient);
            drop(seen);
            let scores = worker.evaluate_model(epoch, &model)?;
            worker.end_epoch(
                epoch,
                EpochReport {
                    loss: step.loss,
                    scores,
                    ..EpochReport::default()
                },
            );
        }
        let mut seen = self.seen.lock().expect("no worker panics while it writes");
        seen.parameters.push(parameters(&model));
        Ok(())
    }
}
