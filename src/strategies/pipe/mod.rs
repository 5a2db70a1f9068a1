//! `pipe`: boundary rows and gradients of the epoch before, sent while the workers compute, as in
//! `PipeGCN` (Wan, Li, Wolfe, Kyrillidis, Kim and Lin, ICLR 2022).
//!
//! In each epoch and layer a worker waits for the boundary rows that the others sent in the epoch
//! before, sends its own, and goes on with the former, zeros in the first epoch. On the way back it
//! adds the gradients of its rows that were sent in the epoch before. So messages have an epoch to
//! arrive, and cost time only if they take longer. Parameter gradients are those of this epoch,
//! summed by all of them before the step; evaluation is exact. With smoothing (`PipeGCN-F`, `-G`
//! and `-GF`), what is used is a running mean, `γ` of what it was and `1 − γ` of what arrived, from
//! zero on and not corrected for that.
//!
//! An epoch moves what one of `full` does with the same `exchange`, here that of the layer's input
//! as in the authors' code: `V = 8B Σ_{1≤l<L} d_l` bytes for `B` boundary rows; nobody uses what
//! the last one sends. Features do not change: they come once, exact, `4B d_0`. If they are not
//! cached (the authors' code without `--use-pp`), they travel in every epoch as the rows of the
//! layers above do: late from the first epoch, whose first layer reads zeros, and smoothed with
//! these. Biased: rows and gradients are one epoch old, with smoothing about `1 + γ/(1 − γ)`
//! epochs. While parameters rest, rows of layer `l` are exact from epoch `l` on, and gradients of
//! layer `l` from epoch `2(L − 1) − l` on; both an epoch later with late features (derived, and
//! tested).
//!
//! With a codec, a gradient goes back as the rows came that it is of: in the same entries, at the
//! ratio of the epoch in which these were sent.
//!
//! Evidence, in the authors' code (GATECH-EIC/PipeGCN, read and run at `73ab949`): in
//! `helper/feature_buffer.py` wait, then send, for each layer and direction (`update`), zeros at
//! first, the running mean and its `γ` (`--feat-corr`, `--grad-corr`, `--corr-momentum`); in
//! `helper/reducer.py` synchronous parameter gradients; features fetched once, or without
//! `--use-pp` late and smoothed (layer 0 of `update`).

use super::parts::options::{
    EXCHANGE_INPUT, GRADIENTS, MEASURE_ERROR, ON_REQUEST_CODEC, OVERLAP_GRADIENTS, RATIO, RESCALE,
    SCHEDULE, option_list,
};
use super::parts::{Compression, ExchangePoint, RowExchange, Staleness, When};
use super::{OptionError, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "pipe",
        paper: "Wan et al., PipeGCN: Efficient Full-Graph Training of Graph Convolutional Networks with Pipelined Feature Communication (ICLR 2022)",
        sends: "boundary rows of every layer forward, their gradients back, to be used an epoch later; parameter gradients",
        options: option_list! {
            smoothing: "none", "What is used as a running mean: none, features (PipeGCN-F: the boundary rows of hidden layers), gradients (-G) or both (-GF).";
            gamma: "0.95", "Weight γ of the mean so far, 0 or more and below 1 (0.95 in the authors' code).";
            cache_features: "true", "Send the constant input features in the first epoch only, exact, as the authors' code does with --use-pp; without it they travel in every epoch and are used in the next, zeros in the first.";
            EXCHANGE_INPUT; ON_REQUEST_CODEC; RATIO; SCHEDULE; RESCALE; MEASURE_ERROR;
            OVERLAP_GRADIENTS; GRADIENTS;
        },
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let exchange = RowExchange {
        when: When {
            staleness: Some(Staleness::default()),
            ..When::default()
        },
        ..RowExchange::new(Compression::if_asked().sending(true, ExchangePoint::Input))
    };
    Ok(Box::new(exchange.read(table, REGISTRATION.info.options)?))
}
