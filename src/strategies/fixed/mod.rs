//! `fixed`: compression at one ratio throughout, VARCO's main rival.
//!
//! As `varco`, with a constant ratio `c`: of a row of width `n`, by default `max(1, ⌊n/c⌋)` columns travel, the same for all rows, in all
//! layers but the last. An epoch moves about `1/c` of the compressed layers' bytes. Mini-batches are those of `full`, with rows through the codec.

use super::full::OVERLAP;
use super::parts::{RowExchange, Schedule};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo};

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
    meaning: "How rows are compressed: random_columns (the same columns for all rows of a layer and epoch, as in the authors' code); ours: random_entries, first_columns, top_k, quantise (bits = 1, 2, 4 or 8, else by the ratio; stochastic rounding as in QSGD, Alistarh et al., NeurIPS 2017), f16, bf16, identity, { kind = \"compose\", first = …, second = … }, { kind = \"difference\", of = … } (only the change since the last epoch, as in EF21, Richtárik et al., NeurIPS 2021).",
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
    meaning: "Record what compression loses, by epoch, layer and message (ours). Each message is decoded once more, which is charged where compute is measured.",
};

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let compressed = RowExchange::compressed(table, context, "ratio", Schedule::Constant(8.0))?;
    Ok(Box::new(compressed))
}
