//! What a strategy is, and what it says about itself.

use std::sync::Arc;

use crate::graph::{BoundaryPlan, PartitionSpec};
use crate::model::{LayerSpec, ModelSpec};
use crate::net::{AllReduceKind, Traffic};
use crate::sim::{
    EpochRecord, Observer, Outcome, Setting, SimError, Worker, simulate, simulate_together,
};

/// A way of training one model on the parts of one graph: the program of one worker, and a statement in advance of all it
/// will send.
pub trait Strategy: Send + Sync {
    /// Number of epochs of a whole training. Default: `training.epochs`.
    fn epochs(&self, context: &Context) -> usize {
        context.epochs
    }

    /// The partition this strategy trains on, given the one the experiment asks for. Default: that one. With a multiple of its workers, each of
    /// them gets equally many parts, and the boundary plan keeps these as chunks.
    fn partition(&self, asked: &PartitionSpec) -> PartitionSpec {
        asked.clone()
    }

    /// Whether the options make sense for this model and number of workers.
    ///
    /// # Errors
    /// An explanation with the option's name.
    fn check(&self, _context: &Context) -> Result<(), OptionError> {
        Ok(())
    }

    /// The sizes of a layer as it is trained here, for devices that hold so much and no more. Default: those of the model.
    fn layer(&self, model: &ModelSpec, layer: usize) -> LayerSpec {
        model.layer(layer)
    }

    /// Whether the options make sense for this model and these data, which are known later than the rest.
    ///
    /// # Errors
    /// An explanation with the option's name.
    fn suits(&self, _setting: &Setting) -> Result<(), OptionError> {
        Ok(())
    }

    /// Whether it trains in mini-batches where `training.batch` asks for them; if not, an experiment that does is refused. Default: no.
    fn trains_in_batches(&self) -> bool {
        false
    }

    /// Whether it cannot train without them; if so, an experiment without `training.batch` is refused. Default: no.
    fn needs_batches(&self) -> bool {
        false
    }

    /// Every message of one epoch, in advance. Where that depends on how the training goes, the most it can be.
    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic;

    /// Whether [`Strategy::plan`] is every message, and not merely the most there can be. Default: yes.
    fn plans_exactly(&self) -> bool {
        true
    }

    /// Every message of an epoch that is over, given what is recorded of it. The ledger of a run must equal it, message for
    /// message. Default: [`Strategy::plan`], as long as nothing depends on how the training goes.
    fn plan_after(
        &self,
        boundary: &BoundaryPlan,
        model: &ModelSpec,
        record: &EpochRecord,
    ) -> Traffic {
        self.plan(boundary, model, record.epoch)
    }

    /// The program of one worker, run on all workers at once.
    ///
    /// # Errors
    /// If communication fails or the strategy cannot go on; the run ends for all workers.
    fn train(&self, worker: &mut Worker) -> Result<(), SimError>;

    /// Whether the program of one worker plays all of them, so that replicas of thousands are held once; see
    /// [`simulate_together`]. Such a strategy cannot run on real processes. Default: no.
    fn plays_all_workers(&self) -> bool {
        false
    }

    /// Trains one cell with one seed: [`Self::train`] on every worker, or on worker 0 if it plays all.
    ///
    /// # Errors
    /// [`Self::suits`]'s, or the first error of any worker.
    fn run(&self, setting: &Arc<Setting>, observer: Observer) -> Result<Outcome, SimError> {
        self.suits(setting)
            .map_err(|OptionError { key, message }| {
                let key = key.map_or(String::new(), |key| format!("`{key}` "));
                SimError::Input(format!("{key}{message}"))
            })?;
        let train = |worker: &mut Worker| self.train(worker);
        if self.plays_all_workers() {
            simulate_together(setting, observer, train)
        } else {
            simulate(setting, observer, train)
        }
    }
}

/// What a strategy may know of an experiment when it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// `training.epochs`.
    pub epochs: usize,
    /// Message-passing layers of the model.
    pub layers: usize,
    /// Number of workers.
    pub workers: usize,
    /// How all-reduce is carried out.
    pub all_reduce: AllReduceKind,
    /// Whether `training.batch` asks for mini-batches.
    pub mini_batch: bool,
}

/// What `grapevine list strategies` prints.
#[derive(Clone, Copy, Debug)]
pub struct StrategyInfo {
    /// Name in experiment files.
    pub name: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    /// What crosses the network, and when.
    pub sends: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
}

/// One option of a strategy.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Key in experiment files.
    pub name: &'static str,
    /// What holds when it is not given.
    pub default: &'static str,
    /// One sentence, with its source.
    pub meaning: &'static str,
}

/// Options that a strategy cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OptionError {
    /// The offending key, if it is one.
    pub key: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl OptionError {
    /// An error about one key.
    #[must_use]
    pub fn key(key: &str, message: impl Into<String>) -> Self {
        Self {
            key: Some(key.to_owned()),
            message: message.into(),
        }
    }
}
