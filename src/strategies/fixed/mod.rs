//! `fixed`: VARCO's compression at one ratio throughout, its main rival.
//!
//! As `varco`, with a constant ratio `c`: of a row of width `n`, `max(1, ⌊n/c⌋)` columns travel, the same for all rows, layers but the
//! last. An epoch moves about `1/c` of the compressed layers' bytes.

use serde::Deserialize;

use super::parts::{compressed_exchange, gradient_traffic, halo_traffic, partition_parallel};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::Traffic;
use crate::sim::{SimError, Worker};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "fixed",
        paper: "constant compression, the baseline of VARCO (arXiv 2406.17611)",
        sends: "a constant share of the columns of boundary rows, and of their gradients; the last layer whole; parameter gradients",
        options: &[
            OptionInfo {
                name: "ratio",
                default: "8",
                meaning: "How many times fewer columns travel (arXiv 2406.17611 compares 2 to 128).",
            },
            RESCALE,
            CACHE_FEATURES,
        ],
    },
    build,
};

/// Shared with `varco`.
pub const RESCALE: OptionInfo = OptionInfo {
    name: "rescale",
    default: "false",
    meaning: "Multiply what was sent by n/k, which makes the decoded rows unbiased; the authors' code does not.",
};

/// Shared with `varco`.
pub const CACHE_FEATURES: OptionInfo = OptionInfo {
    name: "cache_features",
    default: "false",
    meaning: "Send the constant input features once, whole; the authors' code resends them compressed in every epoch.",
};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default = "eight")]
    ratio: f64,
    #[serde(default)]
    rescale: bool,
    #[serde(default)]
    cache_features: bool,
}

const fn eight() -> f64 {
    8.0
}

struct Fixed {
    options: Options,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    if !(options.ratio.is_finite() && options.ratio >= 1.0) {
        return Err(OptionError::key("ratio", "must be a number of at least 1"));
    }
    Ok(Box::new(Fixed {
        options,
        context: *context,
    }))
}

impl Fixed {
    fn exchange(&self, seed: u64, epoch: usize) -> super::parts::EpochExchange {
        let Options {
            ratio,
            rescale,
            cache_features,
        } = self.options;
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

impl Strategy for Fixed {
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
