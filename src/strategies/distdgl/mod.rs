//! `distdgl`: mini-batches whose neighbourhoods are sampled over the whole graph, and whose input features are fetched (Zheng et al.,
//! *`DistDGL`: Distributed Graph Neural Network Training for Billion-Scale Graphs*, IA³ 2020).
//!
//! In each step a worker takes a batch of its own training nodes and draws neighbours hop by hop (`training.batch`). From the second hop on some of
//! the nodes to draw for belong to others: it sends their numbers to the owners, 4 bytes a node, which draw for them and answer with the number and the
//! degree of each neighbour drawn, 8 bytes (both `sample`; the authors' code answers with source, destination and edge number of 8 bytes each,
//! 24 in all, and does without degrees, as its normalisations are those of what was drawn). Then it fetches the input features of the sampled
//! nodes that are not its own, each once: numbers to the owners, rows back (`feature`). All layers are computed where the batch is: no activation
//! and no gradient of one travels, only parameter gradients are summed. A step of a worker with `a_h` remote nodes at hop `h ≥ 1`, `n_h` neighbours
//! drawn for them and `r` remote inputs moves `Σ_h (4 a_h + 8 n_h) + 4r + 4rF` bytes; all workers together one all-reduce more.
//!
//! What is paid for that is computing: a node that several workers sample is computed by each of them. Sums and means over neighbours are
//! unbiased given their inputs, as in all mini-batches here; draws depend on the seed, epoch, step, hop and node alone, so that the losses are those of
//! `full` in the same mini-batches, up to the order of sums (the authors' workers draw independently of each other).
//!
//! With `cache` a share of the remote nodes, those with most neighbours, has its features kept once they came (as the static cache of `PaGraph`, `SoCC`
//! 2020, by degree; `DistDGL` has none). Which ones these are is known from the partition, and 1 keeps all. With a `codec` the features that are fetched
//! are compressed; what is kept of them is what came.

mod fetching;
mod rehearsal;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use super::fixed::{MEASURE_ERROR, RESCALE};
use super::parts::compressed::{CODEC, RATIO, SCHEDULE};
use super::parts::{
    CodecState, Compression, Wire, forward_error, gradient_traffic, lane, sum_steps,
};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::{Bytes, Traffic, TrafficKind, Way};
use crate::sim::{EpochReport, SimError, Worker};
use fetching::FetchingTrainer;
use rehearsal::{NEIGHBOUR_BYTES, NODE_BYTES, Rehearsal, Requests};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "distdgl",
        paper: "Zheng, Ma, Wang, Zhou, Su, Song, Gan, Zhang and Karypis, DistDGL: Distributed Graph Neural Network Training for Billion-Scale Graphs (IA³ 2020, arXiv 2010.05337)",
        sends: "in each mini-batch, numbers and degrees of sampled nodes, and the input features of those that are remote; parameter gradients. Needs training.batch (the authors' examples: size = 1000, fanouts = [25, 10], first the hop nearest to the batch)",
        options: &[
            OptionInfo {
                name: "cache",
                default: "0",
                meaning: "Share of the nodes of other workers, those with most neighbours, whose features are kept once they came (PaGraph's cache by degree; DistDGL has none). 1 keeps all.",
            },
            CODEC,
            RATIO,
            SCHEDULE,
            RESCALE,
            MEASURE_ERROR,
        ],
    },
    build,
};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    cache: f64,
}

struct DistDgl {
    cache: f64,
    compression: Compression,
    context: Context,
    /// What was played through last.
    rehearsal: Mutex<Option<Rehearsal>>,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let (compression, table) = Compression::on_request(table, context)?;
    let Options { cache } = options(&table)?;
    if !(0.0..=1.0).contains(&cache) {
        return Err(OptionError::key("cache", "must be between 0 and 1"));
    }
    if compression.is_adaptive() {
        let what = "looks at how the training goes, which these workers do not tell each other: choose one that goes by the epoch";
        return Err(OptionError::key("schedule", what));
    }
    compression.check_layers(context)?;
    Ok(Box::new(DistDgl {
        cache,
        compression,
        context: *context,
        rehearsal: Mutex::new(None),
    }))
}

impl DistDgl {
    /// The compression ratio of an epoch's features.
    fn ratio(&self, epoch: usize) -> f64 {
        self.compression.ratio_at(&self.context, epoch, &[])
    }

    /// How features travel in one of the steps of an epoch.
    fn wire(
        &self,
        seed: u64,
        (epoch, step, steps): (usize, usize, usize),
        state: &CodecState,
    ) -> Wire {
        let (context, ratio) = (&self.context, self.ratio(epoch));
        self.compression
            .wire(context, 0, ratio, (seed, epoch as u64), state)
            .at_step(steps, step)
    }

    /// What the workers ask each other for in a step; nothing without mini-batches.
    fn requests(&self, boundary: &BoundaryPlan, epoch: usize, step: usize) -> Arc<Requests> {
        let Some(batches) = &boundary.batches else {
            return Arc::default();
        };
        // What a thread that panicked left is replaced when it does not fit.
        let slot = self.rehearsal.lock();
        let mut slot = slot.unwrap_or_else(PoisonError::into_inner);
        let rehearsal = match slot.take() {
            Some(rehearsal) if rehearsal.is_of(batches) => rehearsal,
            _ => Rehearsal::new(boundary, batches, self.cache),
        };
        slot.insert(rehearsal).go_to(boundary, epoch, step)
    }
}

impl Strategy for DistDgl {
    fn trains_in_batches(&self) -> bool {
        true
    }

    fn needs_batches(&self) -> bool {
        true
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        let (steps, kind) = (boundary.steps().count(), self.context.all_reduce);
        let mut traffic =
            gradient_traffic(kind, boundary.workers(), model.parameters()).times(steps);
        let bytes = |count: usize, each: usize| Bytes((count * each) as u64);
        for step in 0..steps {
            let requests = self.requests(boundary, epoch, step);
            // What is drawn does not change how many bytes it takes.
            let wire = self.wire(0, (epoch, step, steps), &CodecState::default());
            for (hop, workers) in requests.draws.iter().enumerate() {
                let layer = model.layers() - 1 - hop;
                for (rank, asked) in workers.iter().enumerate() {
                    for (owner, asked) in asked.iter() {
                        let there = lane(layer, rank, owner, TrafficKind::Sample);
                        let back = lane(layer, owner, rank, TrafficKind::Sample);
                        traffic.add(there, bytes(asked.nodes, NODE_BYTES));
                        traffic.add(back, bytes(asked.neighbours, NEIGHBOUR_BYTES));
                    }
                }
            }
            for (rank, asked) in requests.features.iter().enumerate() {
                for (owner, &rows) in asked.iter() {
                    let there = lane(0, rank, owner, TrafficKind::Sample);
                    let back = lane(0, owner, rank, TrafficKind::Feature);
                    traffic.add(there, bytes(rows, NODE_BYTES));
                    let way = (owner, rank, Way::Forward);
                    traffic.add(back, wire.bytes(way, rows, model.features()));
                }
            }
        }
        traffic
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let boundary = Arc::clone(&worker.setting().boundary);
        let Some(batches) = &boundary.batches else {
            return Err(SimError::Input(
                "distdgl trains in mini-batches: give it `training.batch`".to_owned(),
            ));
        };
        let mut trainer = FetchingTrainer::new(worker, &batches.spec.fanouts, self.cache);
        let (seed, steps) = (worker.setting().seed, boundary.steps().count());
        let state = self.compression.state();
        sum_steps(
            worker,
            steps,
            |worker, model, epoch, step| {
                let requests = self.requests(&boundary, epoch, step);
                let wire = self.wire(seed, (epoch, step, steps), &state);
                trainer.step(worker, model, (&requests, &wire), epoch, step)
            },
            |worker, epoch| EpochReport {
                compression_ratio: self.compression.ratio(self.ratio(epoch)),
                coding_error: state.gauge().map(|gauge| {
                    let errors = gauge.take();
                    worker.measured_errors(epoch, &errors);
                    forward_error(&errors)
                }),
                ..EpochReport::default()
            },
        )
    }
}
