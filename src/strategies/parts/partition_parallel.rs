//! The training loop of every strategy that exchanges a halo and sums parameter gradients: they differ in the wires of an
//! epoch only.

use std::sync::Arc;

use super::{HaloExchange, LayerwiseTrainer, LocalGraph, Seen, Wire};
use crate::model::Input;
use crate::net::{CodingError, CodingErrors, Gauge, Reduce, TrafficKind, Way};
use crate::sim::{EpochReport, SimError, Worker};

/// What travels in one epoch.
#[derive(Default)]
pub struct EpochExchange {
    /// For each layer, how the boundary rows of its input travel; `None` for what is not sent in this epoch.
    pub wires: Vec<Option<Wire>>,
    /// How many times smaller than uncompressed the compressed rows are.
    pub compression_ratio: Option<f64>,
    /// Where the wires' codecs measure their errors, if they do.
    pub gauge: Option<Arc<Gauge>>,
    /// Whether every worker needs the error of all workers, for what it sends next.
    pub shares_error: bool,
}

/// What travels in an epoch, given its number and what the epochs before it showed.
pub type Exchange<'a> = &'a dyn Fn(usize, &[Seen]) -> EpochExchange;

/// What travels while the workers compute. The default is nothing: everything is waited for at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// The gradients of a layer are summed while the layers below go back.
    pub gradients: bool,
    /// The features of an epoch travel during the one before, unless their error is measured. What is sent must not depend
    /// on how the training goes.
    pub features: bool,
}

/// Trains the experiment's model; `exchange` says what travels; it is `None` if nothing ever does.
///
/// # Errors
/// If communication fails.
pub fn partition_parallel(
    worker: &mut Worker,
    exchange: Option<Exchange<'_>>,
    overlap: Overlap,
) -> Result<(), SimError> {
    let mut model = worker.new_model();
    let mut optimizer = worker.new_optimizer();
    let mut halo = HaloExchange::new(worker);
    let graph = match exchange {
        Some(_) => LocalGraph::with_halo(worker),
        None => LocalGraph::without_halo(worker),
    };
    let mut trainer = LayerwiseTrainer::new(worker, graph);
    if overlap.gradients {
        trainer = trainer.summing_by_layer(worker);
    }
    let own = Input::from_features(worker.shard().features.clone(), worker.plain_device());
    let mut seen = Vec::new();
    let epochs = worker.setting().epochs;
    let mut ahead = None;
    for epoch in 0..epochs {
        worker.begin_epoch(epoch);
        let (features, sent) = match exchange {
            None => (own.clone(), EpochExchange::default()),
            Some(exchange) => {
                let sent = exchange(epoch, &seen);
                if let Some(wire) = &sent.wires[0] {
                    let started = match ahead.take() {
                        Some(started) => started,
                        None => {
                            let outbox = halo.outgoing_features(worker, wire);
                            worker.start_exchange(outbox)?
                        }
                    };
                    halo.finish_features(worker, wire, started)?;
                }
                let features = halo.kept_features()?;
                if overlap.features && sent.gauge.is_none() && epoch + 1 < epochs {
                    if let Some(wire) = &exchange(epoch + 1, &seen).wires[0] {
                        let outbox = halo.outgoing_features(worker, wire);
                        worker.begin_epoch(epoch + 1); // under which they are counted
                        ahead = Some(worker.start_exchange(outbox)?);
                        worker.begin_epoch(epoch);
                    }
                }
                (features, sent)
            }
        };
        let mut step = trainer.step(worker, &model, &features, &halo, &sent.wires, epoch)?;
        if !overlap.gradients {
            let kind = TrafficKind::ParameterGradient;
            worker.all_reduce(&mut step.gradient, Reduce::Sum, kind)?;
        }
        model = worker.update(&mut optimizer, model, &step.gradient);
        let coding_error = sent.gauge.map(|gauge| {
            let errors = gauge.take();
            worker.measured_errors(epoch, &errors);
            forward(&errors)
        });
        let error = match coding_error.filter(|_| sent.shares_error) {
            Some(own) => Some(global_error(worker, own)?),
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
                compression_ratio: sent.compression_ratio,
                coding_error,
                ..EpochReport::default()
            },
        );
    }
    Ok(())
}

/// The error of all rows that this worker sent forward.
fn forward(errors: &CodingErrors) -> CodingError {
    errors
        .iter()
        .filter(|((_, lane), _)| lane.way == Way::Forward)
        .fold(CodingError::default(), |sum, (_, error)| sum.plus(*error))
}

/// The relative error of all rows that any worker sent forward in this epoch, the same number on all of them.
#[allow(clippy::cast_possible_truncation)] // what travels is single precision
fn global_error(worker: &mut Worker, own: CodingError) -> Result<f64, SimError> {
    let mut sums = [own.lost as f32, own.sent as f32];
    worker.all_reduce(&mut sums, Reduce::Sum, TrafficKind::Control)?;
    let [lost, sent] = sums.map(f64::from);
    Ok(CodingError { lost, sent }.relative())
}
