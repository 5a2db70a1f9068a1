//! The training loop of every strategy that exchanges a halo and sums parameter gradients: they differ in the wires of an
//! epoch only.

use std::sync::Arc;

use super::{HaloExchange, LayerwiseTrainer, LocalGraph, Seen, Wire};
use crate::model::Input;
use crate::net::{CodingError, Gauge, Reduce, TrafficKind, Way};
use crate::sim::{EpochReport, SimError, Worker};

/// What travels in one epoch.
pub struct EpochExchange {
    /// For each layer, how the boundary rows of its input travel; `None` for what is not sent in this epoch.
    pub wires: Vec<Option<Wire>>,
    /// How many times smaller than uncompressed the compressed rows are.
    pub compression_ratio: Option<f64>,
    /// Where the wires' codecs measure their errors, if these are to be summed over all workers.
    pub gauge: Option<Arc<Gauge>>,
}

/// What travels in an epoch, given its number and what the epochs before it showed.
pub type Exchange<'a> = &'a dyn Fn(usize, &[Seen]) -> EpochExchange;

/// Trains the experiment's model; `exchange` says what travels; it is `None` if nothing ever does.
///
/// # Errors
/// If communication fails.
pub fn partition_parallel(
    worker: &mut Worker,
    exchange: Option<Exchange<'_>>,
) -> Result<(), SimError> {
    let mut model = worker.new_model();
    let mut optimizer = worker.new_optimizer();
    let mut halo = HaloExchange::new(worker);
    let graph = match exchange {
        Some(_) => LocalGraph::with_halo(worker),
        None => LocalGraph::without_halo(worker),
    };
    let trainer = LayerwiseTrainer::new(worker, graph);
    let own = Input::from_features(worker.shard().features.clone(), worker.plain_device());
    let mut seen = Vec::new();
    for epoch in 0..worker.setting().epochs {
        worker.begin_epoch(epoch);
        let (features, wires, compression_ratio, gauge) = match exchange {
            None => (own.clone(), Vec::new(), None, None),
            Some(exchange) => {
                let EpochExchange {
                    wires,
                    compression_ratio,
                    gauge,
                } = exchange(epoch, &seen);
                let features = halo.features(worker, wires[0].as_ref())?;
                (features, wires, compression_ratio, gauge)
            }
        };
        let mut step = trainer.step(worker, &model, &features, &halo, &wires, epoch)?;
        worker.all_reduce(
            &mut step.gradient,
            Reduce::Sum,
            TrafficKind::ParameterGradient,
        )?;
        model = worker.update(&mut optimizer, model, &step.gradient);
        let error = match gauge {
            Some(gauge) => Some(global_error(worker, &gauge)?),
            None => None,
        };
        let scores = worker.evaluate_model(epoch, &model)?;
        seen.push(Seen {
            validation: scores.and_then(|scores| scores.validation),
            error,
        });
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

/// The relative error of all rows that any worker sent forward in this epoch, the same number on all of them.
fn global_error(worker: &mut Worker, gauge: &Gauge) -> Result<f64, SimError> {
    let forward = gauge
        .take()
        .into_iter()
        .filter(|((_, way), _)| *way == Way::Forward);
    let own = forward.fold(CodingError::default(), |sum, (_, error)| sum.plus(error));
    let mut sums = [own.lost as f32, own.sent as f32];
    worker.all_reduce(&mut sums, Reduce::Sum, TrafficKind::Control)?;
    let [lost, sent] = sums.map(f64::from);
    Ok(CodingError { lost, sent }.relative())
}
