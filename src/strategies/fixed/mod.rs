//! `fixed`: compression at one ratio throughout, VARCO's main rival.
//!
//! As `varco`, with a constant ratio `c`: of a row of width `n`, by default `max(1, ⌊n/c⌋)` columns travel, the same for all rows, in all
//! layers but the last. An epoch moves about `1/c` of the compressed layers' bytes. Mini-batches are those of `full`, with rows through the codec.

use serde::Deserialize;

use super::full::OVERLAP;
use super::parts::{
    CodecChoice, CodecState, Compression, EpochExchange, HIGHEST_RATIO, Overlap, exchange_traffic,
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
        name: "fixed",
        paper: "constant compression, the baseline of VARCO (arXiv 2406.17611)",
        sends: "boundary rows and their gradients, compressed at a constant ratio; the last layer whole; parameter gradients; in mini-batches the sampled rows, and their ids whole",
        options: &[
            CODEC,
            OptionInfo {
                name: "ratio",
                default: "8",
                meaning: "How many times smaller than plain floats rows are, such as by sending fewer columns (arXiv 2406.17611 compares 2 to 128).",
            },
            RESCALE,
            CACHE_FEATURES,
            MEASURE_ERROR,
            OVERLAP,
        ],
    },
    build,
};

/// Shared with `varco`.
pub const CODEC: OptionInfo = OptionInfo {
    name: "codec",
    default: "random_columns",
    meaning: "How rows are compressed: random_columns (the same columns for all rows of a layer and epoch, as in the authors' code), random_entries, first_columns, top_k, quantise (bits = 1, 2, 4 or 8, else by the ratio), f16, bf16, identity, { kind = \"compose\", first = …, second = … }, { kind = \"difference\", of = … } (only the change since the last epoch).",
};

/// Shared with `varco`.
pub const RESCALE: OptionInfo = OptionInfo {
    name: "rescale",
    default: "false",
    meaning: "Multiply what was kept at random by n/k, which makes the decoded rows unbiased; the authors' code does not.",
};

/// Shared with `varco`.
pub const CACHE_FEATURES: OptionInfo = OptionInfo {
    name: "cache_features",
    default: "false",
    meaning: "Send the constant input features once, whole; the authors' code resends them compressed in every epoch.",
};

/// Shared with `varco`.
pub const MEASURE_ERROR: OptionInfo = OptionInfo {
    name: "measure_error",
    default: "false",
    meaning: "Record what compression loses, by epoch, layer and message. Each message is decoded once more, which is charged where compute is measured.",
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // switches of an experiment file
struct Options {
    #[serde(default)]
    codec: CodecChoice,
    ratio: Option<f64>,
    #[serde(default)]
    rescale: bool,
    #[serde(default)]
    cache_features: bool,
    #[serde(default)]
    measure_error: bool,
    #[serde(default)]
    overlap: bool,
}

struct Fixed {
    compression: Compression,
    ratio: f64,
    overlap: bool,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    options.codec.check(options.rescale)?;
    options.codec.check_batches(context)?;
    let ratio = options.ratio.unwrap_or(8.0);
    if !(1.0..=HIGHEST_RATIO).contains(&ratio) {
        let what = format!("must be a number from 1 to {HIGHEST_RATIO}");
        return Err(OptionError::key("ratio", what));
    }
    if options.ratio.is_some() && !options.codec.follows_ratio() {
        return Err(OptionError::key(
            "ratio",
            "does nothing for this codec, which has a cost of its own: leave it out, or make the codec second of a composition",
        ));
    }
    Ok(Box::new(Fixed {
        compression: Compression {
            codec: options.codec,
            rescale: options.rescale,
            cache_features: options.cache_features,
            measure_error: options.measure_error,
        },
        ratio,
        overlap: options.overlap,
        context: *context,
    }))
}

impl Fixed {
    fn exchange(&self, seed: u64, epoch: usize, state: &CodecState) -> EpochExchange {
        self.compression
            .exchange(&self.context, self.ratio, seed, epoch, state)
    }
}

impl Strategy for Fixed {
    fn trains_in_batches(&self) -> bool {
        true
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        // What is drawn and remembered does not change how many bytes it takes.
        let exchange = self.exchange(0, epoch, &CodecState::default());
        let kind = self.context.all_reduce;
        exchange_traffic(kind, boundary, model, epoch, &exchange, self.overlap)
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let seed = worker.setting().seed;
        let state = self.compression.state(false);
        let overlap = Overlap {
            gradients: self.overlap,
            features: self.overlap,
            ..Overlap::default()
        };
        partition_parallel(
            worker,
            Some(&|epoch, _| self.exchange(seed, epoch, &state)),
            overlap,
        )
    }
}
