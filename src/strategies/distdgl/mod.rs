//! `distdgl`: mini-batches whose neighbourhoods are sampled over the whole graph, and whose input
//! features are fetched (Zheng et al., *`DistDGL`: Distributed Graph Neural Network Training for
//! Billion-Scale Graphs*, IA³ 2020).
//!
//! In each step a worker takes a batch of its own training nodes and draws neighbours hop by hop
//! (`training.batch`). From the second hop on some of the nodes to draw for belong to others: it
//! sends their numbers to the owners, 4 bytes a node, which draw for them and answer with the
//! number and the degree of each neighbour drawn, 8 bytes (both `sample`; the authors' code answers
//! with source, destination and edge number of 8 bytes each, 24 in all, and does without degrees,
//! as its normalisations are those of what was drawn). Then it fetches the input features of the
//! sampled nodes that are not its own, each once: numbers to the owners, rows back (`feature`). All
//! layers are computed where the batch is: no activation and no gradient of one travels, only
//! parameter gradients are summed. A step of a worker with `a_h` remote nodes at hop `h ≥ 1`, `n_h`
//! neighbours drawn for them and `r` remote inputs moves `Σ_h (4 a_h + 8 n_h) + 4r + 4rF` bytes;
//! all workers together one all-reduce more.
//!
//! What is paid for that is computing: a node that several workers sample is computed by each of
//! them. Sums and means over neighbours are unbiased given their inputs, as in all mini-batches
//! here; draws depend on the seed, epoch, step, hop and node alone, so that the losses are those of
//! `full` in the same mini-batches, up to the order of sums (the authors' workers draw
//! independently of each other).
//!
//! With `cache` a share of the remote nodes, those with most neighbours, has its features kept once
//! they came (as the static cache of `PaGraph`, `SoCC` 2020, by degree; `DistDGL` has none). Which
//! ones these are is known from the partition, and 1 keeps all. With a `codec` the features that
//! are fetched are compressed; what is kept of them is what came.

mod fetching;
mod plan;
mod rehearsal;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::Deserialize;

use super::parts::options::{MEASURE_ERROR, ON_REQUEST_CODEC, RATIO, RESCALE, SCHEDULE};
use super::parts::plan::StepPlanner;
use super::parts::{CodecState, Compression, RowWires, Wire, forward_error, sum_steps};
use super::{
    BatchUse, Needs, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, Training,
    options,
};
use crate::graph::{Batches, PartitionSpec};
use crate::net::TrafficKind;
use crate::sim::{EpochReport, Planner, Setting, SimError, Worker};
use fetching::FetchingTrainer;
use plan::FetchPlan;

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
            ON_REQUEST_CODEC,
            RATIO,
            SCHEDULE,
            RESCALE,
            MEASURE_ERROR,
        ],
    },
    read,
};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    cache: f64,
}

#[derive(Clone)]
struct DistDgl {
    cache: f64,
    compression: Compression,
}

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let (compression, table) = Compression::on_request(table)?;
    let Options { cache } = options(&table)?;
    if !(0.0..=1.0).contains(&cache) {
        return Err(OptionError::key("cache", "must be between 0 and 1"));
    }
    if compression.is_adaptive() {
        let what = "looks at how the training goes, which these workers do not tell each other: choose one that goes by the epoch";
        return Err(OptionError::key("schedule", what));
    }
    Ok(Box::new(DistDgl { cache, compression }))
}

impl Strategy for DistDgl {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        Ok(Needs {
            partition: asked.clone(),
            batches: BatchUse::Needed,
            together: false,
        })
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        let Some(batches) = setting.batches.clone() else {
            return Err(OptionError::key("kind", "distdgl trains in mini-batches"));
        };
        Ok(Box::new(Fetching {
            cache: self.cache,
            wires: self.compression.fit(setting, setting.training.epochs)?,
            batches,
            setting: Arc::clone(setting),
        }))
    }
}

/// `DistDGL` in its setting.
#[derive(Clone)]
struct Fetching {
    cache: f64,
    wires: RowWires,
    batches: Arc<Batches>,
    setting: Arc<Setting>,
}

impl Fetching {
    /// The compression ratio of an epoch's features.
    fn ratio(&self, epoch: usize) -> f64 {
        self.wires.ratio_at(epoch, &[])
    }

    /// How features travel in a step.
    fn wire(&self, (epoch, step): (usize, usize), state: &CodecState) -> Wire {
        let wire = self.wires.wire(0, self.ratio(epoch), epoch as u64, state);
        wire.at_step(self.steps(), step)
    }

    fn steps(&self) -> usize {
        self.setting.steps().count()
    }
}

impl Training for Fetching {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        let plan = FetchPlan::new(self.clone());
        Box::new(StepPlanner::new(
            Arc::clone(&self.setting),
            self.steps(),
            plan,
        ))
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let fanouts = &self.batches.spec.fanouts;
        let mut trainer = FetchingTrainer::new(worker, fanouts, self.cache);
        let state = self.wires.state();
        sum_steps(
            worker,
            self.steps(),
            |worker, model, epoch, step| {
                let wire = self.wire((epoch, step), &state);
                trainer.step(worker, model, &wire, epoch, step)
            },
            |worker, epoch| EpochReport {
                compression_ratio: self.wires.ratio(self.ratio(epoch)),
                coding_error: state.gauge().map(|gauge| {
                    let errors = gauge.take();
                    worker.measured_errors(epoch, &errors, TrafficKind::Feature);
                    forward_error(&errors)
                }),
                ..EpochReport::default()
            },
        )
    }
}
