//! `varco`: activations compressed at a rate that falls during training (Cerviño et al., arXiv 2406.17611).
//!
//! As `full`, but boundary rows go through a codec in every layer but the last. By default, of each row of width `n` only
//! `max(1, ⌊n/c⌋)` columns travel, and what is missing counts as zero. The columns are drawn anew for each layer and epoch by both ends from a common seed, so no index is sent. The gradient
//! of a row comes back in the same columns. The ratio `c` follows a schedule, by default from 128 down to 1 after a fifth of the
//! epochs; from there on the training is exact. An adaptive schedule depends on how the training goes, so its plan in advance is an
//! upper bound. Features are resent in every epoch, as in the authors' code. An epoch moves
//! `4B (Σ_{l<L−1} max(1, ⌊d_l/c⌋) + d_{L−1})` bytes forward, and the same without layer 0 back.

use serde::Deserialize;

use super::fixed::{CACHE_FEATURES, CODEC, MEASURE_ERROR, RESCALE};
use super::full::OVERLAP;
use super::parts::{
    CodecChoice, CodecState, Compression, EpochExchange, Overlap, Schedule, error_traffic,
    exchange_traffic, partition_parallel,
};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::Traffic;
use crate::sim::{EpochRecord, Setting, SimError, Worker};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "varco",
        paper: "Cerviño, Turja, Mostafa, Himayat and Ribeiro, Distributed Training of Large Graph Neural Networks with Variable Communication Rates (arXiv 2406.17611)",
        sends: "boundary rows and their gradients, compressed less and less, every epoch; the last layer whole; parameter gradients; in mini-batches the sampled rows, and their ids whole",
        options: &[
            CODEC,
            OptionInfo {
                name: "schedule",
                default: "{ kind = \"linear\", from = 128, to = 1, slope = 5 }",
                meaning: "Ratio by epoch: linear (the paper's), exponential, cosine, steps; adaptive-validation, adaptive-error (divided by a factor when the validation accuracy, or the fall of the measured compression error, stalls).",
            },
            RESCALE,
            CACHE_FEATURES,
            MEASURE_ERROR,
            OVERLAP,
        ],
    },
    build,
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // switches of an experiment file
struct Options {
    #[serde(default)]
    codec: CodecChoice,
    schedule: Option<Schedule>,
    #[serde(default)]
    rescale: bool,
    #[serde(default)]
    cache_features: bool,
    #[serde(default)]
    measure_error: bool,
    #[serde(default)]
    overlap: bool,
}

struct Varco {
    compression: Compression,
    schedule: Schedule,
    overlap: bool,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    options.codec.check(options.rescale)?;
    options.codec.check_batches(context)?;
    let schedule = options.schedule.unwrap_or_default();
    schedule.check()?;
    if options.schedule.is_some() && !options.codec.follows_ratio() {
        return Err(OptionError::key(
            "schedule",
            "does nothing for this codec, which has a cost of its own: leave it out, or make the codec second of a composition",
        ));
    }
    Ok(Box::new(Varco {
        compression: Compression {
            codec: options.codec,
            rescale: options.rescale,
            cache_features: options.cache_features,
            measure_error: options.measure_error,
        },
        schedule,
        overlap: options.overlap,
        context: *context,
    }))
}

impl Varco {
    fn exchange(&self, ratio: f64, seed: u64, epoch: usize, state: &CodecState) -> EpochExchange {
        EpochExchange {
            shares_scores: self.schedule.needs_validation(),
            ..self
                .compression
                .exchange(&self.context, ratio, seed, epoch, state)
        }
    }

    fn traffic(
        &self,
        boundary: &BoundaryPlan,
        model: &ModelSpec,
        epoch: usize,
        ratio: f64,
    ) -> Traffic {
        // What is drawn and remembered does not change how many bytes it takes.
        let exchange = self.exchange(ratio, 0, epoch, &CodecState::default());
        let (all_reduce, workers) = (self.context.all_reduce, boundary.workers());
        let overlap = self.overlap;
        let mut traffic = exchange_traffic(all_reduce, boundary, model, epoch, &exchange, overlap);
        if self.schedule.needs_error() {
            traffic.merge(&error_traffic(all_reduce, workers));
        }
        traffic
    }
}

impl Strategy for Varco {
    fn trains_in_batches(&self) -> bool {
        true
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        let ratio = self.schedule.least_ratio(epoch, self.context.epochs);
        self.traffic(boundary, model, epoch, ratio)
    }

    fn plans_exactly(&self) -> bool {
        !self.schedule.is_adaptive()
    }

    fn plan_after(
        &self,
        boundary: &BoundaryPlan,
        model: &ModelSpec,
        record: &EpochRecord,
    ) -> Traffic {
        match record.compression_ratio {
            Some(ratio) if self.schedule.is_adaptive() => {
                self.traffic(boundary, model, record.epoch, ratio)
            }
            _ => self.plan(boundary, model, record.epoch),
        }
    }

    fn suits(&self, setting: &Setting) -> Result<(), OptionError> {
        if self.schedule.needs_validation() && setting.dataset.split.validation.is_empty() {
            let what =
                "adaptive-validation needs validation nodes, and the data set's split has none";
            return Err(OptionError::key("schedule", what));
        }
        Ok(())
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let setting = worker.setting();
        let (seed, epochs) = (setting.seed, self.context.epochs);
        let state = self.compression.state(self.schedule.needs_error());
        partition_parallel(
            worker,
            Some(&|epoch, seen| {
                let ratio = self.schedule.ratio(epoch, epochs, seen);
                self.exchange(ratio, seed, epoch, &state)
            }),
            Overlap {
                gradients: self.overlap,
                features: self.overlap && !self.schedule.is_adaptive(),
                ..Overlap::default()
            },
        )
    }
}
