//! Batches that are under way when a checkpoint is written, and features that are kept.

use serde::{Deserialize, Serialize};

use super::{BlockDegrees, FetchingTrainer, Frontier, Hop, Neighbour, Preparing, Waits, split};
use crate::graph::{Csr, SampledLayer, seeds_of, shuffled};
use crate::sim::{Restoring, Saving, SimError, Worker};
use crate::strategies::parts::{Asked, PendingRequests, batch_targets};

/// A hop as it is saved.
#[derive(Serialize, Deserialize)]
struct SavedHop {
    rows: Vec<u32>,
    outputs: usize,
    own: usize,
    offsets: Vec<usize>,
    neighbours: Vec<u32>,
    seen: Vec<usize>,
    degrees: Vec<usize>,
}

impl SavedHop {
    fn of(hop: &Hop) -> Self {
        let sampled = hop.sampled.clone();
        Self {
            rows: sampled.rows,
            outputs: sampled.outputs,
            own: sampled.own,
            offsets: sampled.adjacency.offsets().to_vec(),
            neighbours: sampled.adjacency.indices().to_vec(),
            seen: sampled.degrees,
            degrees: hop.degrees.clone(),
        }
    }

    fn hop(self, worker: &Worker, rule: BlockDegrees) -> Result<Hop, SimError> {
        let adjacency = Csr::from_rows(self.rows.len(), self.offsets, self.neighbours);
        let no_rows = || SimError::Strategy("a checkpoint has a hop without rows".to_owned());
        let sampled = SampledLayer {
            rows: self.rows,
            outputs: self.outputs,
            own: self.own,
            adjacency: adjacency.ok_or_else(no_rows)?,
            degrees: self.seen,
        };
        let aggregation = worker.setting().model.aggregation();
        Ok(Hop {
            block: rule.block(&sampled, &self.degrees, aggregation),
            sampled,
            degrees: self.degrees,
        })
    }
}

/// What a batch waits for, as it is saved before the rest of it.
#[derive(Serialize, Deserialize)]
enum SavedWaits {
    Asks,
    Neighbours(u64),
    Features(u64),
    Nothing,
}

impl FetchingTrainer {
    /// Saves the batches under way, and features that stay.
    pub(crate) fn save(&self, worker: &Worker, into: &mut Saving) {
        into.put(&(&self.order.0, self.batches.len()));
        for batch in &self.batches {
            batch.save(into);
        }
        let first = worker.shard().owned as u32;
        let rows: Vec<u32> = (first..self.stored.rows() as u32).collect();
        into.put(&(&self.kept, self.cache.kept()));
        into.floats(&self.stored.dense_rows(&rows));
    }

    /// Takes back what was saved.
    ///
    /// # Errors
    /// If something else was.
    pub(crate) fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        let batches: usize;
        (self.order.0, batches) = from.saved().take()?;
        for _ in 0..batches {
            let batch = self.batch(from)?;
            self.batches.push_back(batch);
        }
        let asked: Vec<u32>;
        (self.kept, asked) = from.saved().take()?;
        self.stored.append(&from.saved().floats()?);
        for node in asked {
            self.cache.asks(node);
        }
        Ok(())
    }

    /// The next batch that was saved.
    fn batch(&self, from: &mut Restoring<'_>) -> Result<Preparing, SimError> {
        type Rest = (Vec<u32>, Vec<usize>, Vec<Vec<Neighbour>>, Vec<SavedHop>);
        let at: (usize, usize) = from.saved().take()?;
        let (nodes, degrees, drawn, hops): Rest = from.saved().take()?;
        let wanted = from.saved().take()?;
        let waits = match from.saved().take()? {
            SavedWaits::Nothing => Waits::Nothing,
            SavedWaits::Asks => Waits::Asks(PendingRequests::restored(from)?),
            SavedWaits::Neighbours(number) => {
                Waits::Neighbours(Asked::restored(from)?, from.exchange(number)?)
            }
            SavedWaits::Features(number) => {
                Waits::Features(Asked::restored(from)?, from.exchange(number)?)
            }
        };
        let worker = from.worker();
        let (seed, rank, (epoch, step)) = (worker.setting().seed, worker.rank(), at);
        let order = shuffled(seed, epoch, rank, &worker.shard().train);
        let seeds = seeds_of(&order, &self.steps, rank, step);
        let layers = hops.into_iter().map(|hop| hop.hop(worker, self.degrees));
        Ok(Preparing {
            at,
            targets: batch_targets(worker, &self.steps, &seeds, step),
            layers: layers.collect::<Result<_, _>>()?,
            frontier: Frontier {
                split: split(worker, &nodes),
                nodes,
                degrees,
            },
            drawn,
            waits,
            wanted,
            features: None,
        })
    }
}

impl Preparing {
    /// Saves a batch whose features are not here yet: those of one that is ready are used in the
    /// same step.
    fn save(&self, into: &mut Saving) {
        into.put(&self.at);
        let hops: Vec<SavedHop> = self.layers.iter().map(SavedHop::of).collect();
        let Frontier { nodes, degrees, .. } = &self.frontier;
        into.put(&(nodes, degrees, &self.drawn, hops));
        into.put(&self.wanted);
        match &self.waits {
            Waits::Nothing => into.put(&SavedWaits::Nothing),
            Waits::Asks(asking) => {
                into.put(&SavedWaits::Asks);
                asking.save(into);
            }
            Waits::Neighbours(asked, pending) => {
                into.put(&SavedWaits::Neighbours(pending.number()));
                asked.save(into);
            }
            Waits::Features(asked, pending) => {
                into.put(&SavedWaits::Features(pending.number()));
                asked.save(into);
            }
        }
    }
}
