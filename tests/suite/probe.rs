//! `full` written once more against the public traits, leaving behind the gradients and parameters that the built-in one keeps
//! to itself.

use std::sync::{Arc, Mutex};

use grapevine::graph::BoundaryPlan;
use grapevine::model::{ModelSpec, Work, parameters};
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
