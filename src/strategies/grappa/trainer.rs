//! A loaded working graph, and how steps are taken on it.

use super::batches::{At, WorkingBatches};
use super::layout::Layout;
use super::weighing::{Weighing, Weights};
use super::working::HaloRows;
use crate::model::{Gnn, Input};
use crate::sim::{Activity, SimError, Worker};
use crate::strategies::parts::{LayerwiseTrainer, Step};

/// A working graph ready to train on.
pub(super) struct Loaded {
    pub trainer: Trainer,
    /// Mean coverage of the worker's nodes that train; none if none do.
    pub coverage: Option<f64>,
    /// The halo rows that came for it, where checkpoints are written.
    pub arrived: Option<HaloRows>,
}

impl Loaded {
    /// What it was made of, beside what the loader keeps, as it is saved.
    pub(super) fn made_of(&self) -> (&Option<HaloRows>, Option<&Weights>) {
        let weights = match &self.trainer {
            Trainer::Whole(whole) => Some(&whole.weights),
            Trainer::Batches(_) => None,
        };
        (&self.arrived, weights)
    }
}

/// How a step is taken on it.
pub(super) enum Trainer {
    /// With all nodes at once.
    Whole(Box<Whole>),
    /// With a mini-batch.
    Batches(Box<WorkingBatches>),
}

/// A working graph that trains with all nodes at once.
pub(super) struct Whole {
    pub trainer: LayerwiseTrainer,
    pub features: Input,
    /// Weights of the worker's nodes that train.
    pub weights: Weights,
}

impl Trainer {
    /// Number of steps of an epoch.
    pub(super) const fn steps(&self) -> usize {
        match self {
            Self::Whole(_) => 1,
            Self::Batches(batches) => batches.steps.count(),
        }
    }

    /// The order in which nodes train in an epoch; empty where all train at once.
    pub(super) fn order(&self, worker: &mut Worker, epoch: usize) -> Vec<u32> {
        match self {
            Self::Whole(_) => Vec::new(),
            Self::Batches(batches) => {
                let order = |worker: &Worker| batches.order(worker, epoch);
                worker.compute(Activity::Exchange, order)
            }
        }
    }

    /// Loss and gradient of one step, with weights of those that train in it.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn step(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        how: (&Weighing, &Layout<'_>),
        order: &[u32],
        at: At,
    ) -> Result<(Step, Weights), SimError> {
        match self {
            Self::Whole(whole) => {
                let (trainer, features) = (&whole.trainer, &whole.features);
                let step = trainer.local_step(worker, model, features, at.epoch)?;
                Ok((step, whole.weights.clone()))
            }
            Self::Batches(batches) => batches.step(worker, model, how, order, at),
        }
    }
}
