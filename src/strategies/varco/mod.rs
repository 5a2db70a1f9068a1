//! `varco`: activations compressed at a rate that falls during training (Cerviño et al., arXiv 2406.17611).
//!
//! As `full`, but of each boundary row of width `n` only `max(1, ⌊n/c⌋)` columns travel, in every layer but the last; what is missing
//! counts as zero. The columns are drawn anew for each layer and epoch by both ends from a common seed, so no index is sent. The gradient
//! of a row comes back in the same columns. The ratio `c` follows a schedule, by default from 128 down to 1 after a fifth of the
//! epochs; from there on the training is exact. Features are resent in every epoch, as in the authors' code. An epoch moves
//! `4B (Σ_{l<L−1} ⌊d_l/c⌋ + d_{L−1})` bytes forward, and the same without layer 0 back.

use serde::Deserialize;

use super::fixed::{CACHE_FEATURES, RESCALE};
use super::parts::{
    EpochExchange, Schedule, compressed_exchange, gradient_traffic, halo_traffic,
    partition_parallel,
};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::Traffic;
use crate::sim::{SimError, Worker};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "varco",
        paper: "Cerviño, Turja, Mostafa, Himayat and Ribeiro, Distributed Training of Large Graph Neural Networks with Variable Communication Rates (arXiv 2406.17611)",
        sends: "a growing share of the columns of boundary rows, and of their gradients, every epoch; the last layer whole; parameter gradients",
        options: &[
            OptionInfo {
                name: "codec",
                default: "random_columns",
                meaning: "What a compressed row keeps: the same randomly drawn columns for all rows of a layer and epoch (the authors' code).",
            },
            OptionInfo {
                name: "schedule",
                default: "{ kind = \"linear\", from = 128, to = 1, slope = 5 }",
                meaning: "Ratio by epoch: linear (the paper's), exponential, cosine or steps.",
            },
            RESCALE,
            CACHE_FEATURES,
        ],
    },
    build,
};

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CodecName {
    #[default]
    RandomColumns,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    codec: CodecName,
    #[serde(default)]
    schedule: Schedule,
    #[serde(default)]
    rescale: bool,
    #[serde(default)]
    cache_features: bool,
}

struct Varco {
    options: Options,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    options.schedule.check()?;
    Ok(Box::new(Varco {
        options,
        context: *context,
    }))
}

impl Varco {
    fn exchange(&self, seed: u64, epoch: usize) -> EpochExchange {
        let Options {
            codec: CodecName::RandomColumns,
            schedule,
            rescale,
            cache_features,
        } = self.options;
        let ratio = schedule.ratio(epoch, self.context.epochs);
        compressed_exchange(
            self.context.layers,
            ratio,
            rescale,
            cache_features,
            seed,
            epoch,
        )
    }
}

impl Strategy for Varco {
    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        // Which columns are drawn does not change how many bytes they take.
        let mut traffic = halo_traffic(boundary, model, &self.exchange(0, epoch).wires);
        let workers = boundary.workers();
        traffic.merge(&gradient_traffic(
            self.context.all_reduce,
            workers,
            model.parameters(),
        ));
        traffic
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let seed = worker.setting().seed;
        partition_parallel(worker, Some(&|epoch| self.exchange(seed, epoch)))
    }
}
