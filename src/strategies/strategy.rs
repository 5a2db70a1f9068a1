//! What a strategy is, in three steps: what it needs, how it fits its setting, what it plans and
//! does.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::graph::PartitionSpec;
use crate::model::{LayerSpec, ModelSpec, NamedParameter, named_parameters};
use crate::names::named;
use crate::sim::{
    Checkpoints, Observer, Outcome, Planner, Run, Setting, SimError, Worker, simulate,
};

/// A way of training one model on the parts of one graph, with its options as the experiment file
/// has them.
///
/// ```text
///   Strategy ──needs──▶ data, partition, devices ──▶ Setting ──fit──▶ Training
///                                          planner: what will be done ◀──┤
///                                          train: do it ◀────────────────┘
/// ```
///
/// # Example
/// What another crate makes of it stands in `docs/add-a-strategy.md`. Fitting and planning by hand:
///
/// ```no_run
/// use std::sync::Arc;
///
/// use grapevine::sim::Setting;
/// use grapevine::strategies::{OptionError, Registry, Strategy};
///
/// # fn plan(setting: &Arc<Setting>) -> Result<(), OptionError> {
/// let options = "ratio = 4".parse().expect("it is TOML");
/// let strategy = Registry::builtin().read("fixed", &options)?;
/// let training = strategy.fit(setting)?;
/// let first = training.planner().next(None);
/// println!("{} workers take part in epoch {}", first.workers(), first.epoch);
/// # Ok(())
/// # }
/// ```
pub trait Strategy: Send + Sync {
    /// What it needs of an experiment that asks for this partition. Known before any data are read.
    ///
    /// # Errors
    /// If it cannot have that of so many workers.
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        Ok(Needs::of(asked.clone(), BatchUse::Never))
    }

    /// What it plans from, with or without mini-batches. Default: all of the graph.
    fn plans_from(&self, batches: bool) -> PlansFrom {
        let _ = batches;
        PlansFrom::default()
    }

    /// The sizes of a layer as it is trained here, for devices that hold so much and no more.
    /// Default: those of the model.
    fn layer(&self, model: &ModelSpec, layer: usize) -> LayerSpec {
        model.layer(layer)
    }

    /// The training of a cell and seed, with everything known. All that can be wrong with the
    /// options shows here.
    ///
    /// # Errors
    /// An explanation with the option's name.
    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError>;
}

/// What the plan of a strategy follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlansFrom {
    /// [`BoundaryCounts`](crate::graph::BoundaryCounts) and the law of a graph are enough, so that
    /// graphs can be projected that nobody holds.
    pub counts: bool,
    /// It asks the law where a sample or a chunk leads, which is known of random parts alone;
    /// otherwise how much crosses is enough.
    pub law: bool,
    /// What it has to know of the parts of others where a worker has its own shard alone.
    pub others: NeedsOfOthers,
}

/// What a strategy has to know of the parts of other workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NeedsOfOthers {
    /// How much there is: [`BoundaryCounts`](crate::graph::BoundaryCounts).
    Counts,
    /// Whose rows cross: lists of nodes ([`BoundaryPlan`](crate::graph::BoundaryPlan)), 4 bytes for
    /// each node and 12 for each boundary row.
    Boundary,
    /// Their edges, too: of a whole graph all but features and labels.
    Edges,
    /// All of them, so that it does not train from shards.
    #[default]
    Graph,
}

impl NeedsOfOthers {
    /// [`Self::Counts`] where all nodes train at once. In mini-batches who asks whom for what
    /// follows from the edges.
    pub(crate) const fn of_rows(batches: bool) -> Self {
        if batches { Self::Edges } else { Self::Counts }
    }
}

/// What a strategy needs of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Needs {
    /// The partition it trains on. With a multiple of the experiment's workers, each of them gets
    /// equally many parts, which are kept as chunks.
    pub partition: PartitionSpec,
    /// Whether it trains in the mini-batches of `training.batch`.
    pub batches: BatchUse,
    /// Whether the program of worker 0 plays all workers, so that replicas of thousands are held
    /// once; see [`Run::together`]. Such a strategy cannot run on real processes.
    pub together: bool,
}

impl Needs {
    /// Of a strategy of which each worker runs its own program.
    pub const fn of(partition: PartitionSpec, batches: BatchUse) -> Self {
        Self {
            partition,
            batches,
            together: false,
        }
    }

    /// Whether a strategy of this kind goes with an experiment that asks for mini-batches, or does
    /// not.
    ///
    /// # Errors
    /// If not.
    pub fn check_batches(&self, kind: &str, asked: bool) -> Result<(), OptionError> {
        let message = match self.batches {
            BatchUse::Never if asked => format!(
                "{kind} with these options, or the defaults of those that are left out, trains on all nodes at once, or in batches of its own: leave out `training.batch`"
            ),
            BatchUse::Needed if !asked => format!(
                "`{kind}` trains in mini-batches: say how large in `training.batch`, such as {{ size = 1000, fanouts = [25, 10] }}, \
                 for this entry alone with `with = {{ \"training.batch\" = … }}`"
            ),
            _ => return Ok(()),
        };
        Err(OptionError::whole(message))
    }
}

/// Whether a strategy trains in the mini-batches of `training.batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchUse {
    /// It trains on all nodes at once, or in batches of its own: the key is refused.
    Never,
    /// Where they are asked for.
    Possible,
    /// It cannot train without them: the key is demanded.
    Needed,
}

/// A strategy fitted to its setting: the program of one worker, and a statement in advance of all
/// it will do.
pub trait Training: Send + Sync {
    /// What it is fitted to.
    fn setting(&self) -> &Arc<Setting>;

    /// Number of epochs of the whole training. Default: `training.epochs`.
    fn epochs(&self) -> usize {
        self.setting().training.epochs
    }

    /// What one of these epochs is. Default: a pass over all training nodes.
    fn epoch_kind(&self) -> EpochKind {
        EpochKind::Pass
    }

    /// What a reader of its results should know of how it goes with its setting, each as the end of
    /// a sentence that begins with the strategy's label. Default: nothing.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Its plan, from epoch 0 on.
    fn planner(&self) -> Box<dyn Planner>;

    /// Whether the plan is every message before anything is decided on the way, and not merely the
    /// most there can be. Default: yes.
    fn plans_exactly(&self) -> bool {
        true
    }

    /// Whether its program saves what it needs to go on from a checkpoint, with
    /// [`Worker::resume`] and [`Worker::checkpoint`]. Default: no.
    ///
    /// # Errors
    /// Why not, as the end of a sentence that begins with the strategy's name.
    fn saves(&self) -> Result<(), String> {
        Err("does not save its state".to_owned())
    }

    /// The parameters that it starts from, the same on all workers, as `grapevine weights` writes
    /// them. Default: those of the experiment's model. One that trains other models says so here.
    fn initial(&self) -> Vec<NamedParameter> {
        let setting = self.setting();
        named_parameters(&setting.new_model(&setting.device()))
    }

    /// The program of one worker, run on all workers at once. It does what its plan says, phase by
    /// phase.
    ///
    /// # Errors
    /// If communication fails or the strategy cannot go on; the run ends for all workers.
    fn train(&self, worker: &mut Worker) -> Result<(), SimError>;
}

/// Trains one cell with one seed.
///
/// # Errors
/// The first error of any worker.
pub fn run(
    training: &dyn Training,
    together: bool,
    observer: Observer,
) -> Result<Outcome, SimError> {
    run_keeping(training, together, observer, None)
}

/// As [`run()`], with checkpoints, from the newest of which it goes on, if there is one.
///
/// # Errors
/// As [`run()`], and if a checkpoint cannot be written.
pub fn run_keeping(
    training: &dyn Training,
    together: bool,
    observer: Observer,
    checkpoints: Option<Checkpoints>,
) -> Result<Outcome, SimError> {
    let run = Run {
        planner: training.planner(),
        epochs: training.epochs(),
        together,
        checkpoints,
    };
    simulate(training.setting(), run, observer, |worker| {
        training.train(worker)
    })
}

named! {
    /// What is recorded as an epoch of a training. Accuracies against epochs compare like with like
    /// only between strategies of one kind.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum EpochKind {
        /// All workers have passed over all their training nodes once.
        #[default]
        Pass = "pass",
        /// A round between averages of models, of one local step or more.
        Round = "round",
        /// A pass of one sub-model, which are trained one after another.
        SubModel = "sub-model",
    }
}

/// What `grapevine list strategies` prints.
#[derive(Clone, Copy, Debug, Serialize)]
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
#[derive(Clone, Copy, Debug, Serialize)]
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
    /// An error about no key in particular.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self {
            key: None,
            message: message.into(),
        }
    }

    /// An error about one key.
    pub fn key(key: &str, message: impl Into<String>) -> Self {
        Self {
            key: Some(key.to_owned()),
            message: message.into(),
        }
    }
}
