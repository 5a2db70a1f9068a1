//! `distdgl`: mini-batches whose neighbourhoods are sampled over the whole graph, and whose input
//! features are fetched (Zheng et al., *`DistDGL`: Distributed Graph Neural Network Training for
//! Billion-Scale Graphs*, IA³ 2020).
//!
//! In each step a worker takes a batch of its own training nodes and draws neighbours hop by hop
//! (`training.batch`). From the second hop on some of the nodes to draw for belong to others: it
//! sends their numbers to the owners, 4 bytes a node, which draw for them and answer with the
//! number and the degree of each neighbour drawn, 8 bytes (both `sample`; the authors' code answers
//! with source, destination and edge number of 8 bytes each, 24 in all, and does without degrees,
//! as its normalisations are those of what was drawn: `degrees = "block"`). Then it fetches the
//! input features of the sampled nodes that are not its own, each once: numbers to the owners, rows
//! back (`feature`). All layers are computed where the batch is: no activation and no gradient of
//! one travels, only parameter gradients are summed. A step of a worker with `a_h` remote nodes at
//! hop `h ≥ 1`, `n_h` neighbours drawn for them and `r` remote inputs moves `Σ_h (4 a_h + 8 n_h) +
//! 4r + 4rF` bytes; all workers together one all-reduce more.
//!
//! What is paid for that is computing: a node that several workers sample is computed by each of
//! them. Sums and means over neighbours are unbiased given their inputs, as in all mini-batches
//! here; draws depend on the seed, epoch, step, hop and node alone, so that the losses are those of
//! `full` in the same mini-batches, up to the order of sums (the authors' workers draw
//! independently of each other).
//!
//! With `prefetch` batches are made ready while earlier ones are computed, each of their stages in
//! a step of its own, so that a message has a step to arrive (`pipeline`). Bytes and losses are
//! the same. `DistDGL`'s sampler processes run ahead so, up to `queue_size` batches within an epoch
//! (`python/dgl/distributed/dist_dataloader.py`); its second version fetches features ahead, too
//! (Zheng et al., arXiv 2112.15345). Ours goes on across epochs. What sampling and gathering
//! compute is charged to the worker's own clock, with and without, as it is to `grappa`, unless
//! `[compute]` says that processors beside the device do it (`timing = { …, sampling = false }`).
//! The copy to the device is charged to nobody.
//!
//! With `cache` the features of some remote nodes, those with most neighbours, are kept once they
//! came, as the static cache of `PaGraph` (Lin et al., `SoCC` 2020) keeps those of highest degree;
//! `DistDGL` has none. A worker keeps as many rows as the bytes hold, 4 bytes a value. With a
//! `codec` the features that are fetched are compressed; what is kept of them is what came.

mod cache;
mod degrees;
mod drawn;
mod expectation;
mod fetching;
mod pipeline;
mod plan;
mod sampled_requests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::Deserialize;

use super::parts::options::{
    GRADIENTS, MEASURE_ERROR, ON_REQUEST_CODEC, RATIO, RESCALE, SCHEDULE, option_list,
};
use super::parts::plan::StepPlanner;
use super::parts::{
    CodecState, Compression, Gradients, RowWires, Step, Stepwise, Wire, forward_error, sum_steps,
};
use super::{
    BatchUse, Needs, NeedsOfOthers, OptionError, PlansFrom, Registration, Strategy, StrategyInfo,
    Training, options,
};
use crate::digits;
use crate::graph::{Batches, PartitionSpec};
use crate::model::Gnn;
use crate::net::TrafficKind;
use crate::sim::{EpochReport, Planner, Restoring, Saved, Saving, Setting, SimError, Worker};
use cache::CacheSize;
use degrees::BlockDegrees;
use fetching::FetchingTrainer;
use pipeline::Pipeline;
use plan::FetchPlan;

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "distdgl",
        paper: "Zheng, Ma, Wang, Zhou, Su, Song, Gan, Zhang and Karypis, DistDGL: Distributed Graph Neural Network Training for Billion-Scale Graphs (IA³ 2020, arXiv 2010.05337)",
        sends: "in each mini-batch, numbers and degrees of sampled nodes, and the input features of those that are remote; parameter gradients. Needs training.batch (the authors' examples: size = 1000, fanouts = [25, 10], first the hop nearest to the batch)",
        options: option_list! {
            prefetch: "true; false with measure_error", "Make batches ready while earlier ones are computed, so that numbers, neighbours and features each have a step to arrive (its sampler processes do so with numbers and neighbours; false is as Grappa's authors run it, without any).";
            cache: "0", "Bytes of features of other workers' nodes that a worker may hold, such as \"64MB\", for those with most neighbours, once they came (PaGraph's cache by degree; DistDGL has none); \"grappa-halo\": as many rows as a worker of grappa with random chunks has beside its own.";
            degrees: "\"global\"", "What a GCN's rows are divided by: degrees in the whole graph, so that sampled sums are right on average, or \"block\", how many neighbours a row drew and how many rows drew it, as DGL's GraphConv.";
            ON_REQUEST_CODEC; RATIO; SCHEDULE; RESCALE; MEASURE_ERROR; GRADIENTS;
        },
    },
    read,
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    prefetch: Option<bool>,
    cache: Option<toml::Value>,
    #[serde(default)]
    degrees: BlockDegrees,
    #[serde(default)]
    gradients: Gradients,
}

#[derive(Clone)]
struct DistDgl {
    prefetch: bool,
    cache: CacheSize,
    degrees: BlockDegrees,
    compression: Compression,
    gradients: Gradients,
}

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let (compression, table) = Compression::on_request(table)?;
    let Options {
        prefetch,
        cache,
        degrees,
        gradients,
    } = options(&table)?;
    if prefetch == Some(true) && compression.measure_error {
        let what = "must be false with measure_error: features of the next epochs are encoded before this one has ended";
        return Err(OptionError::key("prefetch", what));
    }
    let prefetch = prefetch.unwrap_or(!compression.measure_error);
    let cache = CacheSize::read(cache)?;
    if compression.is_adaptive() {
        let what = "looks at how the training goes, which these workers do not tell each other: choose one that goes by the epoch";
        return Err(OptionError::key("schedule", what));
    }
    Ok(Box::new(DistDgl {
        prefetch,
        cache,
        degrees,
        compression,
        gradients,
    }))
}

impl Strategy for DistDgl {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        Ok(Needs::of(asked.clone(), BatchUse::Needed))
    }

    fn plans_from(&self, batches: bool) -> PlansFrom {
        PlansFrom {
            counts: true,
            law: true,
            others: NeedsOfOthers::of_rows(batches),
        }
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        let Some(batches) = setting.batches.clone() else {
            return Err(OptionError::key("kind", "distdgl trains in mini-batches"));
        };
        Ok(Box::new(Fetching {
            prefetch: self.prefetch,
            degrees: self.degrees,
            gradients: self.gradients,
            rooms: self.cache.rooms(setting)?,
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
    prefetch: bool,
    degrees: BlockDegrees,
    gradients: Gradients,
    /// Rows of features that each worker has room for.
    rooms: Vec<usize>,
    cache: CacheSize,
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

    fn pipeline(&self) -> Pipeline {
        let steps = self.setting.training.epochs * self.steps();
        Pipeline::new(self.batches.spec.fanouts.len(), self.prefetch, steps)
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
            self.gradients,
            self.steps(),
            plan,
        ))
    }

    fn notes(&self) -> Vec<String> {
        let row = 4.0 * self.setting.model.features() as f64;
        let asked = matches!(self.cache, CacheSize::Bytes(_));
        let none = asked && self.rooms.iter().all(|&rows| rows == 0);
        let none = none.then(|| {
            format!(
                "its cache holds no row: the features of a node take {}",
                digits::bytes(row)
            )
        });
        let steps = self.setting.training.epochs * self.steps();
        let late = self.gradients.note(&self.setting, steps);
        none.into_iter().chain(late).collect()
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let fanouts = &self.batches.spec.fanouts;
        let room = self.rooms[worker.rank()];
        let mut program = Fetches {
            trainer: FetchingTrainer::new(worker, (fanouts, self.degrees), self.pipeline(), room),
            fetching: self,
            state: self.wires.state(),
        };
        sum_steps(worker, self.gradients, self.steps(), &mut program)
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The program of one worker.
struct Fetches<'a> {
    fetching: &'a Fetching,
    trainer: FetchingTrainer,
    state: CodecState,
}

impl Stepwise for Fetches<'_> {
    fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        epoch: usize,
        step: usize,
    ) -> Result<Step, SimError> {
        let wires = |epoch, step| self.fetching.wire((epoch, step), &self.state);
        self.trainer.step(worker, model, &wires, epoch, step)
    }

    fn report(&self, worker: &Worker, epoch: usize) -> EpochReport {
        EpochReport {
            compression_ratio: self.fetching.wires.ratio(self.fetching.ratio(epoch)),
            coding_error: self.state.gauge().map(|gauge| {
                let errors = gauge.take();
                worker.measured_errors(epoch, &errors, TrafficKind::Feature);
                forward_error(&errors)
            }),
            ..EpochReport::default()
        }
    }

    fn save(&self, worker: &Worker, into: &mut Saving) {
        self.state.save(into);
        self.trainer.save(worker, into);
    }

    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.state.restore(from)?;
        self.trainer.restore(from)
    }
}
