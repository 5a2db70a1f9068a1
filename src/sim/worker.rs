//! One worker: what a strategy's program is written against.

mod evaluation;
mod messages;
mod resume;
mod saved;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::tensor::Device;

use self::resume::Keeper;
use super::device::drain;
use super::evaluation::Evaluation;
use super::plan::{Decision, Following, Script};
use super::record::Recorder;
use super::{Engine, EpochReport, Setting, Shard, SimError, WorkerDevice};
use crate::graph::Label;
use crate::model::{
    Block, Dropout, Gnn, Input, Matrix, Optimizer, Place, add_gradients, cross_entropy,
    has_finite_squares, parameter_count, parameters, targets,
};
use crate::net::{CodingErrors, Communicator, Seconds, Traffic, TrafficKind};

/// What a stretch of real time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Forward pass, backward pass or optimiser step.
    Model,
    /// Gathering, encoding, decoding and scattering rows.
    Exchange,
}

pub use messages::PendingExchange;
pub use saved::{Restoring, Saved};

/// A worker of a run: its device, its shard, and its connection to the others.
///
/// A strategy's program owns its model and optimiser and calls the methods here for everything that
/// takes time or crosses the network.
///
/// # Example
/// An epoch of a program that trains on its own part of the graph and sums gradients:
///
/// ```
/// use grapevine::model::{Gnn, Input, Optimizer};
/// use grapevine::net::{Reduce, TrafficKind};
/// use grapevine::sim::{EpochReport, SimError, Worker};
/// use grapevine::strategies::parts::LayerwiseTrainer;
///
/// fn epoch(
///     worker: &mut Worker,
///     trainer: &LayerwiseTrainer,
///     (features, optimizer): (&Input, &mut Optimizer),
///     model: Gnn,
///     epoch: usize,
/// ) -> Result<Gnn, SimError> {
///     worker.begin_epoch(epoch)?;
///     let mut step = trainer.local_step(worker, &model, features, epoch)?;
///     let kind = TrafficKind::ParameterGradient;
///     worker.all_reduce(&mut step.gradient, Reduce::Sum, kind)?;
///     let model = worker.update(optimizer, model, &step.gradient);
///     let scores = worker.evaluate_model(epoch, &model)?;
///     worker.end_epoch(epoch, EpochReport { loss: step.loss, scores, ..EpochReport::default() });
///     Ok(model)
/// }
/// ```
pub struct Worker {
    setting: Arc<Setting>,
    shard: Arc<Shard>,
    device: WorkerDevice,
    communicator: Box<dyn Communicator>,
    recorder: Arc<Mutex<Recorder>>,
    evaluation: Evaluation,
    compute_factor: f64,
    following: Following,
    epochs: usize,
    /// Whether something of this epoch is no longer a finite number.
    lost: bool,
    keeper: Option<Keeper>,
    /// Whether it only restores what it had, which is no part of the training.
    restores: bool,
}

impl Worker {
    pub(super) fn new(
        setting: Arc<Setting>,
        epochs: usize,
        communicator: Box<dyn Communicator>,
        recorder: Arc<Mutex<Recorder>>,
        script: Arc<Script>,
    ) -> Result<Self, SimError> {
        let rank = communicator.rank();
        let device = setting.devices[rank].clone();
        let shard = Arc::new(Shard::new(&setting, rank)?);
        let worker = Self {
            evaluation: Self::evaluation(&setting, &device, (rank, &shard))?,
            shard,
            compute_factor: setting.topology.compute_factor(rank),
            following: Following::new(script, rank),
            epochs,
            lost: false,
            keeper: None,
            restores: false,
            device,
            setting,
            communicator,
            recorder,
        };
        if worker.device.queued {
            worker.warm_up();
        }
        Ok(worker)
    }

    /// What this worker evaluates on.
    fn evaluation(
        setting: &Arc<Setting>,
        device: &WorkerDevice,
        own: (usize, &Arc<Shard>),
    ) -> Result<Evaluation, SimError> {
        let place = &device.place;
        let unseen = setting.unseen.is_some();
        Ok(match (&setting.engine, own.0) {
            (Engine::Mpi(_), _) if !unseen => Evaluation::on_part(setting, place, own),
            // The faster way, where the graph is there.
            (_, 0) if unseen || setting.holds_graph() => Evaluation::on_whole_graph(setting, place),
            (_, 0) => Evaluation::on_all_parts(setting, place)?,
            (..) => Evaluation::elsewhere(setting, place),
        })
    }

    /// One step of training that is thrown away, neither timed nor counted: on first use a device
    /// compiles its kernels and chooses among variants of them, which would be seconds of the first
    /// epoch.
    fn warm_up(&self) {
        // As an evaluation, so that it is no part of `measured_seconds`.
        self.uncounted(|| {
            let (spec, shard, place) = (&self.setting.model, &self.shard, self.place());
            // Rows of the halo would have to be sent, and nothing is sent here.
            let (graph, degrees) = shard.without_halo();
            let block = Block::new(&graph, &degrees, spec.aggregation());
            let nodes = &shard.nodes[..shard.owned];
            let features = Input::from_features(shard.features.clone(), place);
            let model = Gnn::new(spec, self.setting.seed, &self.device());
            let dropout = self.dropout();
            let mut input = features;
            for layer in 0..model.layers() {
                let dropped = input.dropped(&dropout, 0, layer, nodes);
                input = Input::Dense(model.layer(layer, &block, &dropped));
            }
            // A model has a layer, whose output is dense: this never returns.
            let Input::Dense(logits) = input else { return };
            let task = self.setting.dataset.task();
            // Any label will do; without one there would be no gradient, and its kernels would not
            // be compiled.
            let labels = (0..shard.owned).map(|row| (row, Label::plain(task), 1.0));
            let targets = targets(shard.owned, task, labels, place);
            let mut gradients = cross_entropy(logits, targets).backward();
            let mut flat = vec![0.0; parameter_count(&model)];
            add_gradients(&model, &mut gradients, &mut flat);
            // Read back, because only that makes sure that the queue was worked off.
            let _ = parameters(&self.new_optimizer().step(model, &flat));
        });
    }

    /// This worker's number.
    pub fn rank(&self) -> usize {
        self.communicator.rank()
    }

    /// Number of workers.
    pub fn size(&self) -> usize {
        self.communicator.size()
    }

    /// The cell this worker is part of.
    pub const fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    /// Number of epochs of the training.
    pub const fn epochs(&self) -> usize {
        self.epochs
    }

    /// Whether the model is evaluated after this epoch.
    pub fn evaluates(&self, epoch: usize) -> bool {
        // The training's own number of epochs: LLCG and RETEXO have another than [training].
        self.setting.training.evaluates(epoch, self.epochs)
    }

    /// What this worker holds.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// It has another shard from now on, of a setting in which the same nodes are dealt out
    /// otherwise.
    ///
    /// # Errors
    /// If it cannot evaluate on that.
    pub(crate) fn owns(&mut self, setting: Arc<Setting>, shard: Shard) -> Result<(), SimError> {
        (self.setting, self.shard) = (setting, Arc::new(shard));
        // Where one process has the whole graph it evaluates on that.
        if matches!(self.setting.engine, Engine::Mpi(_)) {
            let own = (self.rank(), &self.shard);
            self.evaluation =
                self.uncounted(|| Self::evaluation(&self.setting, &self.device, own))?;
        }
        Ok(())
    }

    /// The device for training, with automatic differentiation.
    pub fn device(&self) -> Device {
        self.device.place.device.clone().autodiff()
    }

    /// Where its matrices lie.
    pub const fn place(&self) -> &Place {
        &self.device.place
    }

    /// The model of the experiment with its first parameters, the same on every worker.
    pub fn new_model(&self) -> Gnn {
        let model = self.setting.new_model(&self.device());
        self.trains(parameter_count(&model));
        model
    }

    /// States how many parameters are trained, where that is not those of [`Self::new_model`].
    pub fn trains(&self, parameters: usize) {
        self.recorder().set_parameters(parameters);
    }

    /// A fresh optimiser.
    pub fn new_optimizer(&self) -> Optimizer {
        Optimizer::new(&self.setting.optimizer)
    }

    /// Dropout as the model wants it.
    pub fn dropout(&self) -> Dropout {
        let model = &self.setting.model;
        Dropout::new(model.dropout, self.setting.seed)
            .with_features(model.input_dropout)
            .with_attention(model.attention_dropout)
    }

    /// Training nodes of the whole graph, over which the loss is averaged.
    pub fn training_nodes(&self) -> usize {
        self.setting.training_nodes()
    }

    /// Does something that takes time: measured, or modelled from the work that the plan has here.
    /// The clock of this worker advances by it.
    pub fn compute<T>(&mut self, activity: Activity, action: impl FnOnce(&Self) -> T) -> T {
        if self.restores {
            return action(self);
        }
        let work = self.following.compute();
        let (rank, factor) = (self.rank(), self.compute_factor);
        let simulated = matches!(self.setting.engine, Engine::Simulated);
        // What is queued on a device waits for others that use it, whoever has the turn.
        let ahead = simulated && self.setting.models_compute() && !self.device.queued;
        if ahead {
            let time = self.setting.timing.time(rank, work, Duration::ZERO, factor);
            self.communicator.elapse_ahead(time);
        }
        let (result, took) = self.timed(activity, action);
        self.keep_time(took);
        if ahead {
            self.communicator.caught_up();
        } else if simulated {
            let time = self.setting.timing.time(rank, work, took, factor);
            self.communicator.elapse(time);
        } else {
            // A process computes as fast as it does: profiles and speeds of workers belong to the
            // emulation.
            self.communicator.elapse(Seconds(took.as_secs_f64()));
        }
        result
    }

    /// Does something, and says how long it took on this machine.
    fn timed<T>(&self, activity: Activity, action: impl FnOnce(&Self) -> T) -> (T, Duration) {
        let of_model = activity == Activity::Model;
        if of_model {
            self.recorder().model.enter();
        }
        let start = Instant::now();
        let result = action(self);
        let took = start.elapsed();
        if of_model {
            self.recorder().model.leave();
        }
        (result, took)
    }

    /// One step of an optimiser with the gradient of all workers, flat. A gradient that is not
    /// finite is a divergence: activations can hide one that the loss does not show.
    pub fn update<M: Module>(
        &mut self,
        optimizer: &mut Optimizer,
        model: M,
        gradient: &[f32],
    ) -> M {
        // Squares, too: Adam takes the mean of squares, and one that is infinite stops its
        // parameter for good.
        self.lost |= !has_finite_squares(gradient);
        self.compute(Activity::Model, |worker| {
            let model = optimizer.step(model, gradient);
            if worker.device.queued {
                let _ = parameters(&model); // reading back drains the queue
            }
            model
        })
    }

    /// As [`Self::compute`], for a program that plays all workers: the action is that of the `busy`
    /// ones together, done at once in place of each by itself. Each is charged the same share of
    /// the work, and they compute at the same time, as fast as the slowest of all, for whom the
    /// others wait. So do those that are not busy.
    ///
    /// # Panics
    /// If one of `busy` is no worker.
    pub fn compute_together<T>(
        &mut self,
        activity: Activity,
        busy: &[usize],
        action: impl FnOnce(&Self) -> T,
    ) -> T {
        let work = self.following.compute_together(busy);
        let (result, took) = self.timed(activity, action);
        let share = 1.0 / busy.len().max(1) as f64;
        let (setting, took) = (&self.setting, took.mul_f64(share));
        let time = setting
            .timing
            .slowest(&setting.topology, work * share, took);
        self.communicator.elapse_all(time, busy);
        result
    }

    /// For a program that plays all workers; see [`Communicator::carry`].
    ///
    /// # Errors
    /// If a message cannot be carried, or is not planned.
    pub fn carry(&mut self, traffic: &Traffic) -> Result<(), SimError> {
        self.following.carry(traffic)?;
        Ok(self.communicator.carry(traffic)?)
    }

    /// Waits until the device has computed these rows; to be called last inside [`Self::compute`].
    pub fn wait_for(&self, rows: &Matrix) {
        if self.device.queued {
            rows.parts().iter().for_each(drain);
        }
    }

    /// Starts an epoch and its plan: messages are counted under it. In an epoch that has begun it
    /// changes nothing.
    ///
    /// # Errors
    /// If the program of the epoch before departed from its plan.
    pub fn begin_epoch(&mut self, epoch: usize) -> Result<(), SimError> {
        self.begin_epoch_as(epoch, None)
    }

    /// As [`Self::begin_epoch`], where the training decided how the epoch is to be, on all workers
    /// alike.
    ///
    /// # Errors
    /// As [`Self::begin_epoch`].
    pub(crate) fn begin_epoch_as(
        &mut self,
        epoch: usize,
        decided: Option<&Decision>,
    ) -> Result<(), SimError> {
        self.following.begin(epoch, decided)?;
        self.communicator.begin_epoch(epoch);
        self.keep_decision(epoch, decided);
        Ok(())
    }

    /// Counts the messages that follow under another epoch than the one that has begun.
    ///
    /// # Errors
    /// If that is not planned.
    pub fn count_under(&mut self, epoch: usize) -> Result<(), SimError> {
        self.following.count_under(epoch)?;
        self.communicator.begin_epoch(epoch);
        Ok(())
    }

    /// From whom the next exchange expects messages, as the plan says: so that workers that ask
    /// each other for rows know who will.
    pub(crate) fn planned_senders(&self) -> Vec<usize> {
        self.following.senders()
    }

    /// Ends an epoch. The loss of one that lost its way is not a number, whatever it says.
    pub fn end_epoch(&mut self, epoch: usize, mut report: EpochReport) {
        // Only of this epoch: a later one may be sound again, and tells by its own numbers.
        if std::mem::take(&mut self.lost) {
            report.loss = f64::NAN;
        }
        let clock = self.communicator.now();
        let report = self.recorder().report(self.rank(), epoch, report, clock);
        self.keep_report(report);
    }

    /// Ends the program: all that was planned has been done.
    pub(super) fn end(&mut self) -> Result<(), SimError> {
        self.following.end()
    }

    /// States what this worker's messages of an epoch lost in compression, for the tables; `first`
    /// is the kind of the first layer's rows.
    pub(crate) fn measured_errors(&self, epoch: usize, errors: &CodingErrors, first: TrafficKind) {
        for (&(layer, lane), &error) in errors {
            let lane = lane.lane(layer, first);
            self.recorder().add_coding_error(epoch, lane, error);
        }
    }

    /// This worker's virtual time.
    pub fn now(&self) -> Seconds {
        self.communicator.now()
    }

    fn recorder(&self) -> std::sync::MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
