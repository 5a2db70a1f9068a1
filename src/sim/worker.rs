//! One worker: what a strategy's program is written against.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::tensor::Device;

use super::device::drain;
use super::plan::{Collective, Decision, Following, Script};
use super::record::Recorder;
use super::{Engine, EpochReport, Scores, Setting, Shard, SimError, WorkerDevice};
use crate::graph::Features;
use crate::model::{
    Aggregation, Block, Dropout, Gnn, Input, Matrix, Optimizer, Place, accuracy, add_gradients,
    cross_entropy, has_finite_squares, is_finite, mean_loss, parameter_count, parameters,
    predictions, targets,
};
use crate::net::{
    CodingErrors, Communicator, Inbox, Outbox, Pending, PendingCollective, Reduce, Seconds,
    Traffic, TrafficKind,
};

/// What a stretch of real time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Forward pass, backward pass or optimiser step.
    Model,
    /// Gathering, encoding, decoding and scattering rows.
    Exchange,
}

/// The whole graph on worker 0's device, for evaluation only: exact, with full neighbourhoods, neither timed nor counted.
pub struct WholeGraph {
    setting: Arc<Setting>,
    place: Place,
    features: OnceLock<Input>,
    blocks: Mutex<Vec<(Aggregation, Block)>>,
}

impl WholeGraph {
    /// Features of all nodes.
    #[must_use]
    pub fn features(&self) -> &Input {
        self.features.get_or_init(|| {
            Input::from_features(Features::clone(&self.setting.dataset.features), &self.place)
        })
    }

    /// The whole graph with one kind of aggregation.
    #[must_use]
    pub fn block(&self, aggregation: Aggregation) -> Block {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = blocks.iter().find(|(kind, _)| *kind == aggregation) {
            return block.clone();
        }
        let graph = &self.setting.dataset.graph;
        let degrees: Vec<usize> = (0..graph.nodes()).map(|v| graph.degree(v)).collect();
        let block = Block::new(graph, &degrees, aggregation);
        blocks.push((aggregation, block.clone()));
        block
    }
}

/// A worker of a run: its device, its shard, and its connection to the others.
///
/// A strategy's program owns its model and optimiser and calls the methods here for everything that takes time or
/// crosses the network.
pub struct Worker {
    setting: Arc<Setting>,
    shard: Shard,
    device: WorkerDevice,
    communicator: Box<dyn Communicator>,
    recorder: Arc<Mutex<Recorder>>,
    whole: WholeGraph,
    compute_factor: f64,
    following: Following,
    epochs: usize,
    /// Whether something of this epoch is no longer a finite number.
    lost: bool,
}

/// An exchange that is under way.
pub struct PendingExchange {
    pending: Pending,
    kind: TrafficKind,
    layer: u32,
}

impl Worker {
    pub(super) fn new(
        setting: Arc<Setting>,
        epochs: usize,
        communicator: Box<dyn Communicator>,
        recorder: Arc<Mutex<Recorder>>,
        script: Arc<Script>,
    ) -> Self {
        let rank = communicator.rank();
        let device = setting.devices[rank].clone();
        let worker = Self {
            shard: Shard::new(&setting, rank),
            whole: WholeGraph {
                setting: Arc::clone(&setting),
                place: device.place.clone(),
                features: OnceLock::new(),
                blocks: Mutex::new(Vec::new()),
            },
            compute_factor: setting.topology.compute_factor(rank),
            following: Following::new(script, rank),
            epochs,
            lost: false,
            device,
            setting,
            communicator,
            recorder,
        };
        if worker.device.queued {
            worker.warm_up();
        }
        worker
    }

    /// One step of training that is thrown away, neither timed nor counted: on first use a device compiles its kernels and chooses among
    /// variants of them, which would be seconds of the first epoch.
    fn warm_up(&self) {
        self.evaluation(|_| {
            let (spec, shard, place) = (&self.setting.model, &self.shard, self.place());
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
            let Input::Dense(logits) = input else { return };
            let classes = (0..shard.owned).map(|row| (row, 0, 1.0));
            let targets = targets(shard.owned, spec.classes(), classes, place);
            let mut gradients = cross_entropy(logits, targets).backward();
            let mut flat = vec![0.0; parameter_count(&model)];
            add_gradients(&model, &mut gradients, &mut flat);
            let _ = parameters(&self.new_optimizer().step(model, &flat));
        });
    }

    /// This worker's number.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.communicator.rank()
    }

    /// Number of workers.
    #[must_use]
    pub fn size(&self) -> usize {
        self.communicator.size()
    }

    /// The cell this worker is part of.
    #[must_use]
    pub const fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    /// Number of epochs of the training.
    #[must_use]
    pub const fn epochs(&self) -> usize {
        self.epochs
    }

    /// Whether the model is evaluated after this epoch.
    #[must_use]
    pub fn evaluates(&self, epoch: usize) -> bool {
        self.setting.training.evaluates(epoch, self.epochs)
    }

    /// What this worker holds.
    #[must_use]
    pub const fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The device for training, with automatic differentiation.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device.place.device.clone().autodiff()
    }

    /// Where its matrices lie.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.device.place
    }

    /// The model of the experiment with its seeded initial parameters, the same on every worker.
    #[must_use]
    pub fn new_model(&self) -> Gnn {
        let model = Gnn::new(&self.setting.model, self.setting.seed, &self.device());
        self.trains(parameter_count(&model));
        model
    }

    /// States how many parameters are trained, where that is not those of [`Self::new_model`].
    pub fn trains(&self, parameters: usize) {
        self.recorder().set_parameters(parameters);
    }

    /// A fresh optimiser.
    #[must_use]
    pub fn new_optimizer(&self) -> Optimizer {
        Optimizer::new(&self.setting.optimizer)
    }

    /// Dropout as the model wants it.
    #[must_use]
    pub fn dropout(&self) -> Dropout {
        Dropout::new(self.setting.model.dropout, self.setting.seed)
    }

    /// Training nodes of the whole graph, over which the loss is averaged.
    #[must_use]
    pub fn training_nodes(&self) -> usize {
        self.setting.dataset.split.train.len()
    }

    /// Does something that takes time: measured, or modelled from the work that the plan has here.
    /// The clock of this worker advances by it.
    pub fn compute<T>(&mut self, activity: Activity, action: impl FnOnce(&Self) -> T) -> T {
        let work = self.following.compute();
        let (result, took) = self.timed(activity, action);
        let time = match self.setting.engine {
            Engine::Simulated => self.setting.timing.time(work, took, self.compute_factor),
            Engine::Mpi(_) => Seconds(took.as_secs_f64()),
        };
        self.communicator.elapse(time);
        result
    }

    /// Does something, and says how long it took on this machine.
    fn timed<T>(&self, activity: Activity, action: impl FnOnce(&Self) -> T) -> (T, Duration) {
        let start = Instant::now();
        let result = action(self);
        let took = start.elapsed();
        if activity == Activity::Model {
            self.recorder().add_model_time(took);
        }
        (result, took)
    }

    /// One step of an optimiser with the gradient of all workers, flat. A gradient that is not finite
    /// is a divergence: activations can hide one that the loss does not show.
    pub fn update<M: Module>(
        &mut self,
        optimizer: &mut Optimizer,
        model: M,
        gradient: &[f32],
    ) -> M {
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
    /// ones together, done at once in place of each by itself. Each is charged the same share of the
    /// work, and they compute at the same time, as fast as the slowest of all, for whom the others
    /// wait. So do those that are not busy.
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
        let speeds = (0..self.size()).map(|rank| self.setting.topology.compute_factor(rank));
        let slowest = speeds.fold(f64::INFINITY, f64::min);
        let timing = &self.setting.timing;
        let time = timing.time(work * share, took.mul_f64(share), slowest);
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

    /// Computes something for evaluation on the whole graph, which takes no virtual time.
    pub fn evaluation<T>(&self, action: impl FnOnce(&WholeGraph) -> T) -> T {
        let start = Instant::now();
        let result = action(&self.whole);
        self.recorder().add_evaluation_time(start.elapsed());
        result
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
    pub fn begin_epoch_as(
        &mut self,
        epoch: usize,
        decided: Option<&Decision>,
    ) -> Result<(), SimError> {
        self.following.begin(epoch, decided)?;
        self.communicator.begin_epoch(epoch);
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
    #[must_use]
    pub fn planned_senders(&self) -> Vec<usize> {
        self.following.senders()
    }

    /// Ends an epoch. The loss of one that lost its way is not a number, whatever it says.
    pub fn end_epoch(&mut self, epoch: usize, mut report: EpochReport) {
        if std::mem::take(&mut self.lost) {
            report.loss = f64::NAN;
        }
        let clock = self.communicator.now();
        self.recorder().report(self.rank(), epoch, report, clock);
    }

    /// Ends the program: all that was planned has been done.
    pub(super) fn end(&mut self) -> Result<(), SimError> {
        self.following.end()
    }

    /// States what this worker's messages of an epoch lost in compression, for the tables.
    pub fn measured_errors(&self, epoch: usize, errors: &CodingErrors) {
        for (&(layer, lane), &error) in errors {
            let lane = lane.lane(layer);
            self.recorder().add_coding_error(epoch, lane, error);
        }
    }

    /// This worker's virtual time.
    #[must_use]
    pub fn now(&self) -> Seconds {
        self.communicator.now()
    }

    /// Sparse all-to-all; see [`Communicator::exchange`].
    ///
    /// # Errors
    /// If another worker failed, or the exchange is not planned.
    pub fn exchange(&mut self, outbox: Outbox) -> Result<Inbox, SimError> {
        let pending = self.start_exchange(outbox)?;
        self.finish_exchange(pending)
    }

    /// See [`Communicator::start_exchange`].
    ///
    /// # Errors
    /// If another worker failed, or the exchange is not planned.
    pub fn start_exchange(&mut self, outbox: Outbox) -> Result<PendingExchange, SimError> {
        self.following.start_exchange(&outbox)?;
        let (kind, layer) = (outbox.kind, outbox.layer);
        let pending = self.communicator.start_exchange(outbox)?;
        Ok(PendingExchange {
            pending,
            kind,
            layer,
        })
    }

    /// See [`Communicator::finish_exchange`].
    ///
    /// # Errors
    /// If another worker failed, or waiting is not planned here.
    pub fn finish_exchange(&mut self, started: PendingExchange) -> Result<Inbox, SimError> {
        let PendingExchange {
            pending,
            kind,
            layer,
        } = started;
        self.following.finish_exchange(kind, layer)?;
        Ok(self.communicator.finish_exchange(pending)?)
    }

    /// See [`Communicator::all_reduce`].
    ///
    /// # Errors
    /// If another worker failed, or the collective is not planned.
    pub fn all_reduce(
        &mut self,
        values: &mut [f32],
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<(), SimError> {
        let pending = self.start_all_reduce(values.to_vec(), op, kind)?;
        values.copy_from_slice(&self.finish_collective(pending)?);
        Ok(())
    }

    /// See [`Communicator::start_all_reduce`].
    ///
    /// # Errors
    /// If another worker failed, or the collective is not planned.
    pub fn start_all_reduce(
        &mut self,
        values: Vec<f32>,
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<PendingCollective, SimError> {
        let collective = Collective::AllReduce(values.len());
        self.following.start_collective(&collective, kind)?;
        Ok(self.communicator.start_all_reduce(values, op, kind)?)
    }

    /// See [`Communicator::finish_collective`].
    ///
    /// # Errors
    /// If another worker failed, or waiting is not planned here.
    pub fn finish_collective(&mut self, pending: PendingCollective) -> Result<Vec<f32>, SimError> {
        self.following.finish_collective()?;
        Ok(self.communicator.finish_collective(pending)?)
    }

    /// See [`Communicator::barrier`].
    ///
    /// # Errors
    /// If another worker failed, or the collective is not planned.
    pub fn barrier(&mut self, kind: TrafficKind) -> Result<(), SimError> {
        self.all_reduce(&mut [0.0], Reduce::Max, kind)
    }

    /// See [`Communicator::broadcast`].
    ///
    /// # Errors
    /// If another worker failed, or the collective is not planned.
    pub fn broadcast(
        &mut self,
        root: usize,
        values: &mut [f32],
        kind: TrafficKind,
    ) -> Result<(), SimError> {
        let len = values.len();
        self.following
            .start_collective(&Collective::Broadcast { root, len }, kind)?;
        self.following.finish_collective()?;
        Ok(self.communicator.broadcast(root, values, kind)?)
    }

    /// See [`Communicator::gather`].
    ///
    /// # Errors
    /// If another worker failed, the lengths are wrong, or the collective is not planned.
    pub fn gather(
        &mut self,
        root: usize,
        values: &[f32],
        lens: &[usize],
        kind: TrafficKind,
    ) -> Result<Vec<f32>, SimError> {
        let planned = Collective::Gather {
            root,
            lens: lens.into(),
        };
        self.following.start_collective(&planned, kind)?;
        self.following.finish_collective()?;
        Ok(self.communicator.gather(root, values, lens, kind)?)
    }

    /// Accuracies on the whole graph of the logits that `infer` computes, on worker 0 alone. Takes no virtual time and no bytes.
    /// Logits that are not finite are a divergence, as gradients are in [`Self::update`].
    ///
    /// # Errors
    /// If another worker failed.
    pub fn evaluate(
        &mut self,
        infer: impl FnOnce(&WholeGraph) -> Matrix,
    ) -> Result<Option<Scores>, SimError> {
        let scores = (self.rank() == 0).then(|| {
            self.evaluation(|graph| {
                let dataset = &self.setting.dataset;
                let logits = infer(graph).into_values();
                let sound = is_finite(&logits);
                let predicted = predictions(&logits, dataset.classes);
                let of = |nodes: &[u32]| accuracy(&predicted, &dataset.labels, nodes);
                let split = &dataset.split;
                let scores = Scores {
                    train: of(&split.train),
                    validation: of(&split.validation),
                    test: of(&split.test),
                    validation_loss: mean_loss(
                        &logits,
                        dataset.classes,
                        &dataset.labels,
                        &split.validation,
                    ),
                };
                (scores, sound)
            })
        });
        // What is not a number has no largest entry: it would be class 0, and so many right.
        self.lost |= scores.is_some_and(|(_, sound)| !sound);
        self.communicator.stand_by()?;
        Ok(scores.map(|(scores, _)| scores))
    }

    /// The scores that worker 0 has, on all workers, for strategies whose training depends on them. Takes no bytes; who comes
    /// before worker 0 waits for it.
    ///
    /// # Errors
    /// If another worker failed.
    pub fn share_scores(&mut self, scores: Option<Scores>) -> Result<Scores, SimError> {
        self.following.share()?;
        let mine = scores.map(Scores::to_bytes);
        Ok(Scores::from_bytes(&self.communicator.share(mine)?))
    }

    /// Accuracies of the experiment's own model on worker 0, if this epoch is one of those evaluated.
    ///
    /// # Errors
    /// If another worker failed.
    pub fn evaluate_model(
        &mut self,
        epoch: usize,
        model: &Gnn,
    ) -> Result<Option<Scores>, SimError> {
        if !self.evaluates(epoch) {
            return Ok(None);
        }
        let aggregation = self.setting.model.aggregation();
        self.evaluate(|graph| {
            model
                .valid()
                .infer(&graph.block(aggregation), graph.features())
        })
    }

    fn recorder(&self) -> std::sync::MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
