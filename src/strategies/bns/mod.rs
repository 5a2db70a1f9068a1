//! `bns`: a random share of the boundary in each epoch, as in BNS-GCN (Wan, Li, Li, Kim and
//! Lin, `MLSys` 2022).
//!
//! In each epoch every worker draws, of the `b` rows that each other worker reads of it,
//! `s = ⌊p·b⌋` without replacement, and tells that worker their ids (8 bytes each, `sample`). All
//! layers above the first and both directions use this draw: the drawn rows travel forward, their
//! gradients back, as in `full`. The first layer reads the features of the whole boundary, which
//! came once, and is exact; if they are not cached, it reads those of drawn rows. A reader drops
//! its edges from rows that were not drawn, and multiplies messages from the others by `b/s`, which
//! is to divide rows and returned gradients by the exact ratio `s/b`; degrees are those of the
//! whole graph. So sums and means over neighbours are unbiased given the rows of the layer (with
//! variance `b²(1 − s/b)S²/s` of a sum over a boundary whose rows have variance `S²`), what
//! nonlinear layers make of them is not; attention and maxima are over what was drawn.
//!
//! With `B' = Σ ⌊p·b⌋` over ordered pairs of workers, an epoch moves `4B' Σ_{1≤l<L} d_l` bytes
//! forward, as many back, and `8B'` of ids: about `pV + 8pB`, where `V` is what `full` moves with
//! the same `exchange`; here that is the layer's input, which the authors' layers gather before
//! their product (`GraphSAGELayer` in `module/layer.py` of GATECH-EIC/BNS-GCN). The features of the
//! whole boundary come once, `4B d_0`; if they are not cached, those of drawn rows come in each
//! epoch, `4B' d_0`.
//!
//! Evidence, in the authors' code (GATECH-EIC/BNS-GCN, read and run at `b4a48bd`): in `train.py`
//! the draw, `s = int(p·b)` of `--sampling-rate`, and 8-byte ids from owner to reader; in
//! `helper/feature_buffer.py` the division by `s/b` both ways; means over true in-degrees; features
//! fetched once and the first layer over the whole boundary (`--use-pp`, in all scripts of the
//! authors). Different there: that layer's aggregate is taken once, before dropout, where here each
//! epoch takes it anew of rows after dropout, as every other strategy does; and rows are divided by
//! `s/b` for attention too, of which the code says itself that it should not. Derived here: a pair
//! with `b < 1/p` never exchanges anything, which leaves its rows out of the sum. With `p = 1` it
//! is `full` with the same `exchange`; with `p = 0` and features that are not cached it is
//! `isolated` but for degrees, which `isolated` counts within a part.

use super::parts::options::{
    EXCHANGE_INPUT, GRADIENTS, MEASURE_ERROR, ON_REQUEST_CODEC, OVERLAP_GRADIENTS, RATIO, RESCALE,
    SCHEDULE, option_list,
};
use super::parts::{BoundaryShare, Compression, ExchangePoint, RowExchange};
use super::{OptionError, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "bns",
        paper: "Wan et al., BNS-GCN: Efficient Full-Graph Training of Graph Convolutional Networks with Partition-Parallelism and Random Boundary Node Sampling (MLSys 2022)",
        sends: "a random share of the boundary rows, their gradients and their ids, every epoch; all features once; parameter gradients",
        options: option_list! {
            share: "0.1", "Share p of each pair's boundary rows that is drawn in an epoch, 0 to 1 (the paper recommends 0.1, and compares 1, 0.1, 0.01 and 0).";
            cache_features: "true", "Send the constant input features of the whole boundary in the first epoch only, and let the first layer read all of them (--use-pp in all scripts of the authors); without it, drawn rows bring theirs in each epoch, and the first layer reads those alone.";
            EXCHANGE_INPUT; ON_REQUEST_CODEC; RATIO; SCHEDULE; RESCALE; MEASURE_ERROR;
            OVERLAP_GRADIENTS; GRADIENTS;
        },
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let exchange = RowExchange {
        share: Some(BoundaryShare(0.1)),
        ..RowExchange::new(Compression::if_asked().sending(true, ExchangePoint::Input))
    };
    Ok(Box::new(exchange.read(table, REGISTRATION.info.options)?))
}
