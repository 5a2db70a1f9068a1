//! `train`: any point of the space in which the strategies lie that exchange boundary rows.
//!
//! Which rows cross, when they are used, how they are encoded, in which form, how gradients are
//! summed, how often nodes change workers: each is an option of its own. With none it is `full`;
//! the others are points of the same space.
//!
//! | strategy | is `train` with |
//! |---|---|
//! | `full` | nothing |
//! | `isolated` | `rows = "none"` |
//! | `fixed` | `codec = "random_columns"`, `cache_features = false` |
//! | `varco` | the same and `schedule` |
//! | `bns` | `share = 0.1`, `exchange = "input"` |
//! | `pipe` | `late = true`, `exchange = "input"` |
//! | `cagnet` | `rows = "blocks"`, `exchange = "input"`, `cache_features = false` |
//! | `sancus` | `rows = "blocks"`, `exchange = "input"`, `bound = 1` |
//! | `sylvie` | as `pipe`, one bit with `quantise_rows`, `compress_last`, `fresh_every = 10` |
//!
//! `codec = { kind = "quantise_rows", bits = 4 }`, `compress_last = true`, `exchange = "input"` and
//! `cache_features = false` are `adaqp` with `bits = 4`.
//!
//! What is sent, when, and how many bytes is what their modules say. What does not go together is
//! refused with the reason; `docs/combine.md` has every pair.

use super::parts::options::{
    COMPRESS_LAST, EXCHANGE_NARROWER, FRESH_EVERY, GRADIENTS, MEASURE_ERROR, ON_REQUEST_CODEC,
    OVERLAP, RATIO, RESCALE, SCHEDULE, THRESHOLD, option_list,
};
use super::parts::{Compression, ExchangePoint, RowExchange};
use super::{OptionError, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "train",
        paper: "ours: full, isolated, fixed, varco, bns, pipe and what lies between them",
        sends: "what its options say of boundary rows and their gradients; parameter gradients",
        options: option_list! {
            rows: "all", "Which rows cross: all that are read; blocks, those that are not read too (as `cagnet`); or none, and cut edges are dropped (as `isolated`).";
            share: "none", "Only this share of each pair's boundary rows crosses, drawn anew in each epoch (as `bns`).";
            late: "false", "Use rows and their gradients an epoch after they were sent; they travel until then (as `pipe`).";
            smoothing: "none", "What of late rows is used as a running mean: none, features, gradients or both (as `pipe`).";
            gamma: "0.95", "Weight γ of the mean so far, 0 or more and below 1 (as `pipe`).";
            FRESH_EVERY;
            bound: "none", "Send rows and gradients only in epochs in which those that came last would be older than so many epochs, and use them again in the others (as `sancus`); resent features are not meant.";
            THRESHOLD;
            cache_features: "true", "Send the constant input features once, whole (as `full`).";
            EXCHANGE_NARROWER; ON_REQUEST_CODEC; RATIO; SCHEDULE; RESCALE; MEASURE_ERROR;
            COMPRESS_LAST; OVERLAP; GRADIENTS;
            repartition_every: "none", "Every so many epochs nodes are dealt out anew, with as many parts of the same kind, and move to their next owners with all that is known of them.";
        },
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let whole = Compression::if_asked().sending(true, ExchangePoint::Narrower);
    let exchange = RowExchange::new(whole).read(table, REGISTRATION.info.options)?;
    Ok(Box::new(exchange))
}
