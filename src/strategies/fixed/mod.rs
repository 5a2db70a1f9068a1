//! `fixed`: compression at one ratio throughout, VARCO's main rival.
//!
//! As `varco`, with a constant ratio `c`: of a row of width `w`, by default `max(1, ⌊w/c⌋)` columns
//! travel, the same for all rows, in all layers but the last. An epoch moves about `1/c` of the
//! compressed layers' bytes. Mini-batches are those of `full`, with rows through the codec.

use super::parts::options::{
    CACHE_FEATURES, CODEC, EXCHANGE_NARROWER, GRADIENTS, MEASURE_ERROR, OVERLAP, RESCALE,
    option_list,
};
use super::parts::{RowExchange, Schedule};
use super::{OptionError, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "fixed",
        paper: "constant compression, the baseline of VARCO (arXiv 2406.17611)",
        sends: "boundary rows and their gradients, compressed at a constant ratio; the last layer whole; parameter gradients; in mini-batches the sampled rows, and their ids whole",
        options: option_list! {
            CODEC;
            ratio: "8", "How many times smaller than plain floats rows are, such as by sending fewer columns (arXiv 2406.17611 compares 2 to 128).";
            RESCALE; CACHE_FEATURES; EXCHANGE_NARROWER; MEASURE_ERROR; OVERLAP; GRADIENTS;
        },
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let exchange = RowExchange::compressed(Schedule::Constant(8.0));
    Ok(Box::new(exchange.read(table, REGISTRATION.info.options)?))
}
