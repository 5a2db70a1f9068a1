//! The training loop of every strategy that exchanges a halo and sums parameter gradients: they differ in the wires of an
//! epoch only.

use std::sync::Arc;

use super::{BatchTrainer, HaloExchange, LayerwiseTrainer, LocalGraph, Seen, Step, Wire};
use crate::model::{Gnn, Input};
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
    /// In mini-batches, whether features that came in an earlier step are kept and not asked for again. Then the first wire is there in
    /// every epoch.
    pub keeps_features: bool,
}

/// What travels in an epoch, given its number and what the epochs before it showed.
pub type Exchange<'a> = &'a dyn Fn(usize, &[Seen]) -> EpochExchange;

/// How a worker gets the loss and gradient of a step.
enum Trainer {
    /// Of all training nodes at once: an epoch is one step.
    Whole(Box<Whole>),
    /// Of a mini-batch.
    Batches(Box<BatchTrainer>),
}

struct Whole {
    trainer: LayerwiseTrainer,
    halo: HaloExchange,
    /// Features of own rows, where no others are read.
    own: Option<Input>,
}

impl Trainer {
    fn new(worker: &Worker, exchange: bool) -> Self {
        if let Some(batches) = BatchTrainer::new(worker, exchange) {
            return Self::Batches(Box::new(batches));
        }
        let own = || Input::from_features(worker.shard().features.clone(), worker.plain_device());
        let graph = if exchange {
            LocalGraph::with_halo(worker)
        } else {
            LocalGraph::without_halo(worker)
        };
        Self::Whole(Box::new(Whole {
            trainer: LayerwiseTrainer::new(worker, graph),
            halo: HaloExchange::new(worker),
            own: (!exchange).then(own),
        }))
    }

    const fn steps(&self) -> usize {
        match self {
            Self::Whole(_) => 1,
            Self::Batches(batches) => batches.steps(),
        }
    }

    fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        sent: &EpochExchange,
        epoch: usize,
        step: usize,
    ) -> Result<Step, SimError> {
        match self {
            Self::Batches(batches) => batches.step(worker, model, sent, epoch, step),
            Self::Whole(whole) => {
                let Whole { trainer, halo, own } = whole.as_mut();
                let features = match own {
                    Some(own) => own.clone(),
                    None => halo.features(worker, sent.wires[0].as_ref())?,
                };
                trainer.step(worker, model, &features, halo, &sent.wires, epoch)
            }
        }
    }
}

/// Trains the experiment's model, in mini-batches where `training.batch` is given; `exchange` says what travels; it is `None` if nothing
/// ever does.
///
/// # Errors
/// If communication fails.
pub fn partition_parallel(
    worker: &mut Worker,
    exchange: Option<Exchange<'_>>,
) -> Result<(), SimError> {
    let mut model = worker.new_model();
    let mut optimizer = worker.new_optimizer();
    let mut trainer = Trainer::new(worker, exchange.is_some());
    let steps = trainer.steps();
    let mut seen = Vec::new();
    for epoch in 0..worker.setting().epochs {
        worker.begin_epoch(epoch);
        let sent = exchange.map_or_else(EpochExchange::default, |exchange| exchange(epoch, &seen));
        let mut loss = 0.0;
        for step in 0..steps {
            let mut step = trainer.step(worker, &model, &sent, epoch, step)?;
            worker.all_reduce(
                &mut step.gradient,
                Reduce::Sum,
                TrafficKind::ParameterGradient,
            )?;
            model = worker.update(&mut optimizer, model, &step.gradient);
            loss += step.loss;
        }
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
                loss: loss / steps as f64,
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
