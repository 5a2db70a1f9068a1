//! `varco`: activations compressed at a rate that falls during training (Cerviño et al., arXiv
//! 2406.17611).
//!
//! As `full`, but boundary rows go through a codec in every layer but the last. By default, of each
//! row of width `w` only `max(1, ⌊w/c⌋)` columns travel, and what is missing counts as zero. The
//! columns are drawn anew for each layer and epoch by both ends from a common seed, so no index is
//! sent. The gradient of a row comes back in the same columns. The ratio `c` follows a schedule, by
//! default from 128 down to 1 after a fifth of the epochs; from there on the training is exact. An
//! adaptive schedule depends on how the training goes: its plan in advance is an upper bound, and
//! with the decisions that the training recorded it is exact. Features are resent in every epoch.
//!
//! Rows of a layer have `w_l = min(d_l, d_{l+1})` columns where they cross, as the authors' layer,
//! DGL's `SAGEConv`, multiplies before it aggregates where that makes rows narrower. An epoch moves
//! `4B (Σ_{l<L−1} max(1, ⌊w_l/c⌋) + w_{L−1})` bytes forward, and back the same without layer 0, or
//! with it where the product of the features crosses.
//!
//! Evidence, in the authors' code (branch `variable_compression` of `mturja-vf-ic-bd/SAR`, read and
//! run at `0f40457`): in `sar/core/compressor.py` columns and the whole last layer
//! (`VariableDropoutCompressorDecompressor`, by `--compression_type variable_dropout`; with a fixed
//! `--comp_ratio`, `DropoutCompressorDecompressor`, by `dropout`), the linear schedule and the
//! exponential one, which is commented out (`get_compressed_size`, of `--max_comp_ratio`,
//! `--min_comp_ratio`, `--variable_compression_slope`), and steps (`compute_CR_exp`); in
//! `examples/train_homogeneous_graph_advanced.py` the layer, and features that cross in every
//! iteration (`GNNModel`, `train_pass`). Different there: a falling ratio above the width leaves no
//! column at all.

use super::parts::options::{
    CACHE_FEATURES, CODEC, EXCHANGE_NARROWER, GRADIENTS, MEASURE_ERROR, OVERLAP, RESCALE,
    option_list,
};
use super::parts::{RowExchange, Schedule};
use super::{OptionError, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "varco",
        paper: "Cerviño, Turja, Mostafa, Himayat and Ribeiro, Distributed Training of Large Graph Neural Networks with Variable Communication Rates (arXiv 2406.17611)",
        sends: "boundary rows and their gradients, compressed less and less, every epoch; the last layer whole; parameter gradients; in mini-batches the sampled rows, and their ids whole",
        options: option_list! {
            CODEC;
            schedule: "{ kind = \"linear\", from = 128, to = 1, slope = 5 }", "Ratio by epoch, with from, to: linear (the paper's; slope), exponential, steps (both in the authors' code; every = epochs of a step), cosine (ours); adaptive-validation and adaptive-error (ours): divided by factor (2) when the validation loss (or measure = \"accuracy\"), or the measured compression error, has not improved by tolerance (0.001) for patience (5) evaluations or epochs.";
            RESCALE; CACHE_FEATURES; EXCHANGE_NARROWER; MEASURE_ERROR; OVERLAP; GRADIENTS;
        },
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let exchange = RowExchange::compressed(Schedule::default());
    Ok(Box::new(exchange.read(table, REGISTRATION.info.options)?))
}
