//! The training loop of every strategy that exchanges a halo and sums parameter gradients: they differ in the wires of an
//! epoch only.

use super::{HaloExchange, LayerwiseTrainer, LocalGraph, Wire};
use crate::model::{Input, Work};
use crate::net::{Reduce, TrafficKind};
use crate::sim::{Activity, EpochReport, SimError, Worker};

/// What travels in one epoch.
pub struct EpochExchange {
    /// For each layer, how the boundary rows of its input travel; `None` for what is not sent in this epoch.
    pub wires: Vec<Option<Wire>>,
    /// How many times smaller than uncompressed the compressed rows are.
    pub compression_ratio: Option<f64>,
}

/// Trains the experiment's model; `exchange(epoch)` says what travels, or `None` for all epochs if nothing ever does.
///
/// # Errors
/// If communication fails.
pub fn partition_parallel(
    worker: &mut Worker,
    exchange: Option<&dyn Fn(usize) -> EpochExchange>,
) -> Result<(), SimError> {
    let mut model = worker.new_model();
    let mut optimizer = worker.new_optimizer();
    let mut halo = HaloExchange::new(worker);
    let graph = match exchange {
        Some(_) => LocalGraph::with_halo(worker),
        None => LocalGraph::without_halo(worker),
    };
    let trainer = LayerwiseTrainer::new(worker, graph);
    let own = Input::from_features(&worker.shard().features, worker.plain_device());
    for epoch in 0..worker.setting().epochs {
        worker.begin_epoch(epoch);
        let (features, wires, compression_ratio) = match exchange {
            None => (own.clone(), Vec::new(), None),
            Some(exchange) => {
                let EpochExchange {
                    wires,
                    compression_ratio,
                } = exchange(epoch);
                let features = halo.features(worker, wires[0].as_ref())?;
                (features, wires, compression_ratio)
            }
        };
        let mut step = trainer.step(worker, &model, &features, &halo, &wires, epoch)?;
        worker.all_reduce(
            &mut step.gradient,
            Reduce::Sum,
            TrafficKind::ParameterGradient,
        )?;
        let work = Work::pass(step.gradient.len()) * 6.0;
        model = worker.compute(Activity::Model, work, |_| {
            optimizer.step(model, &step.gradient)
        });
        let scores = worker.evaluate_model(epoch, &model)?;
        worker.end_epoch(
            epoch,
            EpochReport {
                loss: step.loss,
                scores,
                compression_ratio,
                ..EpochReport::default()
            },
        );
    }
    Ok(())
}
