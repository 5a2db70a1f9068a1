//! The same cell with its nodes dealt out anew.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Setting, SimError};
use crate::graph::{BoundaryCounts, BoundaryPlan, Known, Partition, PartitionSpec};

/// Makes partitions of one kind, one after another.
#[derive(Debug)]
pub struct Repartitioner {
    spec: PartitionSpec,
    /// Where relative paths start.
    base: PathBuf,
    /// What was made last.
    last: Mutex<Made>,
}

/// Parts of a round, as long as somebody has them.
#[derive(Debug, Default)]
struct Made {
    round: usize,
    partition: Weak<Partition>,
    boundary: Weak<BoundaryPlan>,
    counts: Weak<BoundaryCounts>,
}

impl Repartitioner {
    /// One that divides as the first partition was divided.
    pub fn new(spec: PartitionSpec, base: PathBuf) -> Self {
        Self {
            spec,
            base,
            last: Mutex::default(),
        }
    }
}

impl Setting {
    /// This setting, which has the first partition, with that of a later `round`: as many parts of
    /// the same kind, drawn anew, and numbered so that few nodes leave the worker that has them in
    /// the round before.
    ///
    /// # Errors
    /// If the graph is not here, or cannot be divided so.
    pub(crate) fn repartitioned(self: &Arc<Self>, round: usize) -> Result<Arc<Self>, SimError> {
        let what = "nodes are dealt out anew only where the graph is divided here";
        let maker = self.repartitioner.as_ref();
        let maker = maker.ok_or_else(|| SimError::Strategy(what.to_owned()))?;
        // Held while parts are made, so that whoever else wants the same waits for them.
        let mut last = maker.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Each round follows from the one before.
        let mut setting = match self.with(&last) {
            Some(setting) if (1..=round).contains(&last.round) => setting,
            _ => {
                last.round = 0;
                Arc::clone(self)
            }
        };
        for next in last.round + 1..=round {
            setting = Arc::new(setting.redrawn(maker, next)?);
            *last = Made {
                round: next,
                partition: Arc::downgrade(&setting.partition),
                boundary: Arc::downgrade(&setting.boundary),
                counts: Arc::downgrade(&setting.counts),
            };
        }
        Ok(setting)
    }

    /// This with parts that were made, if they are still there.
    fn with(&self, made: &Made) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            partition: made.partition.upgrade()?,
            boundary: made.boundary.upgrade()?,
            counts: made.counts.upgrade()?,
            ..self.clone()
        }))
    }

    /// This with the parts of the next round.
    fn redrawn(&self, maker: &Repartitioner, round: usize) -> Result<Self, SimError> {
        let data = &self.dataset;
        let known = Known {
            train: &data.split.train,
            labels: Some(&data.labels),
        };
        let partition = maker
            .spec
            .partition_again(&data.graph, known, &maker.base, (self.seed, round))
            .map_err(|error| SimError::Input(error.to_string()))?
            .numbered_as(&self.partition);
        let boundary = BoundaryPlan::new(&data.graph, &partition).with_training(known.train);
        Ok(Self {
            counts: Arc::new(BoundaryCounts::new(&boundary, &data.features)),
            partition: Arc::new(partition),
            boundary: Arc::new(boundary),
            ..self.clone()
        })
    }
}
