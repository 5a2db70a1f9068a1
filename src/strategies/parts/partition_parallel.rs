//! The training loop of every strategy that exchanges a halo and sums parameter gradients: they
//! differ in the wires of an epoch only.

use std::sync::Arc;

use super::buckets::Buckets;
use super::wire::WireAt;
use super::{
    BatchTrainer, EpochExchange, Exchange, Feedback, HaloExchange, LayerwiseTrainer, Learner,
    LocalGraph, Step, When, Wire, move_nodes,
};
use crate::model::{Gnn, Input};
use crate::net::{CodingError, CodingErrors, Reduce, TrafficKind, Way};
use crate::sim::{
    Activity, EpochReport, PendingExchange, Restoring, Saved, Saving, Setting, Shard, SimError,
    Worker,
};

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
    /// Whether rows of others are read.
    exchanges: bool,
    /// Features of own rows, where those of no others are read.
    own: Option<Input>,
    /// Features that were sent in the epoch before.
    ahead: Option<PendingExchange>,
    /// Whether features are used an epoch after they were sent.
    late: bool,
}

/// What travels in an epoch.
struct Sent {
    now: EpochExchange,
    /// How the features of the next epoch travel during this one, if they do.
    ahead: Option<Wire>,
}

impl Whole {
    /// The input of the first layer. Sends what is sent of it, for the next epoch too where that is
    /// wanted.
    fn features(
        &mut self,
        worker: &mut Worker,
        sent: &Sent,
        epoch: usize,
    ) -> Result<Input, SimError> {
        if !self.exchanges || sent.now.crosses_after_product(0) {
            let shard = || worker.shard().features.clone();
            let own = || Input::from_features(shard(), worker.place()).lasting();
            return Ok(self.own.get_or_insert_with(own).clone());
        }
        let halo = &mut self.halo;
        let mut wire = sent.now.wires[0].as_ref();
        if let (true, Some(wire)) = (self.late, wire) {
            return halo.late_features(worker, wire);
        }
        if let Some(started) = self.ahead.take()
            && let Some(wire) = wire.take()
        {
            halo.finish_features(worker, wire, started)?;
        }
        let features = halo.features(worker, wire)?;
        if sent.now.keeps_features {
            halo.end_features();
        }
        if let Some(wire) = &sent.ahead {
            let outbox = halo.outgoing_features(worker, wire);
            worker.count_under(epoch + 1)?;
            self.ahead = Some(worker.start_exchange(outbox)?);
            worker.count_under(epoch)?;
        }
        Ok(features)
    }

    fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        sent: &Sent,
        epoch: usize,
    ) -> Result<Step, SimError> {
        let wires = &sent.now.wires;
        let Some(share) = sent.now.share else {
            let features = self.features(worker, sent, epoch)?;
            let Self { trainer, halo, .. } = self;
            let Sent { now, .. } = sent;
            (halo.crossing()).begin(worker, &now.senders, now.tally.as_ref());
            return trainer.step(worker, model, &features, halo, wires, epoch);
        };
        let mut drawn = share.cross(worker, epoch)?;
        let features = if sent.now.keeps_features {
            // They are those of the whole boundary, so the first layer reads all of it.
            let features = self.features(worker, sent, epoch)?;
            self.trainer.graph_mut().upper = Some((drawn.block, drawn.nodes));
            features
        } else {
            let features = if sent.now.crosses_after_product(0) {
                self.features(worker, sent, epoch)?
            } else {
                drawn.halo.features(worker, wires[0].as_ref())?
            };
            let graph = self.trainer.graph_mut();
            (graph.block, graph.nodes) = (drawn.block, drawn.nodes);
            features
        };
        let trainer = &self.trainer;
        trainer.step(worker, model, &features, &drawn.halo, wires, epoch)
    }
}

impl Trainer {
    fn new(worker: &Worker, exchange: bool, when: When) -> Self {
        let model = &worker.setting().model;
        let buckets = when.gradients_overlap.then(|| Buckets::new(model));
        if let Some(mut batches) = BatchTrainer::new(worker, exchange) {
            batches.buckets = buckets;
            return Self::Batches(Box::new(batches));
        }
        let graph = if exchange {
            LocalGraph::with_halo(worker)
        } else {
            LocalGraph::without_halo(worker)
        };
        let mut trainer = LayerwiseTrainer::new(worker, graph);
        trainer.buckets = buckets;
        Self::Whole(Box::new(Whole {
            trainer,
            halo: HaloExchange::by(worker, when),
            exchanges: exchange,
            own: None,
            ahead: None,
            late: when.staleness.is_some_and(|staleness| staleness.features),
        }))
    }

    /// The trainer on other parts, to which nodes move first.
    fn moved(
        self,
        worker: &mut Worker,
        parts: &Arc<Setting>,
        exchange: bool,
        when: When,
    ) -> Result<Self, SimError> {
        drop(self); // before others' rows come
        move_nodes(worker, parts)?;
        Ok(worker.compute(Activity::Exchange, |worker| {
            Self::new(worker, exchange, when)
        }))
    }

    /// Waits for what is still under way after the last step.
    fn finish(&self, worker: &mut Worker) -> Result<(), SimError> {
        match self {
            Self::Whole(whole) => whole.halo.crossing().finish(worker),
            Self::Batches(_) => Ok(()),
        }
    }

    fn save(&self, worker: &Worker, into: &mut Saving) {
        match self {
            Self::Batches(batches) => batches.save(worker, into),
            Self::Whole(whole) => {
                whole.halo.save(worker, into);
                into.put(&whole.ahead.as_ref().map(PendingExchange::number));
            }
        }
    }

    fn restore(&mut self, from: &mut Restoring<'_>, wire_at: WireAt<'_>) -> Result<(), SimError> {
        match self {
            Self::Batches(batches) => batches.restore(from),
            Self::Whole(whole) => {
                whole.halo.restore(from, wire_at)?;
                let ahead: Option<u64> = from.saved().take()?;
                whole.ahead = ahead.map(|number| from.exchange(number)).transpose()?;
                Ok(())
            }
        }
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
        sent: &Sent,
        epoch: usize,
        step: usize,
    ) -> Result<Step, SimError> {
        match self {
            Self::Batches(batches) => batches.step(worker, model, &sent.now, epoch, step),
            Self::Whole(whole) => whole.step(worker, model, sent, epoch),
        }
    }
}

/// Trains the experiment's model, in mini-batches where `training.batch` is given; `exchange` says
/// what travels; it is `None` if nothing ever does.
///
/// # Errors
/// If communication fails.
pub fn partition_parallel(
    worker: &mut Worker,
    mut exchange: Option<&mut dyn Exchange>,
    when: When,
) -> Result<(), SimError> {
    let (mut model, at_start) = (worker.new_model(), Arc::clone(worker.setting()));
    let crosses = exchange.is_some();
    let mut trainer = Trainer::new(worker, crosses, when);
    let (steps, epochs) = (trainer.steps(), worker.epochs());
    let mut learner = Learner::new(worker, when.gradients, &model, 0..epochs * steps);
    let mut seen = Vec::new();
    let begins = worker.resume(|from| {
        let round = from.saved().take()?;
        if round > 0 {
            // As it was left behind: nothing moves.
            let (worker, setting) = (from.worker(), at_start.repartitioned(round)?);
            let shard = Shard::new(&setting, worker.rank())?;
            worker.owns(setting, shard)?;
            trainer = Trainer::new(worker, crosses, when);
        }
        model = from.model(model.clone())?;
        learner.restore(from)?;
        seen = from.saved().take()?;
        let mut wires = |round, layer| wire_at(exchange.as_deref_mut(), &seen, round, layer);
        trainer.restore(from, &mut wires)?;
        // Last, for an exchange that is asked how rows travelled may go on in its memory.
        (exchange.as_deref_mut()).map_or(Ok(()), |exchange| exchange.restore(from))
    })?;
    for epoch in begins..epochs {
        let mut sent = Sent {
            now: (exchange.as_deref_mut())
                .map_or_else(EpochExchange::default, |exchange| exchange.at(epoch, &seen)),
            ahead: None,
        };
        let parts = if when.repartition.begins(epoch) {
            let round = when.repartition.round(epoch);
            Some(worker.aside(|| at_start.repartitioned(round))?)
        } else {
            None
        };
        worker.begin_epoch_as(epoch, sent.now.decided.as_ref())?;
        if let Some(parts) = parts {
            trainer = trainer.moved(worker, &parts, crosses, when)?;
        }
        // With the next parts everything begins anew.
        let ends = when.repartition.ends(epoch, epochs);
        let in_advance = when.features_ahead && sent.now.gauge.is_none() && !ends;
        if let (Some(exchange), true) = (exchange.as_deref_mut(), in_advance) {
            sent.ahead = exchange.at(epoch + 1, &seen).features();
        }
        let mut loss = 0.0;
        for step in 0..steps {
            let step = trainer.step(worker, &model, &sent, epoch, step)?;
            model = if when.gradients_overlap {
                learner.update(worker, model, &step.gradient)
            } else {
                learner.step(worker, model, step.gradient)?
            };
            loss += step.loss;
        }
        if ends {
            trainer.finish(worker)?;
        }
        let sent = sent.now;
        let (coding_error, error) = tell(worker, epoch, &sent)?;
        let scores = worker.evaluate_model(epoch, learner.agreed(&model))?;
        let shared = if sent.shares_scores && worker.evaluates(epoch) {
            Some(worker.share_scores(scores)?)
        } else {
            None
        };
        seen.push(Feedback {
            accuracy: shared.and_then(|scores| scores.validation),
            loss: shared.and_then(|scores| scores.validation_loss),
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
        worker.checkpoint(epoch, |worker, into| {
            into.put(&when.repartition.round(epoch));
            into.model(&model);
            learner.save(into);
            into.put(&seen);
            trainer.save(worker, into);
            if let Some(exchange) = &exchange {
                exchange.save(into);
            }
        })?;
    }
    Ok(())
}

/// The workers tell each other at the end of an epoch what they need for what they send next.
/// Returns this worker's error of what it sent, and that of all of them, where they are asked for.
fn tell(
    worker: &mut Worker,
    epoch: usize,
    sent: &EpochExchange,
) -> Result<(Option<CodingError>, Option<f64>), SimError> {
    let coding_error = sent.gauge.as_ref().map(|gauge| {
        let errors = gauge.take();
        worker.measured_errors(epoch, &errors, sent.first_rows());
        forward_error(&errors)
    });
    let error = match coding_error.filter(|_| sent.shares_error) {
        Some(own) => Some(global_error(worker, own)?),
        None => None,
    };
    if let Some(tally) = &sent.tally {
        let mut sums = tally.values();
        worker.all_reduce(&mut sums, Reduce::Sum, TrafficKind::Control)?;
        tally.set(0, &sums);
    }
    Ok((coding_error, error))
}

/// How the rows of a layer travelled in an epoch, given what the epochs before it showed.
fn wire_at(
    exchange: Option<&mut (dyn Exchange + '_)>,
    seen: &[Feedback],
    epoch: u64,
    layer: usize,
) -> Result<Wire, SimError> {
    let epoch = epoch as usize;
    let sent = exchange.zip(seen.get(..epoch));
    let sent = sent.map(|(exchange, before)| exchange.at(epoch, before));
    let wire = sent.and_then(|sent| sent.wires.into_iter().nth(layer).flatten());
    wire.ok_or_else(|| {
        let what = format!(
            "a checkpoint has rows of layer {layer} from epoch {epoch}, in which none travel"
        );
        SimError::Strategy(what)
    })
}

/// The error of all rows that this worker sent forward through a codec that loses something.
pub(crate) fn forward_error(errors: &CodingErrors) -> CodingError {
    errors
        .iter()
        .filter(|((_, lane), _)| lane.way == Way::Forward)
        .fold(CodingError::default(), |sum, (_, error)| sum.plus(*error))
}

/// The relative error of all rows that any worker sent forward in this epoch, the same number on
/// all of them.
fn global_error(worker: &mut Worker, own: CodingError) -> Result<f64, SimError> {
    let mut sums = [own.lost as f32, own.sent as f32];
    worker.all_reduce(&mut sums, Reduce::Sum, TrafficKind::Control)?;
    let [lost, sent] = sums.map(f64::from);
    Ok(CodingError { lost, sent }.relative())
}
